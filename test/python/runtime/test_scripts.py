# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random sequences of collectives over random groups, some in flight at once, equal NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from runtime_cases import Axes, axes_words, index_of, members_of, run, size_of, values

from hyperparallel.runtime import Collective, DataType, Runtime

GROUPS: dict[int, list[Axes]] = {
    2: [(), ((1, 2),)],
    4: [((2, 2),), ((1, 2),), ((1, 2), (2, 2)), ((1, 4),)],
    6: [((3, 2),), ((1, 3),), ((3, 2), (1, 3)), ((1, 6),)],
    8: [((4, 2),), ((2, 2),), ((1, 2),), ((1, 2), (4, 2)), ((2, 4),), ((1, 8),)],
}
KINDS = (Collective.ALL_GATHER, Collective.ALL_REDUCE, Collective.REDUCE_SCATTER, Collective.ALL_TO_ALL)


@dataclass(frozen=True)
class Step:
    """One collective: its extents a x b x c, and for all_to_all the dimension that is split."""

    kind: Collective
    asynchronous: bool
    axes: Axes
    a: int
    b: int
    c: int
    split: int

    def in_shape(self) -> tuple[int, ...]:
        size = size_of(self.axes)
        if self.kind is Collective.REDUCE_SCATTER:
            return (self.a, self.b * size, self.c)
        if self.kind is Collective.ALL_TO_ALL:
            return (self.a * size, self.b * self.c) if self.split == 0 else (self.a, self.b * self.c * size)
        return (self.a, self.b, self.c)

    def words(self) -> list[int]:
        axes = axes_words(self.axes)
        if self.kind is Collective.ALL_REDUCE:
            return [self.a * self.b * self.c, *axes]
        if self.kind is Collective.ALL_TO_ALL:
            return [*self.in_shape(), self.split, *axes]
        return [self.a, self.b, self.c, *axes]

    def expected(self, device: int, parts: list[NDArray[np.float32]]) -> NDArray[np.float32]:
        members = [parts[m] for m in members_of(device, self.axes)]
        rank, size = index_of(device, self.axes), len(members)
        if self.kind is Collective.ALL_GATHER:
            return np.concatenate(members, axis=1)
        if self.kind is Collective.ALL_TO_ALL:
            blocks = [np.split(part, size, axis=self.split)[rank] for part in members]
            return np.concatenate(blocks, axis=1 - self.split)
        total = members[0]
        for part in members[1:]:
            total = total + part if self.kind is Collective.ALL_REDUCE else np.maximum(total, part)
        if self.kind is Collective.REDUCE_SCATTER:
            return total[:, rank * self.b : (rank + 1) * self.b]
        return total


@st.composite
def scripts(draw: st.DrawFn) -> tuple[int, list[Step]]:
    devices = draw(st.sampled_from(sorted(GROUPS)))
    extent = st.integers(1, 5) | st.sampled_from([40, 90])
    step = st.builds(
        Step,
        kind=st.sampled_from(KINDS),
        asynchronous=st.booleans(),
        axes=st.sampled_from(GROUPS[devices]),
        a=extent,
        b=extent,
        c=st.integers(1, 6),
        split=st.integers(0, 1),
    )
    return devices, draw(st.lists(step, min_size=1, max_size=30))


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=scripts())
def test_random_scripts(case: tuple[int, list[Step]], runtimes: Callable[[int], Runtime], programs: Path) -> None:
    devices, steps = case
    sizes = [int(np.prod(step.in_shape())) for step in steps]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    inputs = [values((int(starts[-1]),), DataType.F32, seed) for seed in range(devices)]
    words, expected, out = [len(steps)], [[] for _ in range(devices)], 0
    for step, begin, size in zip(steps, starts, sizes, strict=False):
        parts = [array[begin : begin + size].reshape(step.in_shape()) for array in inputs]
        results: list[NDArray[Any]] = [step.expected(device, parts) for device in range(devices)]
        call = [list(Collective).index(step.kind), int(step.asynchronous), int(begin), out, *step.words()]
        words += [len(call) + 1, *call]
        out += results[0].size
        for device, result in enumerate(results):
            expected[device].append(result.ravel())
    outputs, statistics = run(runtimes(devices).load(programs), "script", [words] * devices, inputs, (out,))
    for device, output in enumerate(outputs):
        np.testing.assert_array_equal(output, np.concatenate(expected[device]))
    assert sum(statistics.collectives.values()) == sum(size_of(step.axes) > 1 for step in steps)
