# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``hp compile --target ascend`` and ``hp run DIR --check``: the examples against PyTorch, through fake NPUs.

Each model forward and in training, on one device and on two by two, with all the memory that it wants and with half.
Nothing may be left to the host, and every fragment is scheduled for the chip's vector cores. HP_ALL_CELLS=1 asks for every cell
with half of the memory; planning some of them takes most of a minute.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ascend_fakes import assert_verified
from command import Outcome, command_of
from gpu_models import ALL, CELLS, LAYERS_IN_HALF, MESHES, assert_within_half, run_and_check, words_of

pytest.importorskip("torch")
pytest.importorskip("transformers")

pytestmark = pytest.mark.usefixtures("fake_npu", "one_worker")


def compiled_and_checked(
    hp: Callable[..., Outcome], name: str, words: list[object], folder: Path, *options: object
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What ``hp compile`` and ``hp run --check`` tell, after the checks that every program has to pass."""
    made = hp("compile", *words, "--target", "ascend", "-o", folder, *options).told()
    coverage = made["kernels"]["coverage"]
    assert coverage["host_fallbacks"] == 0
    operations = made["kernels"]["operations"]
    assert sum(operations["library"].values()) == coverage["library_calls"] >= 6
    # Attention is one call, where backward does not read its probabilities, nor a plan of memory cuts the block between
    # them and their product; else it is known why a softmax is what it is.
    attention = operations["library"].get("attention", 0)
    told = made["kernels"]["attention"]
    if name.endswith("_train"):
        assert told.keys() <= {"none: its probabilities are read by others, as by a backward pass"}
    elif told or "--device-memory" not in options:
        assert told == {"one call, with a mask": attention}
    assert attention == (0 if name.endswith("_train") else sum(told.values()))
    assert attention >= 1 or any(one.startswith("softmax: ") for one in made["kernels"]["choices"])
    assert told or "--device-memory" in options
    assert operations["library"]["product"] + 2 * attention >= 6
    assert {"mul", "add", "select"} <= operations["fragment"].keys()
    assert sum(operations["host"].values()) == 0
    assert len(made["kernels"]["kernels"]) == coverage["kernels"] >= 5
    assert {kernel["core"] for kernel in made["kernels"]["kernels"]} == {"AIV"}
    assert_verified(folder, [kernel["name"] for kernel in made["kernels"]["kernels"]])
    return made, run_and_check(hp, name, folder, made["devices"])


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", ALL)
def test_equals_pytorch(name: str, mesh: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Forward, and two steps of training, in which the backward of embeddings is one operator; through HCCL on 2x2."""
    compiled_and_checked(command_of(capfd), name, words_of(name, MESHES[mesh]), tmp_path / "program")


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", ["llama", "mixtral"])
def test_heads_share_keys(name: str, mesh: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Three heads of queries for each of two heads of keys and values: the softmax has one loop of heads, products two."""
    split = 2 if mesh == "2x2" else 1
    words = words_of(name, MESHES[mesh], width=24 * split, heads=6 * split, kv_heads=2 * split)
    compiled_and_checked(command_of(capfd), name, words, tmp_path / "program")


LAYERS = {**LAYERS_IN_HALF, "llama": 2, "vit": 8, "mixtral": 3, "mixtral_train": 3, "vit_train": 6}
QUICK = [("gpt2", "2x2"), ("llama", "one"), ("mixtral", "one"), ("gpt2_train", "one")]


@pytest.mark.parametrize(("name", "mesh"), CELLS if os.environ.get("HP_ALL_CELLS") else QUICK)
def test_half_of_the_memory(name: str, mesh: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """On each device half of what it would have in use at once; what operators and cut fragments need is in the plan."""
    hp = command_of(capfd)
    words = words_of(name, MESHES[mesh], layers=LAYERS[name])
    whole = hp("compile", *words, "--target", "ascend", "--device-memory", "1TiB", "-o", tmp_path / "whole").told()
    limit = whole["peak_bytes"] // 2
    made, told = compiled_and_checked(hp, name, words, tmp_path / "program", "--device-memory", f"{limit}B")
    assert_within_half(whole, made, told)
