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
    assert plan.bound_seconds == plan.compute_seconds == 30
    assert plan.resident == (50, 100, 50, 0)
    assert plan.below == {"host": (0, 50, 50, 0)}
    (spill,) = plan.spills
    assert (spill.storage, spill.after, spill.freed, spill.fetched, spill.before) == (0, 0, 1, 2, 2)
    assert (spill.out, spill.back) == ((5.0, 10.0), (30.0, 35.0))


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
