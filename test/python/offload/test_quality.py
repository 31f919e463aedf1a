# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a good plan looks like (cases 19, 20 and 23): reloads in their order, no stall where bandwidth allows, no cliff."""

from __future__ import annotations

import pytest

pytest.importorskip("hyperparallel._hyperparallel", reason="the compiled parts are not built")

import itertools

from hyperparallel import offload
from hyperparallel.offload import Link, Operation, Problem, Storage, Tier


def layers(count: int, capacity: int, bandwidth: float) -> Problem:
    """Each layer saves 100 bytes in its second going forward, and wants them back in its second going backward."""
    forward = tuple(Operation(1.0, writes=(i,)) for i in range(count))
    backward = tuple(Operation(1.0, reads=(i,)) for i in reversed(range(count)))
    host = Tier("host", 10**6, Link(bandwidth), Link(bandwidth))
    return Problem(forward + backward, (Storage(100),) * count, capacity, (host,))


def test_case_19_reloads_follow_what_frees_their_memory() -> None:
    """Of A, B, C, D the first two leave; B comes when D's memory is free, A when C's is, and not both early."""
    plan = offload.plan(layers(4, 200, 100.0))
    fetched = {spill.storage: spill.fetched for spill in plan.spills}
    assert set(fetched) == {0, 1}
    # Backward: D is op 4, C op 5, B op 6, A op 7.
    assert (fetched[1], fetched[0]) == (5, 6)
    assert plan.peak_bytes == 200


@pytest.mark.parametrize("resident", [4, 5, 6])
def test_case_20_no_stall_where_bandwidth_allows(resident: int) -> None:
    plan = offload.plan(layers(8, resident * 100 + 100, 100.0))
    assert len(plan.spills) >= 8 - resident - 1
    assert plan.seconds == plan.compute_seconds


def test_case_23_no_cliff() -> None:
    """A little less memory costs in proportion; less memory and less bandwidth never help."""
    count, live = 50, 5000
    slow = 25.0
    assert offload.plan(layers(count, live, slow)).seconds == 2 * count
    # 98 %: one storage has to leave, and there is time for it.
    assert offload.plan(layers(count, live * 98 // 100, slow)).seconds == pytest.approx(2 * count)
    by_capacity = [offload.plan(layers(count, live * part // 100, slow)) for part in range(100, 10, -6)]
    seconds = [plan.seconds for plan in by_capacity]
    assert all(a <= b + 1e-9 for a, b in itertools.pairwise(seconds))
    for before, after in itertools.pairwise(by_capacity):
        # What leaves for six percent less (three storages), out and back.
        assert after.seconds - before.seconds <= 2 * 300 / slow + 1e-9
        assert after.peak_bytes <= before.peak_bytes
    by_bandwidth = [offload.plan(layers(count, 1500, bandwidth)).seconds for bandwidth in (10.0, 20.0, 40.0, 80.0)]
    assert all(a >= b for a, b in itertools.pairwise(by_bandwidth))
