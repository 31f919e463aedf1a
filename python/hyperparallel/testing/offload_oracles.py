# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the offload planner is measured against: bounds, and the best plan there is for small steps.

None of it shares code with the planner. The chain that must hold, for one tier whose links are their own:
planner >= :func:`best_seconds` >= :func:`fluid_bound` >= compute, and >= :func:`closed_form_bound` >= compute.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from hyperparallel.errors import MissingDependencyError
from hyperparallel.offload import Link, Operation, Problem, Storage, Tier


@dataclass(frozen=True, slots=True)
class Gap:
    """Two neighbouring uses of a storage; whether it is written since the gap before."""

    storage: int
    after: int
    before: int
    written: bool


def gaps_of(problem: Problem) -> list[Gap]:
    """Every gap with an op in it, those of a storage in order. Storages that may start below are not known here."""
    uses: list[dict[int, bool]] = [{} for _ in problem.storages]
    for number, op in enumerate(problem.operations):
        for storage in op.reads:
            uses[storage].setdefault(number, False)
        for storage in op.writes:
            uses[storage][number] = True
    count = len(problem.operations)
    found: list[Gap] = []
    for number, storage in enumerate(problem.storages):
        if storage.may_start_below:
            raise ValueError("storages that may start below are not known here")
        points = list(uses[number].items())
        if storage.persistent:
            points = [(-1, False), *points, (count, False)]
        written = False
        for (after, writes), (before, _) in pairwise(points):
            written |= writes
            if before - after >= 2 and storage.bytes > 0 and not storage.pinned:
                found.append(Gap(number, after, before, written))
                written = False
    return found


def live_bytes(problem: Problem) -> list[int]:
    """Bytes on the device at each op, and at the end, if nothing moves."""
    count = len(problem.operations)
    first, last = [count] * len(problem.storages), [-1] * len(problem.storages)
    for number, op in enumerate(problem.operations):
        for storage in (*op.reads, *op.writes):
            first[storage] = min(first[storage], number)
            last[storage] = number
    change = [0] * (count + 2)
    for number, storage in enumerate(problem.storages):
        if storage.persistent or last[number] >= 0:
            change[0 if storage.persistent else first[number]] += storage.bytes
            change[(count if storage.persistent else last[number]) + 1] -= storage.bytes
    spaces = [op.workspace for op in problem.operations] + [0]
    return [resident + space for resident, space in zip(accumulate(change), spaces, strict=False)]


def needed_bytes(problem: Problem) -> int:
    """The smallest capacity that could work: what one op uses, or what is resident at the ends."""
    sizes = [storage.bytes for storage in problem.storages]
    pinned = {number for number, storage in enumerate(problem.storages) if storage.pinned}
    if pinned:
        raise ValueError("pinned storages are not known here")
    ops = [op.workspace + sum(sizes[storage] for storage in {*op.reads, *op.writes}) for op in problem.operations]
    return max([*ops, sum(storage.bytes for storage in problem.storages if storage.persistent)], default=0)


def closed_form_bound(problem: Problem) -> float:
    """The published bound: what does not fit at an op left before it and comes back with it or after it."""
    tier = problem.tiers[0]
    compute = sum(op.seconds for op in problem.operations)
    clean = any(storage.clean for storage in problem.storages)
    best, before = compute, 0.0
    for slot, live in enumerate(live_bytes(problem)):
        over = max(0, live - problem.capacity)
        out = 0.0 if clean else over / tier.out.bandwidth
        best = max(best, max(before, out) + max(compute - before, over / tier.back.bandwidth))
        before += problem.operations[slot].seconds if slot < len(problem.operations) else 0.0
    return best


def _parts(problem: Problem, most: int) -> list[int]:
    """The part of the step that each slot is in: each its own if they are few, else of about equal time."""
    count = len(problem.operations)
    if count + 1 <= most:
        return list(range(count + 1))
    compute = sum(op.seconds for op in problem.operations)
    parts: list[int] = []
    before = 0.0
    for op in problem.operations:
        parts.append(min(most - 1, int(before / compute * most)))
        before += op.seconds
    names = {part: number for number, part in enumerate(dict.fromkeys(parts))}
    return [*(names[part] for part in parts), len(names) - 1]


def fluid_bound(problem: Problem, *, parts: int = 40) -> float:  # noqa: C901 (one model, in the order of its text)
    """A linear program (HiGHS) in which bytes flow: storages are divisible, copies wait for nobody.

    Time is cut into parts, each a stall and then its ops. For gaps that begin and end in the same parts there is the
    number of bytes that go out and come back in each. What links can carry and what is resident at each op (at the
    fullest op of a part with several) is linear in them; the stalls are as short as they can be.

    Raises:
        MissingDependencyError: SciPy is not installed.
    """
    try:
        from scipy.optimize import linprog
        from scipy.sparse import coo_matrix
    except ImportError:
        raise MissingDependencyError("scipy", needed_for="the fluid bound", install="pip install scipy") from None
    tier = problem.tiers[0]
    part_of = _parts(problem, parts)
    count = part_of[-1] + 1
    seconds = [0.0] * count
    for slot, op in enumerate(problem.operations):
        seconds[part_of[slot]] += op.seconds
    sizes: dict[tuple[int, int, bool], int] = {}
    seen: set[int] = set()
    for gap in gaps_of(problem):
        free = (gap.storage in seen or problem.storages[gap.storage].clean) and not gap.written
        seen.add(gap.storage)
        key = (part_of[max(gap.after, 0)], part_of[gap.before], free)
        sizes[key] = sizes.get(key, 0) + problem.storages[gap.storage].bytes
    # Variables: a stall for each part; then for each class and part bytes out and back, in the stall and in the ops.
    columns = count
    rows: list[tuple[int, int, float]] = []
    limits: list[float] = []

    def row(entries: list[tuple[int, float]], limit: float) -> None:
        rows.extend((len(limits), column, value) for column, value in entries)
        limits.append(limit)

    out_stall: list[list[tuple[int, float]]] = [[] for _ in range(count)]
    out_run: list[list[tuple[int, float]]] = [[] for _ in range(count)]
    back_stall: list[list[tuple[int, float]]] = [[] for _ in range(count)]
    back_run: list[list[tuple[int, float]]] = [[] for _ in range(count)]
    away: list[list[tuple[int, float]]] = [[] for _ in range(count)]
    single = [part_of.count(part) == 1 for part in range(count)]
    for (first, last, free), size in sizes.items():
        span = range(first, last + 1)
        base = columns
        columns += 4 * len(span)

        def at(part: int, kind: int, first: int = first, base: int = base) -> int:
            return base + 4 * (part - first) + kind

        row([(at(part, kind), 1.0) for part in span for kind in (0, 1)], float(size))
        moved: list[tuple[int, float]] = []
        for part in span:
            if not free:
                out_stall[part].append((at(part, 0), 1.0))
                out_run[part].append((at(part, 1), 1.0))
            back_stall[part].append((at(part, 2), 1.0))
            back_run[part].append((at(part, 3), 1.0))
            # Away at the op of the part: out by the end of the stall, not back by the end of the op. With several
            # ops in a part: whatever is out by its end, and not back before it.
            gone = [(at(part, 0), -1.0)] if single[part] else [(at(part, 0), -1.0), (at(part, 1), -1.0)]
            here = [(at(part, 2), 1.0), (at(part, 3), 1.0)] if single[part] else []
            away[part] += moved + gone + here
            moved = [*moved, (at(part, 0), -1.0), (at(part, 1), -1.0), (at(part, 2), 1.0), (at(part, 3), 1.0)]
            row(moved, 0.0)  # Nothing comes back before it has left.
        row([(column, -value) for column, value in moved], 0.0)  # All comes back.
    for part in range(count):
        for stall, run, link in ((out_stall, out_run, tier.out), (back_stall, back_run, tier.back)):
            row([*stall[part], (part, -link.bandwidth)], 0.0)
            row(run[part], link.bandwidth * seconds[part])
    for slot, live in enumerate(live_bytes(problem)):
        if live > problem.capacity:
            row(away[part_of[slot]], float(problem.capacity - live))
    scale = max(problem.capacity, 1)
    numbers, places, values = zip(*rows, strict=True) if rows else ((), (), ())
    matrix: Any = coo_matrix((values, (numbers, places)), shape=(len(limits), columns))
    cost = [1.0] * count + [0.0] * (columns - count)
    # In units of the capacity and of seconds.
    factors = [1.0] * count + [float(scale)] * (columns - count)
    matrix = (matrix.multiply(1.0 / scale).tocsr()).multiply([factors]).tocsr()
    result: Any = linprog(cost, A_ub=matrix, b_ub=[limit / scale for limit in limits], method="highs")
    if result.status != 0:
        raise ValueError(f"the linear program has no solution: {result.message}")
    return sum(seconds) + float(result.fun)


@dataclass(frozen=True, slots=True)
class Version:
    """A storage between two writes: its gaps, by number, in which one copy out serves all; whether a copy is below."""

    gaps: tuple[int, ...]
    clean: bool


def versions_of(problem: Problem, gaps: list[Gap]) -> list[Version]:
    """The gaps of each storage, cut where it is written."""
    found: list[Version] = []
    written = {storage for op in problem.operations for storage in op.writes}
    last = -1
    for number, gap in enumerate(gaps):
        storage = problem.storages[gap.storage]
        if gap.storage != last or gap.written:
            clean = storage.clean and not gap.written and not (storage.persistent and gap.storage in written)
            if gap.storage == last:
                clean = False
            found.append(Version((number,), clean))
        else:
            found[-1] = Version((*found[-1].gaps, number), found[-1].clean)
        last = gap.storage
    return found


def _least_sum(sizes: list[int], least: int) -> int:
    """The least sum of some of the sizes that is no less than `least`."""
    sums = 1
    for size in sizes:
        sums |= sums << size
    while least < sums.bit_length() and not sums >> least & 1:
        least += 1
    return least


def _through(needed: int, parts: list[tuple[int, int]]) -> int:
    """When `needed` bytes are through a link of bandwidth 1, of (moment, bytes) each of which goes no earlier than that."""
    latest = through = 0
    for moment, size in sorted(parts):
        if through >= needed:
            break
        latest = max(latest, moment + needed - through)
        through += size
    return latest


def windows_of(problem: Problem, gaps: list[Gap]) -> tuple[list[int], list[int]]:
    """By slot: when it is taken at the earliest, and what is left of the step from then on at least.

    What must be away at a slot was copied out after it was made, and will be copied in before it is used; of what is in
    a gap there, what was made first leaves first, and what is used last comes last.
    """
    count = len(problem.operations)
    costs = [round(op.seconds) for op in problem.operations] + [0]
    over = [max(0, live - problem.capacity) for live in live_bytes(problem)]
    made: dict[int, int] = {}
    for version in versions_of(problem, gaps):
        made.update({number: -2 if version.clean else gaps[version.gaps[0]].after for number in version.gaps})
    sizes = [problem.storages[gap.storage].bytes for gap in gaps]
    inside = [[number for number, gap in enumerate(gaps) if gap.after < slot < gap.before] for slot in range(count + 1)]
    taken: list[int] = []
    for slot in range(count + 1):
        now = taken[-1] + costs[slot - 1] if slot else 0
        clean = sum(sizes[number] for number in inside[slot] if made[number] == -2)
        parts = [
            (taken[made[number]] + costs[made[number]] if made[number] >= 0 else 0, sizes[number])
            for number in inside[slot]
            if made[number] != -2
        ]
        taken.append(max(now, _through(max(0, over[slot] - clean), parts)))
    rest = [0] * (count + 2)
    for slot in reversed(range(count + 1)):
        parts = [(rest[gaps[number].before], sizes[number]) for number in inside[slot]]
        rest[slot] = costs[slot] + max(rest[slot + 1], _through(over[slot], parts))
    return taken, rest[: count + 1]


def best_seconds(  # noqa: C901 (one model, row by row)
    problem: Problem, *, at_most: float | None = None, seconds: float = 60.0, workers: int = 1
) -> tuple[float, bool]:
    """The least seconds of any plan for a small step, found by constraint programming (OR-tools).

    Times must be integers: ops of whole seconds, links of bandwidth 1 without latency. Copies may be in any order, and a
    storage may be copied out in an earlier gap than the one in which it leaves.
    With whole seconds and bytes the best plan takes whole seconds, too (everything begins when something ends), so that a
    known plan as long as the fluid bound, rounded up, is the best without a search.

    What makes it fast is not needed for it to be right: gaps are numbered by "freed by slot" and "fetched by slot", which
    grow with the slot; copies out belong to versions, not to gaps; at each slot the least sum of sizes that is enough
    must be away; and what a link carries between two slots takes the time between them.

    Args:
        problem: The step.
        at_most: Seconds of a plan that is known: only what is better is looked for.
        seconds: How long to look.
        workers: Threads to look with.

    Returns:
        The seconds of the best plan, and whether that was proven; if not, a bound on them.

    Raises:
        MissingDependencyError: OR-tools is not installed.
    """
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise MissingDependencyError(
            "ortools", needed_for="finding the best plan", install="pip install ortools"
        ) from None
    tier = problem.tiers[0]
    if not (tier.out == tier.back == Link(1.0)):
        raise ValueError("expected links of bandwidth 1 without latency")
    least = math.ceil(max(fluid_bound(problem), closed_form_bound(problem)) - 1e-6)
    if at_most is not None and at_most <= least:
        return float(at_most), True
    model: Any = cp_model.CpModel()
    count = len(problem.operations)
    costs = [round(op.seconds) for op in problem.operations] + [0]
    before = [0, *accumulate(costs[:-1])]
    gaps = gaps_of(problem)
    sizes = [problem.storages[gap.storage].bytes for gap in gaps]
    # With a known plan: whether there is a better one.
    horizon = round(at_most) - 1 if at_most is not None else before[count] + 2 * sum(sizes)

    earliest, rest = windows_of(problem, gaps)
    if any(early + left > horizon for early, left in zip(earliest, rest, strict=True)):
        return float(at_most or horizon), True

    def moments(name: str) -> list[Any]:
        bounds = zip(earliest, rest, strict=True)
        return [model.new_int_var(early, horizon - left, f"{name}{slot}") for slot, (early, left) in enumerate(bounds)]

    taken, start = moments("taken"), moments("start")

    def end_of(op: int) -> Any:
        return 0 if op < 0 else start[op] + costs[op]

    for slot in range(count + 1):
        model.add(start[slot] >= taken[slot])
        model.add(taken[slot] >= end_of(slot - 1))
    # By gap: whether it leaves; by slot, whether it is freed by then, fetched by then, and away.
    leaves = [model.new_bool_var(f"leaves{number}") for number in range(len(gaps))]
    freed: list[dict[int, Any]] = []
    fetched: list[dict[int, Any]] = []
    away: list[list[tuple[int, Any]]] = [[] for _ in range(count + 1)]
    intervals: list[Any] = []
    for number, gap in enumerate(gaps):
        slots = range(gap.after + 1, gap.before)
        out: dict[int, Any] = {slot: model.new_bool_var(f"freed{number}.{slot}") for slot in slots}
        back: dict[int, Any] = {slot: model.new_bool_var(f"fetched{number}.{slot}") for slot in slots}
        there = [model.new_bool_var(f"away{number}.{slot}") for slot in slots]
        begin = model.new_int_var(0, horizon, f"back{number}")
        intervals.append(model.new_optional_fixed_size_interval_var(begin, sizes[number], leaves[number], f"b{number}"))
        model.add(begin >= taken[gap.after + 1]).only_enforce_if(leaves[number])
        model.add(start[gap.before] >= begin + sizes[number]).only_enforce_if(leaves[number])
        model.add(sum(there) >= leaves[number])
        for slot, bit in zip(slots, there, strict=True):
            model.add(out[slot] == bit + back[slot])
            away[slot].append((number, bit))
            model.add_implication(out[slot], out.get(slot + 1, leaves[number]))
            model.add_implication(back[slot], back.get(slot + 1, leaves[number]))
            model.add(begin >= taken[slot + 1]).only_enforce_if(leaves[number], back[slot].negated())
        out[gap.before] = back[gap.before] = leaves[number]
        freed.append(out)
        fetched.append(back)
    model.add_no_overlap(intervals)
    # By version that has to be copied out: the op that makes it, its bytes, and by slot whether it is out.
    copied: list[tuple[int, int, dict[int, Any]]] = []
    intervals = []
    for version in versions_of(problem, gaps):
        if version.clean:
            continue
        first, size = version.gaps[0], sizes[version.gaps[0]]
        begin = model.new_int_var(0, horizon, f"out{first}")
        stored, inside = leaves[first], [leaves[first]]
        if len(version.gaps) > 1:
            stored = model.new_bool_var(f"stored{first}")
            inside = [model.new_bool_var(f"in{number}") for number in version.gaps]
            model.add_max_equality(stored, [leaves[number] for number in version.gaps])
            model.add(sum(inside) == stored)
        intervals.append(model.new_optional_fixed_size_interval_var(begin, size, stored, f"o{first}"))
        for number, bit in zip(version.gaps, inside, strict=True):
            model.add(begin >= end_of(gaps[number].after)).only_enforce_if(bit)
            model.add(taken[gaps[number].before] >= begin + size).only_enforce_if(bit)
            for slot, gone in freed[number].items():
                model.add(taken[slot] >= begin + size).only_enforce_if(gone)
        is_out: dict[int, Any] = {}
        last: Any = None
        for slot in range(gaps[first].after + 1, count + 1):
            causes = [
                freed[number][min(slot, gaps[number].before)] for number in version.gaps if slot > gaps[number].after
            ]
            if len(causes) > 1:
                bit = model.new_bool_var(f"out{first}.{slot}")
                for cause in (*causes, last):
                    model.add_implication(cause, bit)
                causes = [bit]
            is_out[slot] = last = causes[0]
        copied.append((gaps[first].after, size, is_out))
    model.add_no_overlap(intervals)
    for slot, live in enumerate(live_bytes(problem)):
        if live > problem.capacity:
            enough = _least_sum([sizes[number] for number, _ in away[slot]], live - problem.capacity)
            model.add(sum(sizes[number] * bit for number, bit in away[slot]) >= enough)
    # What a link carries between two moments takes the time between them.
    for late in range(count + 1):
        for early in range(-1, late):
            gone = [size * is_out[late] for made, size, is_out in copied if made >= early and late in is_out]
            if gone:
                model.add(taken[late] - end_of(early) >= sum(gone))
        for early in range(late + 1):
            come: list[Any] = []
            for number, gap in enumerate(gaps):
                if gap.before > late or gap.before < early:
                    continue
                come.append(sizes[number] * leaves[number])
                if early - 1 > gap.after:
                    come.append(-sizes[number] * fetched[number][early - 1])
            if come:
                model.add(start[late] - taken[early] >= sum(come))
    model.add(start[count] >= least)
    model.minimize(start[count])
    solver: Any = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = workers
    solver.parameters.random_seed = 1
    solver.parameters.linearization_level = 2
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE and at_most is not None:
        return float(at_most), True
    if status == cp_model.OPTIMAL:
        return float(solver.objective_value), True
    return float(solver.best_objective_bound), False


def random_step(seed: int) -> Problem:
    """A step of at most 24 ops, in whole seconds and bytes: layers forward and backward, with or without skips.

    Its capacity is between what some op needs and what is live; some have weights, some weights that are clean.
    """
    rng = random.Random(seed)
    layers = rng.randint(3, 12)
    skips = rng.random() < 0.5
    weights = rng.choice(["none", "none", "dirty", "clean"])
    storages: list[Storage] = []

    def new(size: int, *, persistent: bool = False, clean: bool = False) -> int:
        storages.append(Storage(size, persistent=persistent, clean=clean))
        return len(storages) - 1

    activations = [new(rng.randint(2, 20)) for _ in range(layers + 1)]
    held = [
        (new(rng.randint(2, 12), persistent=True, clean=weights == "clean"),) if weights != "none" else ()
        for _ in range(layers)
    ]
    ops: list[Operation] = []
    for layer in range(layers):
        extra = (activations[rng.randrange(layer)],) if skips and layer and rng.random() < 0.5 else ()
        first = (activations[0],) if layer == 0 else ()
        ops.append(
            Operation(
                float(rng.randint(1, 12)),
                tuple({*held[layer], *extra, *(() if first else (activations[layer],))}),
                (activations[layer + 1], *first),
            )
        )
    gradient = -1
    for layer in reversed(range(layers)):
        reads = {activations[layer], activations[layer + 1], *held[layer]}
        if gradient >= 0:
            reads.add(gradient)
        gradient = new(rng.randint(2, 16))
        writes = (gradient, *held[layer]) if weights == "dirty" else (gradient,)
        ops.append(Operation(float(rng.randint(1, 16)), tuple(sorted(reads)), writes))
    link = Link(1.0)
    problem = Problem(tuple(ops), tuple(storages), 1 << 40, (Tier("host", 1 << 40, link, link),))
    live, least = max(live_bytes(problem)), needed_bytes(problem)
    capacity = max(least, int(live * rng.choice([0.5, 0.6, 0.7, 0.8, 0.9])))
    return Problem(problem.operations, problem.storages, capacity, problem.tiers)


def long_step(count: int, seed: int = 0) -> Problem:
    """A step of that many ops, forward and backward, with one and a half storages for each: for measuring time.

    The device has 60 % of what is live; its link is as fast as it must be to hide about all copies.
    """
    rng = random.Random(seed)
    layers = count // 2
    storages = [Storage(rng.randint(1, 64) << 20) for _ in range(layers + 1)]
    ops: list[Operation] = []
    for layer in range(layers):
        skip = (rng.randrange(layer),) if layer and rng.random() < 0.3 else ()
        storages.append(Storage(rng.randint(1, 32) << 20))
        made = (layer + 1, len(storages) - 1) if layer else (0, 1, len(storages) - 1)
        ops.append(Operation(rng.uniform(1e-4, 1e-3), tuple({*skip, *((layer,) if layer else ())}), made))
    gradient = -1
    for layer in reversed(range(layers)):
        reads = {layer, layer + 1, layers + 1 + layer} | ({gradient} if gradient >= 0 else set())
        storages.append(Storage(rng.randint(1, 32) << 20))
        gradient = len(storages) - 1
        ops.append(Operation(rng.uniform(1e-4, 1e-3), tuple(sorted(reads)), (gradient,)))
    problem = Problem(tuple(ops), tuple(storages), 1 << 60, ())
    live = max(live_bytes(problem))
    link = Link(0.4 * live / (sum(op.seconds for op in ops) / 2))
    return Problem(problem.operations, problem.storages, int(0.6 * live), (Tier("host", 1 << 60, link, link),))


def random_steps(count: int, first: int = 0) -> Iterator[tuple[int, Problem]]:
    """Seeds and steps that have something to move."""
    seed = first
    while count:
        problem = random_step(seed)
        if max(live_bytes(problem)) > problem.capacity:
            yield seed, problem
            count -= 1
        seed += 1


__all__ = [
    "Gap",
    "Version",
    "best_seconds",
    "closed_form_bound",
    "fluid_bound",
    "gaps_of",
    "live_bytes",
    "long_step",
    "needed_bytes",
    "random_step",
    "random_steps",
    "versions_of",
    "windows_of",
]
