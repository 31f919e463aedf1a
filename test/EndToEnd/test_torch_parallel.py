# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The comparison with PyTorch's own parallelism: the plans are plans, the script computes the same, and the claim holds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hyperparallel.plan import Plan

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "torch_parallel"
sys.path.append(str(FOLDER))

from lines import SCRIPTS, parallel_lines, plan_lines  # noqa: E402


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_plan_is_less_than_two_fifths_of_the_script(script: str) -> None:
    Plan.load(FOLDER / f"{script}.yaml")
    assert 0 < plan_lines(script) <= 0.4 * parallel_lines(script)


@pytest.mark.parametrize("script", ["pipeline_tensor", "expert_parallel"])
def test_what_is_counted_trains_as_one_process_does(script: str) -> None:
    pytest.importorskip("torch.distributed.pipelining", reason="torch has no pipelining here")
    command = [sys.executable, str(FOLDER / "harness.py"), script]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    shown = json.loads(run.stdout)
    assert shown["error"] < 1e-5
    assert shown["losses"][0] > shown["losses"][-1] > 0
