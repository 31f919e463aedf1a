# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``hp compile examples/NAME.py``: the examples at their own sizes, on two by two devices, for chips that are not here.

Sizes decide what is split, how wide kernels access memory, and what the vendors' compilers make of it; running at these
sizes on fakes would take hours. All kernels and fragments are assembled, none is left to the host, and a plan is made for
half of the memory. One cell is in every run of the tests; HP_ALL_CELLS=1 asks for all twenty, which take half an hour.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Outcome, command_of
from gpu_models import ALL, ROOT

pytest.importorskip("torch")
pytest.importorskip("transformers")

MORE = {"bert_train": ("--model-arg", "layers=4"), "vit_train": ("--model-arg", "layers=8")}
"""These have so few layers that one of them needs more than half."""
TARGETS = {"cuda": ("--arch", "sm_90"), "ascend": ("--soc", "Ascend910B1")}


@pytest.fixture
def hp(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Outcome]:
    """Run ``hp`` in this process; the tests of a session share what they import."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
    return command_of(capfd)


def compiled(hp: Callable[..., Outcome], words: list[object], memory: str, folder: Path) -> dict[str, Any]:
    """What ``hp compile`` tells, after the checks that every program has to pass."""
    made = hp("compile", *words, "--device-memory", memory, "-o", folder).told()
    coverage, kernels = made["kernels"]["coverage"], made["kernels"]["kernels"]
    assert coverage["kernels"] > 0
    assert coverage["library_calls"] > 0
    assert coverage["host_fallbacks"] == 0
    assert len({kernel["name"] for kernel in kernels}) == coverage["kernels"]
    assert sum(kernel.get("spill_stores", 0) + kernel.get("spill_loads", 0) for kernel in kernels) == 0
    return made


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ALL if os.environ.get("HP_ALL_CELLS") else ["bert"])
def test_compiled(hp: Callable[..., Outcome], name: str, target: str, tmp_path: Path) -> None:
    words = [ROOT / "examples" / f"{name}.py", *MORE.get(name, ()), "--preset", "megatron", "--mesh", "dp=2,tp=2"]
    words += ["--target", target, *TARGETS[target], "--json", "-q"]
    whole = compiled(hp, words, "1TiB", tmp_path / "whole")
    half = compiled(hp, words, f"{whole['peak_bytes'] // 2}B", tmp_path / "half")
    assert half["peak_bytes"] <= whole["peak_bytes"] // 2
