# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans of small steps, whose times are known in closed form, and what is refused."""

from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("hyperparallel._hyperparallel", reason="the compiled parts are not built")

from hyperparallel import offload
from hyperparallel.offload import Link, Operation, Problem, Spill, Storage, Tier

HOST = Tier("host", 1000, Link(10.0), Link(10.0))
#: 50 bytes have to leave for the second op, and come back for the third.
THREE = Problem(
    (Operation(5.0, writes=(0,)), Operation(20.0, writes=(1,), name="wide"), Operation(5.0, reads=(0,))),
    (Storage(50), Storage(100)),
    100,
    (HOST,),
)


def test_nothing_moves_when_it_fits() -> None:
    plan = offload.plan(dataclasses.replace(THREE, capacity=150))
    assert plan.spills == ()
    assert (plan.seconds, plan.bytes_out, plan.bytes_in, plan.peak_bytes) == (30.0, 0, 0, 150)


def test_closed_form() -> None:
    plan = offload.plan(THREE)
    assert plan.seconds == 5 + 5 + 20 + 5 + 5
    assert plan.bound_seconds == 40
    assert plan.compute_seconds == 30
    assert plan.resident == (50, 100, 50, 0)
    assert plan.below == {"host": (0, 50, 50, 0)}
    (spill,) = plan.spills
    assert (spill.storage, spill.after, spill.freed, spill.fetched, spill.before) == (0, 0, 1, 2, 2)
    assert (spill.out, spill.back) == ((5.0, 10.0), (30.0, 35.0))


def test_what_the_nearest_tier_cannot_hold_bounds_the_step() -> None:
    # Of 50 + 50 bytes that leave for the third op, at least 50 go to the disk and come back, at 1 byte a second.
    writes = tuple(Operation(5.0, writes=(number,)) for number in range(2))
    ops = (*writes, Operation(20.0, writes=(2,)), Operation(5.0, reads=(0, 1)))
    near = Tier("host", 50, Link(10.0), Link(10.0))
    far = Tier("disk", 1000, Link(1.0), Link(1.0))
    plan = offload.plan(Problem(ops, (Storage(50), Storage(50), Storage(100)), 100, (near, far)))
    assert plan.bound_seconds == 50 + 20 + 50
    # The first goes to the disk as soon as it is made.
    assert plan.seconds == 5 + 50 + 20 + 50 + 5
    with pytest.raises(offload.CapacityError, match=r"the tiers below \(host\) to hold 100 bytes at once but got 50"):
        offload.plan(Problem(ops, (Storage(50), Storage(50), Storage(100)), 100, (near,)))


def test_too_small() -> None:
    with pytest.raises(offload.CapacityError, match=r"at least 100 bytes, which op 1 \(wide\) needs.* got 99") as info:
        offload.plan(dataclasses.replace(THREE, capacity=99))
    assert (info.value.tier, info.value.operation, info.value.needed, info.value.available) == ("device", 1, 100, 99)


def test_the_smallest_capacity_works() -> None:
    with pytest.raises(offload.CapacityError) as info:
        offload.plan(dataclasses.replace(THREE, capacity=7))
    assert offload.plan(dataclasses.replace(THREE, capacity=info.value.needed)).peak_bytes <= info.value.needed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"freed": 0}, "to be freed after its use"),
        ({"freed": 3, "fetched": 2}, "to be freed after its use"),
        ({"delay": 1}, "to be copied out after its use and before it is freed"),
        ({"delay": -1}, "to be copied out after its use and before it is freed"),
        ({"fetched": 3}, "fetched before the next"),
        ({"before": 3}, "to lie between neighbouring uses"),
        ({"storage": 7}, "to name storages of the problem"),
        ({"tier": 1}, "to go to a tier of the problem"),
        ({"clean": True}, "to be copied out: no valid copy lies below"),
        ({"recomputed": True}, "to be of what can be computed"),
        ({"freed": 2}, "expected at most 100 bytes at slot 1 but got 150"),
    ],
)
def test_unsafe_plans_are_refused(change: dict[str, int], message: str) -> None:
    safe = Spill(storage=0, after=0, before=2, freed=1, fetched=2)
    assert offload.execute(THREE, [safe]).seconds == 40
    with pytest.raises(offload.OffloadError, match=message):
        offload.execute(THREE, [dataclasses.replace(safe, **change)])
    with pytest.raises(offload.OffloadError, match="to be there once"):
        offload.execute(THREE, [safe, safe])


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (dataclasses.replace(THREE, capacity=-1), "a capacity of at least 0 bytes"),
        (dataclasses.replace(THREE, alignment=0), "an alignment of at least 1"),
        (dataclasses.replace(THREE, storages=(Storage(-1), Storage(1))), "storage 0 to have no negative size"),
        (dataclasses.replace(THREE, storages=(Storage(1),)), "a use to name an operation and a storage"),
        (dataclasses.replace(THREE, operations=(Operation(-1.0),)), "operation 0 to take no negative time"),
        (
            dataclasses.replace(THREE, tiers=(Tier("host", 1, Link(0.0), Link(1.0)),)),
            "the link to tier 0 to have a positive bandwidth",
        ),
        (
            dataclasses.replace(THREE, tiers=(Tier("host", 1, Link(1.0, segment="pcie"), Link(1.0)),)),
            "a link to use one of the segments none",
        ),
        (dataclasses.replace(THREE, storages=(Storage(1, may_start_below=True), Storage(1))), "to be persistent"),
    ],
)
def test_wrong_problems(problem: Problem, message: str) -> None:
    with pytest.raises(offload.OffloadError, match=message):
        offload.plan(problem)


def chain(*seconds: float, sizes: tuple[int, ...], reads: dict[int, tuple[int, ...]]) -> tuple[Operation, ...]:
    """Op i writes storage i, and reads what `reads` says."""
    return tuple(
        Operation(each, reads=reads.get(number, ()), writes=(number,) if number < len(sizes) else ())
        for number, each in enumerate(seconds)
    )


def test_a_clean_storage_leaves_for_nothing() -> None:
    weight = Storage(50, persistent=True, clean=True)
    problem = Problem((Operation(5.0, reads=(0,)), Operation(20.0, writes=(1,))), (weight, Storage(100)), 100, (HOST,))
    plan = offload.plan(problem)
    # It comes back at the end of the step: 50 bytes.
    assert (plan.seconds, plan.bytes_out, plan.bytes_in) == (30.0, 0, 50)
    written = dataclasses.replace(problem, operations=(Operation(5.0, writes=(0,)), Operation(20.0, writes=(1,))))
    assert offload.plan(written).bytes_out == 50
    # Without a copy below it is stored, though nothing writes it.
    assert (
        offload.plan(dataclasses.replace(problem, storages=(Storage(50, persistent=True), Storage(100)))).bytes_out
        == 50
    )


def test_a_copy_below_is_stale_once_it_is_written() -> None:
    """Storage 0 leaves twice; where it is written in between it is copied out again, where it is read it is not."""

    def step(writes: bool) -> Problem:
        between = Operation(5.0, writes=(0,)) if writes else Operation(5.0, reads=(0,))
        ops = (Operation(5.0, writes=(0,)), Operation(5.0, writes=(1,)), between)
        return Problem(
            (*ops, Operation(5.0, writes=(2,)), Operation(5.0, reads=(0,))),
            (Storage(50), Storage(100), Storage(100)),
            100,
            (HOST,),
        )

    clean, stale = offload.plan(step(writes=False)), offload.plan(step(writes=True))
    assert [spill.clean for spill in clean.spills] == [False, True]
    assert [spill.clean for spill in stale.spills] == [False, False]
    assert (clean.bytes_out, stale.bytes_out) == (50, 100)


def test_state_that_may_start_below_stays_there() -> None:
    weight = Storage(50, persistent=True, clean=True, may_start_below=True)
    ops = (Operation(5.0, reads=(0,)), Operation(20.0, writes=(1,)), Operation(7.0, writes=(2,)))
    problem = Problem(ops, (weight, Storage(100), Storage(50)), 100, (HOST,))
    plan = offload.plan(problem)
    # In every step it comes in while op 2 runs, for the next one, and is dropped after op 0.
    assert (plan.seconds, plan.bytes_out, plan.bytes_in) == (32.0, 0, 50)
    (spill,) = plan.spills
    assert (spill.after, spill.freed, spill.fetched, spill.before) == (0, 1, 2, 4)
    assert plan.resident == (50, 100, 100, 50)


def test_unused_state_that_may_start_below_takes_no_room() -> None:
    unused = Storage(500, persistent=True, may_start_below=True)
    plan = offload.plan(dataclasses.replace(THREE, storages=(*THREE.storages, unused)))
    assert plan.seconds == 40


def test_pinned_storages_stay() -> None:
    pinned = dataclasses.replace(THREE, storages=(Storage(50, pinned=True), Storage(100)))
    with pytest.raises(offload.CapacityError, match="at least 150 bytes, which op 1"):
        offload.plan(pinned)


def test_an_empty_tensor_does_not_move() -> None:
    assert offload.plan(dataclasses.replace(THREE, storages=(Storage(50), Storage(100), Storage(0)))).seconds == 40
    assert offload.plan(dataclasses.replace(THREE, storages=(Storage(0), Storage(100)))).spills == ()


def test_one_copy_out_serves_two_gaps() -> None:
    ops = (
        Operation(10.0, writes=(0,)),
        Operation(10.0, writes=(1,)),
        Operation(10.0, reads=(0,)),
        Operation(10.0, writes=(2,)),
        Operation(10.0, reads=(0,)),
    )
    plan = offload.plan(Problem(ops, (Storage(50), Storage(100), Storage(100)), 100, (HOST,)))
    assert (plan.bytes_out, plan.bytes_in, plan.seconds) == (50, 100, 50 + 5 + 5 + 5)
    assert [spill.clean for spill in plan.spills] == [False, True]


def test_a_storage_is_copied_out_before_it_has_to_leave() -> None:
    """Storage 0 is copied out while op 1 goes on, stays for op 2, and is then dropped without a wait."""
    ops = (
        Operation(5.0, writes=(0,)),
        Operation(5.0, writes=(1,)),
        Operation(5.0, reads=(0, 1), writes=(2,)),
        Operation(5.0, reads=(2,), writes=(3,)),
        Operation(5.0, reads=(0, 3)),
    )
    problem = Problem(ops, (Storage(50), Storage(10), Storage(30), Storage(60)), 110, (HOST,))
    early, late = Spill(0, 0, 2, 2, 2), Spill(0, 2, 4, 3, 4, clean=True)
    plan = offload.execute(problem, [early, late])
    assert (plan.seconds, plan.bytes_out, plan.bytes_in, plan.peak_bytes) == (25 + 5, 50, 50, 110)
    assert (plan.spills[0].out, plan.spills[1].back) == ((5.0, 10.0), (20.0, 25.0))
    assert offload.plan(problem).seconds == 30
    # Copied out when it leaves, it is waited for.
    assert offload.execute(problem, [dataclasses.replace(late, clean=False)]).seconds == 25 + 5 + 5


def test_alignment_and_chunks() -> None:
    aligned = dataclasses.replace(THREE, alignment=64, capacity=128)
    assert offload.plan(aligned).resident == (64, 128, 64, 0)
    slow = Tier("host", 1000, Link(10.0, latency=1.0), Link(10.0, latency=1.0))
    assert offload.plan(dataclasses.replace(THREE, tiers=(slow,))).seconds == 42
    # Five chunks each way, each with the latency; then only those on the way back.
    through = Link(10.0, latency=1.0, staging=10)
    assert offload.plan(dataclasses.replace(THREE, tiers=(Tier("host", 1000, through, through),))).seconds == 50
    assert offload.plan(dataclasses.replace(THREE, tiers=(Tier("host", 1000, slow.out, through),))).seconds == 46


def test_copies_of_one_slot_share_a_latency() -> None:
    """Three small tensors that leave and come back together take a latency each way, not three."""
    host = Tier("host", 1000, Link(10.0, latency=2.0), Link(10.0, latency=2.0))
    ops = (Operation(5.0, writes=(0, 1, 2)), Operation(20.0, writes=(3,)), Operation(5.0, reads=(0, 1, 2)))
    storages = (Storage(10), Storage(10), Storage(10), Storage(100))
    plan = offload.plan(Problem(ops, storages, 100, (host,)))
    assert plan.seconds == 30 + 2 * (2 + 3)
    assert [spill.out for spill in plan.spills] == [(5.0, 8.0), (8.0, 9.0), (9.0, 10.0)]


def test_small_copies_out_wait_for_the_next() -> None:
    """What takes less than the latency is submitted with what comes soon after it, and so hides better."""
    host = Tier("host", 1000, Link(10.0, latency=2.0), Link(10.0))
    ops = (
        Operation(1.0, writes=(0,)),
        Operation(1.0, writes=(1,)),
        Operation(3.0),
        Operation(10.0, writes=(2,)),
        Operation(1.0, reads=(0, 1)),
    )
    plan = offload.plan(Problem(ops, (Storage(10), Storage(10), Storage(100)), 100, (host,)))
    # Two latencies would be over one second after op 2.
    assert plan.seconds == 16 + 1 + 2
    assert [spill.delay for spill in plan.spills] == [1, 0]


def test_copies_slow_down_what_is_bound_by_memory() -> None:
    # 40 bytes leave in 4 s while op 1, which takes all of the memory's 20 B/s, goes on at half its speed.
    ops = (
        Operation(1.0, writes=(0,)),
        Operation(10.0, memory_bytes=200),
        Operation(1.0, writes=(1,)),
    )
    ops = (*ops, Operation(1.0, reads=(0,)))
    problem = Problem(ops, (Storage(40), Storage(100)), 100, (HOST,))
    assert offload.plan(problem).seconds == 13 + 4
    plan = offload.plan(dataclasses.replace(problem, memory_bandwidth=20.0))
    assert plan.seconds == 13 + 4 + 2
    assert plan.slowed_down == pytest.approx(2)
    assert plan.bound_seconds == 11 + 1 + 4 + 1


def test_links_share_a_segment() -> None:
    # Two tiers of 10 B/s each behind a wire of 10: the two copies take as long as one after the other.
    one, two = (Tier(name, 60, Link(10.0, segment="wire"), Link(10.0)) for name in ("near", "far"))
    ops = (Operation(1.0, writes=(0, 1)), Operation(1.0, writes=(2,)), Operation(1.0, reads=(0, 1)))
    storages = (Storage(50), Storage(50), Storage(100))
    problem = Problem(ops, storages, 100, (one, two), segments={"wire": 10.0})
    plan = offload.plan(problem)
    assert {spill.tier for spill in plan.spills} == {0, 1}
    assert plan.seconds == 1 + 10 + 1 + 5 + 1
    assert max(plan.below["near"]) == max(plan.below["far"]) == 50


def test_tiers_fill_up() -> None:
    full = dataclasses.replace(THREE, tiers=(Tier("host", 49, Link(10.0), Link(10.0)),))
    with pytest.raises(
        offload.CapacityError, match=r"the tiers below \(host\) to hold 50 bytes at once but got 49"
    ) as e:
        offload.plan(full)
    assert (e.value.tier, e.value.needed, e.value.available) == ("host", 50, 49)
    outward = dataclasses.replace(full, tiers=(*full.tiers, Tier("ssd", 1000, Link(5.0), Link(5.0))))
    plan = offload.plan(outward)
    assert [spill.tier for spill in plan.spills] == [1]
    assert plan.seconds == 50


def test_computing_again_is_used_where_it_is_faster() -> None:
    again = Storage(50, recompute_seconds=2.0, recompute_from=(2,))
    ops = (
        Operation(5.0, reads=(2,), writes=(0,)),
        Operation(20.0, writes=(1,)),
        Operation(5.0, reads=(0, 2)),
    )
    problem = Problem(ops, (again, Storage(100), Storage(1)), 101, (HOST,))
    plan = offload.plan(problem)
    assert plan.seconds == 32
    (spill,) = plan.spills
    assert spill.recomputed
    assert (plan.bytes_out, plan.bytes_in) == (0, 0)
    dear = dataclasses.replace(
        problem, storages=(dataclasses.replace(again, recompute_seconds=11.0), *problem.storages[1:])
    )
    assert offload.plan(dear).seconds == 40


def test_what_is_computed_again_may_be_a_source() -> None:
    """Both are dropped for the third operation; the second is made of the first, which was made again before."""
    source, first = Storage(1), Storage(50, recompute_seconds=2.0, recompute_from=(0,))
    second = Storage(50, recompute_seconds=3.0, recompute_from=(1,))
    ops = (
        Operation(5.0, reads=(0,), writes=(1,)),
        Operation(5.0, reads=(1,), writes=(2,)),
        Operation(20.0, writes=(3,)),
        Operation(5.0, reads=(0, 1)),
        Operation(5.0, reads=(2,)),
    )
    plan = offload.plan(Problem(ops, (source, first, second, Storage(100)), 101, (HOST,)))
    assert sorted((spill.storage, spill.before, spill.recomputed) for spill in plan.spills) == [
        (1, 3, True),
        (2, 4, True),
    ]
    assert plan.seconds == 45
    # Before the same operation, or while its source is away, it cannot be made.
    swapped = (*ops[:3], Operation(5.0, reads=(0, 2)), Operation(5.0, reads=(1,)))
    plan = offload.plan(Problem(swapped, (source, first, second, Storage(100)), 101, (HOST,)))
    assert sum(spill.recomputed for spill in plan.spills) == 1


def test_plans_are_deterministic() -> None:
    assert offload.plan(THREE) == offload.plan(THREE)
