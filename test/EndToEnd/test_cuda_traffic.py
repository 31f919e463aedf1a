# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What kernels of whole models move: whole sectors, and rows once, as the fake driver counts it for their warps.

Sizes are multiples of 32 bytes, so that sectors that are moved for nothing are the kernel's fault. Each model takes some
seconds: the fake runs a kernel thread by thread. HP_ALL_CELLS=1 adds the other trainings. docs/Kernels.md shows the same.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from gpu_models import case, reports
from kernel_page import ARCHITECTURES, RUN, assert_on_page, rows, summary
from traffic import VARIABLE, read_traffic

from hyperparallel.plan import Plan

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = pytest.mark.usefixtures("fake_gpu", "one_worker")

MOST_EXCESS = 1.25
"""Sectors that move for each that the bytes of a warp's request need."""
MOST_AGAIN = 1.5
"""How often a block that does a row moves a sector: once what is the row's, read or written; what all rows read may come by twice."""
FEW = 64
"""Sectors below which a kernel is left out: a column of numbers is a sector a row, whoever writes it."""
QUICK = [*RUN, "gpt2_train", "llama_train"]
REST = ["bert_train", "vit_train", "mixtral_train"]


@pytest.mark.parametrize("name", QUICK + (REST if os.environ.get("HP_ALL_CELLS") else []))
def test_every_kernel_moves_whole_sectors(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = case(name, **RUN[name.removesuffix("_train")])
    program = one.compile(Plan(preset="megatron"), "tp=1", tmp_path / "program", architectures=",".join(ARCHITECTURES))
    monkeypatch.setenv(VARIABLE, str(tmp_path / "traffic.jsonl"))
    one.run(program)
    traffic = read_traffic(tmp_path / "traffic.jsonl")
    (report,) = reports(program)
    assert sum(kernel["spill_stores"] + kernel["spill_loads"] for kernel in report["kernels"]) == 0
    assert {kernel["name"] for kernel in report["kernels"]} == set(traffic), "every kernel runs"
    for kernel in traffic.values():
        if kernel.sectors > FEW:
            assert kernel.excess <= MOST_EXCESS, kernel
        assert kernel.conflicts <= 1.1, kernel
        if kernel.shared_passes:
            assert kernel.again <= MOST_AGAIN, kernel
    whole = sum(kernel.sectors for kernel in traffic.values()) / sum(kernel.needed for kernel in traffic.values())
    assert whole <= 1.05
    assert_on_page([summary(name, report["kernels"], traffic.values()), *rows(name, report["kernels"], traffic)])
