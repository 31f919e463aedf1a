# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``hp compile --target cuda`` and ``hp run DIR --check``: the examples against PyTorch, through fake GPUs.

Each model forward and in training, on one device and on two by two, with all the memory that it wants and with half.
Nothing may be left to the host, and no kernel may spill. Planning the memory of a training takes most of a minute, so
only some are run with half of it; HP_ALL_CELLS=1 asks for all.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Outcome, command_of
from gpu_models import ALL, CELLS, LAYERS_IN_HALF, MESHES, ROOT, assert_within_half, run_and_check, words_of

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = pytest.mark.usefixtures("fake_gpu", "one_worker")


@pytest.fixture
def hp(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Outcome]:
    """Run ``hp`` in this process; the tests of a session share what they import."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
    return command_of(capfd)


def compiled_and_checked(
    hp: Callable[..., Outcome], name: str, words: list[object], folder: Path, *options: object
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What ``hp compile`` and ``hp run --check`` tell, after the checks that every program has to pass."""
    made = hp("compile", *words, "--target", "cuda", "-o", folder, *options).told()
    kernels = made["kernels"]
    assert kernels["coverage"]["host_fallbacks"] == 0
    assert len({kernel["name"] for kernel in kernels["kernels"]}) == kernels["coverage"]["kernels"]
    assert sum(kernel["spill_stores"] + kernel["spill_loads"] for kernel in kernels["kernels"]) == 0
    return made, run_and_check(hp, name, folder, made["devices"])


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", ALL)
def test_all_of_the_memory(hp: Callable[..., Outcome], name: str, mesh: str, tmp_path: Path) -> None:
    chips = "sm_80,sm_90,sm_100" if mesh == "one" else "sm_80"
    made, _ = compiled_and_checked(hp, name, words_of(name, MESHES[mesh]), tmp_path / "program", "--arch", chips)
    assert {kernel["architecture"] for kernel in made["kernels"]["kernels"]} == set(chips.split(","))


QUICK = [("gpt2", "2x2"), ("llama", "one"), ("bert", "one"), ("vit", "2x2"), ("mixtral", "2x2"), ("llama_train", "2x2")]


@pytest.mark.parametrize(("name", "mesh"), CELLS if os.environ.get("HP_ALL_CELLS") else QUICK)
def test_half_of_the_memory(hp: Callable[..., Outcome], name: str, mesh: str, tmp_path: Path) -> None:
    """On each device half of what it would have in use at once; what it measures is what was planned."""
    words = words_of(name, MESHES[mesh], layers=LAYERS_IN_HALF[name])
    whole = hp("compile", *words, "--target", "cuda", "--device-memory", "1TiB", "-o", tmp_path / "whole").told()
    limit = whole["peak_bytes"] // 2
    options = ("--arch", "sm_80", "--device-memory", f"{limit}B")
    made, told = compiled_and_checked(hp, name, words, tmp_path / "program", *options)
    assert_within_half(whole, made, told)


def test_real_shape(hp: Callable[..., Outcome], tmp_path: Path) -> None:
    """GPT-2 small as it is: 10 s, since sizes decide how wide kernels access memory, and what ptxas makes of them."""
    words = [ROOT / "examples" / "gpt2.py", "--preset", "megatron", "--mesh", "tp=1", "--json", "-q"]
    made = hp("compile", *words, "--target", "cuda", "--arch", "sm_90", "-o", tmp_path / "program").told()
    kernels = made["kernels"]["kernels"]
    assert made["kernels"]["coverage"]["host_fallbacks"] == 0
    assert made["kernels"]["epilogues"]["bias and gelu_tanh"] == 1
    assert sum(kernel["spill_stores"] + kernel["spill_loads"] for kernel in kernels) == 0
    assert max(kernel["registers"] for kernel in kernels) <= 64
    for kernel in kernels:
        # All but positions that are compared with their neighbours, a word beside them.
        widths = {*kernel["loads"], *kernel["stores"]}
        assert "16" in widths or (widths == {"8"} and not kernel["name"].startswith("GPT2Block")), kernel
