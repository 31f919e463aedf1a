# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ptxas assembles every kernel of the other examples, too, for three architectures; the five models run elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import command_of
from kernel_page import ARCHITECTURES, COMPILED, ROOT, assert_on_page, kernels_of, summary
from kernel_page import RUN as MODELS

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = pytest.mark.usefixtures("fake_gpu", "one_worker")
SCRIPTS = {"rl_torch"}
"""What is no model of ours, but PyTorch's side of a comparison."""
SHAPES = {"llama405b", "llama405b_train"}
"""Llama at sizes that are planned and simulated only."""


def test_every_example_is_assembled_somewhere() -> None:
    there = {path.stem for path in (ROOT / "examples").glob("*.py")} - SCRIPTS - SHAPES
    assert there == {*MODELS, *(f"{name}_train" for name in MODELS), *COMPILED}


@pytest.mark.parametrize("name", COMPILED)
def test_assembled_for_three_architectures(name: str, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    sizes = [word for key, value in COMPILED[name].items() for word in ("--model-arg", f"{key}={value}")]
    options = ["--target", "cuda", "--arch", ",".join(ARCHITECTURES), "-o", tmp_path / "program", "--json", "-q"]
    made = command_of(capfd)("compile", ROOT / "examples" / f"{name}.py", *sizes, *options).told()
    kernels = kernels_of(made)
    assert sum(kernel["spill_stores"] + kernel["spill_loads"] for kernel in kernels) == 0
    assert_on_page([summary(name, kernels)])
