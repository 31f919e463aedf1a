# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much of a program for GPUs or NPUs kernels and libraries do, and what these take: its ``kernels.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hyperparallel.bishengir import count_operations
from hyperparallel.compiled import COVERAGE_FILE, FRAGMENTS_FILE, PROGRAM_FILE


def write_coverage(directory: Path, kernels: Sequence[Mapping[str, Any]]) -> None:
    """Say how much of a program are calls of libraries, kernels, copies, or left to the host.

    Calls are counted in the program's text: one in a function that stands for many blocks counts once.
    """
    description = json.loads((directory / PROGRAM_FILE).with_suffix(".json").read_text(encoding="utf-8"))
    calls: dict[str, int] = description["calls"]
    coverage = {
        "kernels": len(description["kernels"]),
        "launches": calls.get("hp_rt_launch", 0),
        "library_calls": calls.get("hp_rt_matmul", 0) + calls.get("hp_rt_library", 0),
        "copies": calls.get("hp_rt_copy_start", 0) + calls.get("hp_rt_copy_rows_start", 0),
        "host_fallbacks": calls.get("hp_rt_read", 0) + calls.get("hp_rt_write", 0),
    }
    report: dict[str, Any] = {"coverage": coverage, "kernels": list(kernels)}
    report.update({told: description[told] for told in ("epilogues", "attention", "workspace") if told in description})
    if "operations" in description:
        report["operations"] = {
            "library": {"product": calls.get("hp_rt_matmul", 0), **description["operations"]},
            "fragment": count_operations(directory / FRAGMENTS_FILE),
            "host": {"read": calls.get("hp_rt_read", 0), "write": calls.get("hp_rt_write", 0)},
        }
        report["choices"] = description["choices"]
    (directory / COVERAGE_FILE).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def reserved_workspace(directory: Path) -> int:
    """Bytes of the largest workspace in a program's report."""
    told = json.loads((directory / COVERAGE_FILE).read_text(encoding="utf-8"))["workspace"]
    return 0 if told is None else int(told["bytes"])


__all__ = ["reserved_workspace", "write_coverage"]
