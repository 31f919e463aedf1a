# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A calibration as a machine file, each number with what it stands on."""

from __future__ import annotations

import platform
from pathlib import Path

from hyperparallel.calibration.measurement import Calibration
from hyperparallel.machines import yaml_text

_HEAD = """\
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The embedded CPU supernode: one thread for each virtual device in one process, collectives through shared memory.
# Made by `hp machine calibrate` on {processor}. Rates, launch and bandwidths are those of one core.
# Standing of each number: M = measured, A = assumption.
"""
_COLUMN = 34


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def calibration_text(calibration: Calibration) -> str:
    """The machine file; reads back as the same machine."""
    lines: list[str] = []
    path: list[str] = []
    for line in yaml_text(calibration.machine).splitlines():
        indent = (len(line) - len(line.lstrip())) // 2
        key = line.strip().rpartition(":")[0] if line.endswith(":") else line.strip().partition(":")[0]
        path = [*path[:indent], key]
        standing = calibration.standings.get(tuple(path))
        lines.append(f"{line:<{_COLUMN}}# {standing}" if standing else line)
    return _HEAD.format(processor=_processor()) + "\n".join(lines) + "\n"


__all__ = ["calibration_text"]
