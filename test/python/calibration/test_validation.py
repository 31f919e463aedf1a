# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small version of benchmarks/simulator_validation.py: whole programs take what is predicted, to within a factor of three.

Where more wants to run than there are cores, nothing can be said about what a run takes, and the test is skipped.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from hyperparallel.calibration import calibrate

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    """The benchmark as a module."""
    spec = importlib.util.spec_from_file_location(
        "simulator_validation", ROOT / "benchmarks" / "simulator_validation.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_kendalls_tau(benchmark: ModuleType) -> None:
    assert benchmark.kendall_tau([1, 2, 3, 4], [10, 20, 30, 40]) == 1
    assert benchmark.kendall_tau([1, 2, 3, 4], [4, 3, 2, 1]) == -1
    assert benchmark.kendall_tau([1, 2, 3, 4], [1, 2, 4, 3]) == pytest.approx(2 / 3)
    assert benchmark.kendall_tau([1, 1, 2], [1, 2, 3]) == pytest.approx(2 / 6**0.5)


def idle_share() -> float:
    """The part of the time of all cores that nothing used, over a third of a second (1 where nobody tells)."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return 1.0
    readings: list[list[int]] = []
    for wait in (0.3, 0.0):
        readings.append([int(ticks) for ticks in stat.read_text().split("\n", 1)[0].split()[1:]])
        time.sleep(wait)
    spent = [after - before for before, after in zip(*readings, strict=True)]
    return (spent[3] + spent[4]) / max(sum(spent), 1)


@pytest.mark.alone
def test_predictions_hold_for_whole_programs(benchmark: ModuleType, tmp_path: Path) -> None:
    if idle_share() < 0.5:
        pytest.skip("the machine is busy")
    pytest.importorskip("torch", reason="models are imported from PyTorch")
    machine = calibrate("mine", quick=True).machine
    for model, mesh in (("mlp-small", "dp=1"), ("mlp-small", "tp=2"), ("mlp-medium", "dp=2")):
        case = benchmark.make_case(model, mesh, tmp_path)
        case.run(10, 1.0)
        row = benchmark.row_of(case, machine)
        assert 1 / 3 < row["predicted_s"] / row["measured_s"] < 3, row
