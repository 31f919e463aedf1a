# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docs/Kernels.md: what ptxas says of the kernels of every example, and what they move.

``python docs/kernels.py`` writes the page; tests that compile an example compare its lines.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from traffic import Traffic

from hyperparallel import ptxas

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "Kernels.md"
ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
FULL = "sm_90"
"""The architecture of which the page has every kernel of the forward models."""

_TEXT = {"layers": 1, "width": 64, "heads": 2, "vocab": 96, "batch": 2, "seq": 32}
_GROUPED = {**_TEXT, "ff": 96, "kv_heads": 1}
RUN: dict[str, dict[str, Any]] = {
    "gpt2": {**_TEXT, "positions": 32},
    "llama": _GROUPED,
    "bert": {**_TEXT, "ff": 96, "positions": 32},
    # 64 patches and the token of the class: 65 rows, of which a kernel has odd ones.
    "vit": {"layers": 1, "width": 64, "heads": 2, "ff": 96, "image": 64, "patch": 8, "batch": 1},
    "mixtral": _GROUPED,
}
"""Examples that run on the fake GPU, forward and in training. Their sizes are multiples of 32 bytes."""
COMPILED: dict[str, dict[str, Any]] = {
    "mlp": {"layers": 2},
    "mlp_train": {"layers": 2},
    "two_layers": {},
    "convnet": {"layers": 1},
    "convnet_train": {"layers": 1},
    "dlrm": {"tables": 2},
    "dlrm_train": {"tables": 2},
    "gpt2_decode": {"layers": 1, "width": 64, "heads": 2, "vocab": 96, "length": 32},
    "llama_decode": {"layers": 1, "width": 64, "heads": 2, "kv_heads": 1, "ff": 96, "vocab": 96, "length": 32},
    "captioner": {"encoder_layers": 1, "decoder_layers": 1, "width": 64, "heads": 2, "vocab": 96, "image": 56},
    "rl": {"layers": 1, "generate": 2},
}
"""Examples that are compiled only. The Llama of 405B is the other one's kernels at sizes that no machine here holds."""


def kernels_of(made: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The kernels of a program, or of all those that it consists of.

    Args:
        made: What ``hp compile --json`` tells.
    """
    report = made["kernels"]
    parts = [report] if "coverage" in report else report.values()
    kernels = [kernel for part in parts for kernel in part["kernels"]]
    per_chip = Counter(kernel["architecture"] for kernel in kernels)
    assert all(per_chip[chip] == sum(part["coverage"]["kernels"] for part in parts) for chip in ARCHITECTURES)
    return kernels


def release() -> str:
    """The release of ptxas, such as ``13.0``; its registers are its own."""
    told = subprocess.run([ptxas.find_ptxas(), "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"release ([\d.]+)", told)
    return found.group(1) if found else told.strip()


def summary(name: str, kernels: Sequence[Mapping[str, Any]], traffic: Iterable[Traffic] = ()) -> str:
    """The line of an example.

    Args:
        name: Of the example.
        kernels: What ``hp compile`` says of each, on each architecture.
        traffic: What each moved, if the example ran.
    """
    registers = [
        str(max((one["registers"] for one in kernels if one["architecture"] == chip), default=0))
        for chip in ARCHITECTURES
    ]
    spilled = sum(one["spill_stores"] + one["spill_loads"] for one in kernels)
    shared = max((one["shared_bytes"] for one in kernels), default=0)
    moved, needed = (sum(getattr(one, part) for one in traffic) for part in ("sectors", "needed"))
    count = sum(one["architecture"] == FULL for one in kernels)
    told = f"{moved / needed:.2f}" if needed else ""
    return f"| `{name}.py` | {count} | {' | '.join(registers)} | {spilled} | {shared} | {told} |"


def row(kernel: Mapping[str, Any], moved: Traffic) -> str:
    """The line of a kernel.

    Args:
        kernel: What ``hp compile`` says of it.
        moved: What it moved.
    """

    def widths(counts: Mapping[Any, int]) -> str:
        return ", ".join(
            f"{count} of {width}" for width, count in sorted(Counter(counts).items(), key=lambda x: int(x[0]))
        )

    return (
        f"| {kernel['name']} | {kernel['registers']} | {kernel['shared_bytes']} | {widths(kernel['loads'])} "
        f"| {widths(kernel['stores'])} | {moved.sectors} | {moved.needed} |"
    )


def rows(name: str, kernels: Sequence[Mapping[str, Any]], traffic: Mapping[str, Traffic]) -> list[str]:
    """The lines of a model's kernels; of a training there are none.

    Args:
        name: Of the example.
        kernels: What ``hp compile`` says of each.
        traffic: What each moved.
    """
    return [] if name not in RUN else [row(one, traffic[one["name"]]) for one in kernels if one["architecture"] == FULL]


def assert_on_page(lines: Iterable[str]) -> None:
    """The page has the lines, if it was made by the same release of ptxas.

    Args:
        lines: Some of its lines.
    """
    page = PAGE.read_text(encoding="utf-8")
    if f"ptxas {release()}," not in page:
        pytest.skip(f"docs/Kernels.md was made by another release of ptxas than {release()}")
    missing = [line for line in lines if line not in page.splitlines()]
    assert not missing, "docs/Kernels.md is not up to date; run `python docs/kernels.py`\n" + "\n".join(missing)


__all__ = [
    "ARCHITECTURES",
    "COMPILED",
    "FULL",
    "PAGE",
    "ROOT",
    "RUN",
    "assert_on_page",
    "kernels_of",
    "release",
    "rows",
    "summary",
]
