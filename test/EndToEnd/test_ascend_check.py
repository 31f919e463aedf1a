# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``hp compile --target ascend`` and ``hp run DIR --check``: the examples against PyTorch, through fake NPUs.

Nothing may be left to the host, and every fragment is scheduled for the chip's vector cores.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from command import command_of
from gpu_models import MESHES, MODELS, TOLERANCE, words_of

pytest.importorskip("torch")
pytest.importorskip("transformers")

pytestmark = pytest.mark.usefixtures("fake_npu", "one_worker")


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", [*MODELS, *(f"{name}_train" for name in MODELS)])
def test_equals_pytorch(name: str, mesh: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Forward, and two steps of training, in which the backward of embeddings is one operator; through HCCL on 2x2."""
    hp = command_of(capfd)
    made = hp("compile", *words_of(name, MESHES[mesh]), "--target", "ascend", "-o", tmp_path / "program").told()
    coverage = made["kernels"]["coverage"]
    assert coverage["host_fallbacks"] == 0
    operations = made["kernels"]["operations"]
    assert sum(operations["library"].values()) == coverage["library_calls"] >= 6
    assert operations["library"]["product"] >= 6
    assert {"mul", "add", "div", "exp"} <= operations["fragment"].keys()
    assert sum(operations["host"].values()) == 0
    assert len(made["kernels"]["kernels"]) == coverage["kernels"] >= 10
    assert {kernel["core"] for kernel in made["kernels"]["kernels"]} == {"AIV"}
    steps = ("--steps", 2) if name.endswith("_train") else ()
    told = hp("run", tmp_path / "program", "--check", "--tolerance", TOLERANCE, *steps, "--json", "-q").told()
    assert told["ok"]
    assert 0 < told["max_rel_error"] <= TOLERANCE
    assert len(told.get("losses", [])) == (2 if steps else 0)
    assert bool(told["collectives"]) == (made["devices"] > 1)
