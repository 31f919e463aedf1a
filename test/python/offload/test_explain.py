# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is said of each storage: where it went, and what of its copies is hidden."""

from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("hyperparallel._hyperparallel", reason="the compiled parts are not built")

from hyperparallel import offload
from hyperparallel.offload import Fate, Link, Operation, Problem, Storage, Tier
from hyperparallel.testing import offload_oracles as oracles

HOST = Tier("host", 1000, Link(10.0), Link(10.0))
STEP = Problem(
    (
        Operation(5.0, writes=(0,)),
        Operation(3.0, writes=(2,)),
        Operation(20.0, writes=(1,)),
        Operation(5.0, reads=(0, 2)),
    ),
    (Storage(50, name="activation"), Storage(100), Storage(10, name="small")),
    110,
    (HOST,),
)


def test_moved_and_kept() -> None:
    plan = offload.plan(STEP)
    moved, kept = offload.explain(STEP, plan)
    # 5 s out, of which 3 behind op 1; 5 s in, all of them waited for.
    assert plan.seconds == 33 + 2 + 5
    assert (moved.name, moved.fate, moved.tier, moved.after, moved.before) == ("activation", Fate.MOVED, "host", 0, 3)
    assert (moved.copy_seconds, moved.hidden_seconds, moved.exposed_seconds) == (10, 3, 7)
    assert moved.gap_seconds == 3 + 2 + 20 + 5
    assert moved.break_even_bandwidth == pytest.approx(100 / 30)
    assert (kept.name, kept.fate, kept.tier, kept.copy_seconds) == ("small", Fate.KEPT, "device", 0)


def test_computed_again() -> None:
    again = dataclasses.replace(STEP.storages[0], recompute_seconds=1.0, recompute_from=())
    problem = dataclasses.replace(STEP, storages=(again, *STEP.storages[1:]))
    report = offload.explain(problem, offload.plan(problem))[0]
    assert (report.fate, report.copy_seconds, report.exposed_seconds) == (Fate.RECOMPUTED, 0, 0)


@pytest.mark.parametrize("seed", range(12))
def test_all_waits_are_somebody_s(seed: int) -> None:
    problem = oracles.random_step(seed)
    plan = offload.plan(problem)
    reports = offload.explain(problem, plan)
    exposed = sum(report.exposed_seconds for report in reports)
    assert exposed == pytest.approx(plan.waits_out + plan.waits_in)
    assert exposed + plan.compute_seconds == pytest.approx(plan.seconds)
    assert {report.storage for report in reports if report.fate == Fate.MOVED} == {s.storage for s in plan.spills}
