# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``--device-memory``: what is too small is refused and leaves nothing behind; peaks are told tier by tier."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

PLAN = ("--preset", "data_parallel", "--mesh", "dp=1")


def test_too_small_a_memory(hp: Callable[..., Any], model_dir: Path, tmp_path: Path) -> None:
    """Tier, op, needed and available bytes, the smallest capacity; and a command that shows the same (case 24)."""
    program = tmp_path / "made" / "program"
    outcome = hp("compile", model_dir, *PLAN, "--device-memory", "512B", "-o", program)
    assert outcome.status == 1
    assert outcome.out == ""
    assert "Traceback" not in outcome.err
    assert "small does not fit into 512 bytes of device memory" in outcome.err
    needed = re.search(r"expected tier local to have at least .* \((\d+) bytes\) for (\S+)", outcome.err)
    assert needed is not None
    smallest = int(needed[1])
    assert "but got 512 B (512 bytes)" in outcome.err
    assert f"{smallest} bytes is the smallest capacity that can work" in outcome.err
    # What is said to be enough was tried.
    enough = re.search(r"; (\d+) bytes are enough", outcome.err)
    assert enough is not None
    assert int(enough[1]) >= smallest
    fits = json.loads(hp("run", model_dir, "-q", *PLAN, "--device-memory", f"{enough[1]}B", "--json").out)
    assert fits["peak_bytes"]["device"] <= int(enough[1])
    # Neither the program nor a part of one, hidden or not.
    assert not program.parent.exists() or list(program.parent.iterdir()) == []

    command = re.search(r"hp-opt \S.*$", outcome.err, re.MULTILINE)
    assert command is not None
    again = subprocess.run(command[0], shell=True, capture_output=True, text=True, check=False)
    assert again.returncode == 1
    assert again.stdout == ""
    assert f"{smallest} bytes is the smallest capacity that can work" in again.stderr

    # An older program stays as it was.
    assert hp("compile", model_dir, *PLAN, "-o", program).status == 0
    before = {path.name: path.read_bytes() for path in program.iterdir()}
    assert hp("compile", model_dir, *PLAN, "--device-memory", "512B", "-o", program).status == 1
    assert {path.name: path.read_bytes() for path in program.iterdir()} == before


def test_peaks_by_tier(hp: Callable[..., Any], model_dir: Path) -> None:
    """The device's own peak is one number; what lies below it is another."""
    free = json.loads(hp("run", model_dir, "-q", *PLAN, "--json").out)
    assert free["peak_bytes"] == {"device": free["peak_bytes_per_device"][0]}
    limit = free["peak_bytes_per_device"][0] - 64
    report = json.loads(hp("run", model_dir, "-q", *PLAN, "--device-memory", f"{limit}B", "--json").out)
    assert report["peak_bytes_per_device"] == [report["planned_peak_bytes"]]
    assert report["peak_bytes"]["device"] == report["planned_peak_bytes"] <= limit
    # A weight of 10 x 10, or both.
    assert report["peak_bytes"]["host"] in (448, 896)


def test_without_a_plan_it_is_one_device(hp: Callable[..., Any], model_dir: Path) -> None:
    """Nothing has to be said of devices where there is one; the limit holds there, too."""
    ran = hp("run", model_dir, "-q", "--json")
    assert ran.status == 0, ran.err
    report = json.loads(ran.out)
    assert len(report["peak_bytes_per_device"]) == 1
    limit = report["peak_bytes_per_device"][0] - 64
    limited = json.loads(hp("run", model_dir, "-q", "--device-memory", f"{limit}B", "--json").out)
    assert limited["peak_bytes"]["device"] <= limit
    assert hp("run", model_dir, "-q", "--devices", "2").status == 1
