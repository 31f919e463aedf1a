# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What ``hp compile`` says of a program for GPUs or NPUs: how much of it kernels and libraries do, and what kernels take."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hyperparallel.compiled import CompiledProgram


def kernel_report(program: CompiledProgram) -> Any:
    """The coverage and the kernels of a program; by group, where groups of devices run different ones.

    Args:
        program: A compiled program.

    Returns:
        What its kernels.json holds; None for the CPU.
    """
    from hyperparallel.compiled import COVERAGE_FILE

    if program.programs:
        reports = {str(one.group): kernel_report(one) for one in program.programs}
        return None if None in reports.values() else reports
    path = program.directory / COVERAGE_FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def kernel_summary(name: str, report: Mapping[str, Any]) -> list[str]:
    """Lines of text for one program's report.

    Args:
        name: What the program is called.
        report: Its coverage and kernels.
    """
    counts = report["coverage"]
    lines = [
        f"{name}: {counts['kernels']} kernels in {counts['launches']} launches, {counts['library_calls']} calls of "
        f"libraries, {counts['copies']} copies between tiers, {counts['host_fallbacks']} accesses by the host"
    ]
    lines.extend(f"  {count} products: {told}" for told, count in report.get("epilogues", {}).items())
    lines.extend(f"  {count} attention: {told}" for told, count in report.get("attention", {}).items())
    if workspace := report.get("workspace"):
        lines.append(
            f"  workspaces of {workspace['calls']} calls of libraries, of at most {workspace['bytes']} bytes: "
            f"{workspace['because']}"
        )
    by_architecture: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    by_core: Counter[str] = Counter()
    for kernel in report["kernels"]:
        if "core" in kernel:
            by_core[kernel["core"]] += 1
        else:
            by_architecture[kernel["architecture"]].append(kernel)
    lines.extend(f"  {core}: {count} kernels" for core, count in by_core.items())
    for architecture, kernels in by_architecture.items():
        spilled = [kernel["name"] for kernel in kernels if kernel["spill_stores"] or kernel["spill_loads"]]
        most = max(kernel["registers"] for kernel in kernels)
        shared = max(kernel["shared_bytes"] for kernel in kernels)
        told = f"spills in {', '.join(spilled)}" if spilled else "no spills"
        lines.append(
            f"  {architecture}: at most {most} registers a thread and {shared} bytes of shared memory a block, {told}"
        )
    for kernels in list(by_architecture.values())[:1]:  # accesses are the same on all
        lines.append("  kernel                          registers  shared  bytes a load       bytes a store")
        lines.extend(
            f"  {kernel['name']:<30}  {kernel['registers']:>9}  {kernel['shared_bytes']:>6}  "
            f"{_widths(kernel['loads']):<17}  {_widths(kernel['stores'])}"
            for kernel in kernels
        )
    return lines


def _widths(counts: Mapping[str, int]) -> str:
    """Such as ``16x4 4``: four instructions of 16 bytes, one of 4."""
    wide = sorted(((int(width), count) for width, count in counts.items()), reverse=True)
    return " ".join(f"{width}x{count}" if count > 1 else str(width) for width, count in wide) or "-"


__all__ = ["kernel_report", "kernel_summary"]
