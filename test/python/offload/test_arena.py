# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Static offsets: no two buffers that live at the same time share a byte, and little is wasted."""

from __future__ import annotations

import csv
import random
from itertools import permutations

import pytest

pytest.importorskip("hyperparallel._hyperparallel", reason="the compiled parts are not built")

from recorded import recorded_file

from hyperparallel.offload import Buffer, OffloadError, assign_offsets, find_overlap


def overlaps(buffers: list[Buffer], offsets: tuple[int, ...]) -> bool:
    """By looking at every pair: shares no code with what is tested."""
    return any(
        a.lower < b.upper and b.lower < a.upper and x < y + b.size and y < x + a.size
        for n, (a, x) in enumerate(zip(buffers, offsets, strict=True))
        for b, y in zip(buffers[:n], offsets[:n], strict=True)
    )


def draw(rng: random.Random, count: int) -> list[Buffer]:
    starts = [rng.randint(0, 12) for _ in range(count)]
    return [Buffer(start, start + rng.randint(1, 8), rng.randint(1, 9)) for start in starts]


def least_height(buffers: list[Buffer]) -> int:
    """Of all orders, each placed at the lowest offset above those that it overlaps (a canonical solution is one)."""
    best = sum(buffer.size for buffer in buffers)
    for order in permutations(range(len(buffers))):
        tops: dict[int, int] = {}
        for number in order:
            b = buffers[number]
            below = [top for o, top in tops.items() if buffers[o].lower < b.upper and b.lower < buffers[o].upper]
            tops[number] = max(below, default=0) + b.size
        best = min(best, max(tops.values()))
    return best


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("alignment", [1, 4])
def test_random_buffers_share_nothing(seed: int, alignment: int) -> None:
    buffers = draw(random.Random(seed), 40)
    arena = assign_offsets(buffers, alignment=alignment)
    assert not overlaps(buffers, arena.offsets)
    assert find_overlap(buffers, arena.offsets, alignment=alignment) is None
    assert all(offset % alignment == 0 for offset in arena.offsets)
    ends = [offset + buffer.size for offset, buffer in zip(arena.offsets, buffers, strict=True)]
    assert max(ends) <= arena.height <= max(ends) + alignment - 1
    live = max(
        sum(-(-b.size // alignment) * alignment for b in buffers if b.lower <= moment < b.upper) for moment in range(24)
    )
    assert arena.max_live == live <= arena.height


@pytest.mark.parametrize("seed", range(30))
def test_the_exact_search_finds_the_least_height(seed: int) -> None:
    buffers = draw(random.Random(seed), 6)
    least = least_height(buffers)
    assert assign_offsets(buffers, capacity=least, exact=True).height <= least


@pytest.mark.parametrize("seed", range(20))
def test_overlaps_are_found(seed: int) -> None:
    rng = random.Random(seed)
    buffers = draw(rng, 6)
    offsets = tuple(rng.randint(0, 20) for _ in buffers)
    assert (find_overlap(buffers, offsets) is not None) == overlaps(buffers, offsets)


def test_messages() -> None:
    buffers = [Buffer(0, 2, 4), Buffer(1, 3, 4)]
    fault = "expected buffers 0 and 1, which live at the same time, to share no byte"
    assert find_overlap(buffers, [0, 3]) == fault
    assert find_overlap(buffers, [0, 5], alignment=4) == "expected buffer 1 at a multiple of 4 but got 5"
    with pytest.raises(OffloadError, match="an offset for each buffer"):
        find_overlap(buffers, [0])
    with pytest.raises(OffloadError, match="buffer 0 to have no negative size"):
        assign_offsets([Buffer(0, 1, -1)])
    with pytest.raises(OffloadError, match="an alignment of at least 1 but got 0"):
        assign_offsets(buffers, alignment=0)


def test_nothing_to_place() -> None:
    assert assign_offsets([]).height == 0
    assert assign_offsets([Buffer(0, 5, 0), Buffer(3, 3, 7)]).height == 0


def read(name: str) -> list[Buffer]:
    path = recorded_file("arena", name)
    with path.open(newline="") as file:
        return [Buffer(int(row["lower"]), int(row["upper"]), int(row["size"])) for row in csv.DictReader(file)]


@pytest.mark.parametrize("name", ["A", "B", "C", "D", "E", "F", "G"])
def test_hard_instances_are_solved(name: str) -> None:
    buffers = read(f"{name}.1048576.csv")
    arena = assign_offsets(buffers, capacity=1048576, exact=True)
    assert arena.height <= 1048576
    assert not overlaps(buffers, arena.offsets)


def test_a_large_step() -> None:
    buffers = read("pangu-2.6b.csv")
    arena = assign_offsets(buffers)
    assert find_overlap(buffers, arena.offsets) is None
    assert arena.over_max_live <= 0.01
