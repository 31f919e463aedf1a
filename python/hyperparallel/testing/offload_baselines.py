# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What others do when a step does not fit: policies to compare plans with, on one tier.

Each works op by op: when an op needs memory that is not there, storages that it does not use leave, by some order, until
it is. They differ in that order and in when copies begin.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from collections.abc import Callable

from hyperparallel.offload import Plan, Problem, Spill, execute
from hyperparallel.testing.offload_oracles import gaps_of, live_bytes

#: What leaves first: the least of (last use, first use, bytes).
Order = Callable[[int, int, int], tuple[int, int]]


def choose(problem: Problem, order: Order, *, ahead: int = 0) -> list[Spill]:  # noqa: C901 (one loop over ops)
    """Spills that make every op fit: what an op needs, and what the next `ahead` ops need if that fits too, stays."""
    count = len(problem.operations)
    uses: list[list[int]] = [[] for _ in problem.storages]
    used: list[set[int]] = []
    for number, op in enumerate(problem.operations):
        used.append({*op.reads, *op.writes})
        for storage in used[-1]:
            uses[storage].append(number)
    used.append({number for number, storage in enumerate(problem.storages) if storage.persistent})
    for storage in used[count]:
        uses[storage].append(count)
    sizes = [storage.bytes for storage in problem.storages]
    present = set(used[count])
    last = [-1] * len(sizes)
    made = [points[0] if points else count for points in uses]
    total = sum(sizes[storage] for storage in present)
    away: dict[int, tuple[int, int]] = {}
    spills: list[Spill] = []
    for slot in range(count + 1):
        for storage in [storage for storage in present if not uses[storage] or uses[storage][-1] < slot]:
            present.remove(storage)
            total -= sizes[storage]
        wanted = set(used[slot])
        for later in range(slot + 1, min(slot + 1 + ahead, count + 1)):
            more = {storage for storage in used[later] if storage in away} | wanted
            if sum(sizes[storage] for storage in more) <= problem.capacity:
                wanted = more
        workspace = problem.operations[slot].workspace if slot < count else 0
        coming = wanted - present
        excess = total + sum(sizes[storage] for storage in coming) + workspace - problem.capacity
        for storage in sorted(present - wanted, key=lambda number: order(last[number], made[number], sizes[number])):
            if excess <= 0:
                break
            if sizes[storage] == 0:
                continue
            present.remove(storage)
            total -= sizes[storage]
            excess -= sizes[storage]
            away[storage] = (last[storage], slot)
        for storage in coming:
            present.add(storage)
            total += sizes[storage]
            if storage in away:
                after, freed = away.pop(storage)
                before = uses[storage][bisect_right(uses[storage], after)]
                spills.append(Spill(storage, after, before, freed, slot))
        for storage in used[slot]:
            last[storage] = slot
    return _with_copies_kept(problem, spills)


def _with_copies_kept(problem: Problem, spills: list[Spill]) -> list[Spill]:
    """What was not written since it left last has a valid copy below."""
    writes: list[list[int]] = [[] for _ in problem.storages]
    for number, op in enumerate(problem.operations):
        for storage in op.writes:
            writes[storage].append(number)
    left: dict[int, int] = {}
    result: list[Spill] = []
    for spill in sorted(spills, key=lambda one: (one.storage, one.after)):
        before = left.get(spill.storage)
        written = bisect_right(writes[spill.storage], spill.after)
        clean = before is not None and written == bisect_right(writes[spill.storage], before)
        result.append(dataclasses.replace(spill, clean=clean))
        left[spill.storage] = spill.after
    return result


def _oldest(last: int, made: int, size: int) -> tuple[int, int]:
    return last, -size


def _first_made(last: int, made: int, size: int) -> tuple[int, int]:
    return made, -size


def on_demand_lru(problem: Problem) -> float:
    """Seconds when copies begin when memory is needed, and are waited for; the least recently used leaves."""
    out, back = problem.tiers[0].out, problem.tiers[0].back
    seconds = sum(op.seconds for op in problem.operations)
    for spill in choose(problem, _oldest):
        size = problem.storages[spill.storage].bytes
        seconds += back.seconds(size)
        if not spill.clean:
            seconds += out.seconds(size)
    return seconds


def synchronous(problem: Problem) -> Plan:
    """Copies out when a storage was used last, and waits; copies in when it is needed, and waits; the longest gaps leave.

    Raises:
        ValueError: Nothing that could leave makes it fit.
    """
    starts = [0.0]
    for op in problem.operations:
        starts.append(starts[-1] + op.seconds)
    over = [live - problem.capacity for live in live_bytes(problem)]
    gaps = gaps_of(problem)
    chosen: set[int] = set()
    for number in sorted(
        range(len(gaps)), key=lambda one: starts[gaps[one].after + 1] - starts[min(gaps[one].before, len(starts) - 1)]
    ):
        gap = gaps[number]
        away = range(gap.after + 1, gap.before)
        if any(over[slot] > 0 for slot in away):
            chosen.add(number)
            for slot in away:
                over[slot] -= problem.storages[gap.storage].bytes
    if max(over) > 0:
        raise ValueError(f"expected room for {max(over)} bytes more")
    spills: list[Spill] = []
    written = {storage for op in problem.operations for storage in op.writes}
    lies_below = [storage.clean and number not in written for number, storage in enumerate(problem.storages)]
    for number, gap in enumerate(gaps):
        lies_below[gap.storage] &= not gap.written
        if number in chosen:
            is_clean = lies_below[gap.storage]
            spills.append(Spill(gap.storage, gap.after, gap.before, gap.after + 1, gap.before, clean=is_clean))
            lies_below[gap.storage] = True
    return execute(problem, spills)


def one_op_ahead(problem: Problem) -> float:
    """Seconds when copies out overlap, and copies in begin one op before they are needed (vDNN)."""
    return execute(problem, choose(problem, _oldest, ahead=1)).seconds


def greedy_at_consumer(problem: Problem) -> float:
    """Seconds when the earliest made leaves, larger ones first, overlapping, and comes back when it is needed."""
    return execute(problem, choose(problem, _first_made)).seconds


def reverse_sweep(problem: Problem) -> Plan:
    """Reloads as late as one queue allows, found backwards from the uses, whatever memory there is (PyTorch)."""
    spills = choose(problem, _first_made)
    back = problem.tiers[0].back
    starts = [0.0]
    for op in problem.operations:
        starts.append(starts[-1] + op.seconds)
    free = starts[-1]
    placed: list[Spill] = []
    for spill in sorted(spills, key=lambda one: -one.before):
        size = problem.storages[spill.storage].bytes
        free = min(free, starts[spill.before]) - back.seconds(size)
        slot = bisect_right(starts, free) - 1
        placed.append(dataclasses.replace(spill, fetched=min(max(slot, spill.freed), spill.before)))
    return execute(dataclasses.replace(problem, capacity=1 << 60), placed)


__all__ = ["choose", "greedy_at_consumer", "on_demand_lru", "one_op_ahead", "reverse_sweep", "synchronous"]
