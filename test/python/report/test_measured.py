# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Timelines of runs: from the spans that the runtime wrote, by hand and by a real run."""

from __future__ import annotations

from typing import Any

import pytest

from hyperparallel.errors import HyperParallelError
from hyperparallel.report import is_trace, measured_timeline
from hyperparallel.report.measured import exposed_of
from hyperparallel.simulator.timeline import Exposed, StreamKind, TaskSpan


def lane(tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": 0, "tid": tid, "name": "thread_name", "args": {"name": name}}


def span(tid: int, category: str, name: str, ts: float, dur: float, moved: int | None = None) -> dict[str, Any]:
    arguments = {} if moved is None else {"args": {"bytes": moved}}
    return {"ph": "X", "pid": 0, "tid": tid, "cat": category, "name": name, "ts": ts, "dur": dur, **arguments}


TRACE: dict[str, Any] = {
    "traceEvents": [
        {"ph": "M", "pid": 0, "name": "process_name", "args": {"name": "hyperparallel"}},
        lane(0, "device 0"),
        span(0, "matmul", "matmul 8x16x32", 100.0, 40.0),
        span(0, "collective", "all_reduce sum of 64 x f32", 140.0, 20.0, 256),
        span(0, "parallel_for", "Block_kernel_range", 160.0, 10.0),
        span(0, "program", "hp_entry_main", 90.0, 110.0),
        lane(1, "device 1"),
        span(1, "collective", "all_reduce sum of 64 x f32", 100.0, 60.0, 256),
        span(1, "program", "hp_entry_main", 95.0, 85.0),
        lane(2, "device 1 h2d stream"),
        span(2, "stream", "copy", 150.0, 20.0, 4096),
        span(2, "stream", "wait", 170.0, 30.0),
        lane(3, "device 2"),
    ],
    "displayTimeUnit": "ms",
}
US = 1e-6


def test_devices_are_groups_and_time_starts_with_the_first() -> None:
    timeline = measured_timeline(TRACE, name="small")
    assert (timeline.name, str(timeline.kind), timeline.devices) == ("small", "measured", 2)
    assert [group.name for group in timeline.groups] == ["device 0", "device 1"]
    assert timeline.seconds == pytest.approx(110 * US)  # from 90 to 200
    streams = [[(stream.name, stream.busy) for stream in group.streams] for group in timeline.groups]
    assert streams == [
        [("compute", pytest.approx(50 * US)), ("communication", pytest.approx(20 * US))],
        [("communication", pytest.approx(60 * US)), ("h2d", pytest.approx(20 * US))],
    ]


def test_tasks_keep_what_the_trace_says() -> None:
    tasks = measured_timeline(TRACE).tasks
    assert [(task.op, task.reason) for task in tasks] == [
        ("matmul", "8x16x32"),
        ("Block_kernel", ""),
        ("all_reduce", "sum of 64 x f32"),
        ("all_reduce", "sum of 64 x f32"),
        ("copy", ""),
    ]
    assert tasks[2] == TaskSpan(
        "all_reduce", "", 0, 1, pytest.approx(50 * US), pytest.approx(70 * US), None, None, 256.0, "communication",
        "sum of 64 x f32",
    )  # fmt: skip
    assert (tasks[4].bytes, tasks[4].bytes_received) == (4096.0, None)


def test_exposed_time_and_collectives() -> None:
    timeline = measured_timeline(TRACE)
    # Device 0: kernels 50 of 110, collective 20. Device 1: collective 60, then 10 of the copy that it does not hide.
    assert timeline.exposed.communication == pytest.approx(40 * US)
    assert timeline.exposed.transfer == pytest.approx(5 * US)
    assert timeline.exposed.bubble == pytest.approx(40 * US)
    (reduce,) = timeline.collectives
    assert (reduce.op, reduce.count, reduce.bytes_received) == ("all_reduce", 1, 256.0)
    assert reduce.seconds == reduce.exposed_seconds == pytest.approx(40 * US)


def test_communication_counts_before_transfers_and_neither_twice() -> None:
    assert exposed_of([(0.0, 2.0)], [(1.0, 4.0)], [(3.0, 6.0)], 8.0) == Exposed(2.0, 2.0, 2.0)


def test_what_only_the_program_knows_is_open() -> None:
    timeline = measured_timeline(TRACE)
    assert (timeline.flops, timeline.mfu, timeline.mesh, timeline.tiers, timeline.tensors) == (None, None, {}, (), ())
    assert timeline.streams(StreamKind.H2D)[0].name == "h2d"


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        ({"traceEvents": []}, "no run of a device"),
        ({"traceEvents": [lane(0, "device 0"), span(0, "matmul", "matmul 1x1x1", 0.0, 1.0)]}, "no run of a device"),
        ({"traceEvents": [lane(0, "device 0"), {"ph": "X", "pid": 0, "tid": 0, "cat": "matmul"}]}, "damaged"),
        ({"traceEvents": 3}, "damaged"),
    ],
)
def test_other_traces_are_refused(trace: dict[str, Any], message: str) -> None:
    assert is_trace(trace)
    with pytest.raises(HyperParallelError, match=message):
        measured_timeline(trace)
