# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chrome traces: well formed, in order, nested on every thread, and the same bytes each time."""

from __future__ import annotations

import dataclasses
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from timelines import pipeline, two_layers

from hyperparallel.report import perfetto_events, write_perfetto
from hyperparallel.simulator.timeline import Timeline


def spans(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["ph"] == "X"]


def check(events: list[dict[str, Any]]) -> None:
    """What every viewer relies on."""
    names = [event for event in events if event["ph"] == "M"]
    assert events[: len(names)] == names, "metadata comes first"
    threads = {(event["pid"], event["tid"]) for event in names if event["name"] == "thread_name"}
    processes = {event["pid"] for event in names if event["name"] == "process_name"}
    times = [event["ts"] for event in events if event["ph"] != "M"]
    assert times == sorted(times)
    for event in events:
        assert event["ph"] in {"M", "X", "C"}
        if event["ph"] == "X":
            assert event["dur"] >= 0
            assert (event["pid"], event["tid"]) in threads
        if event["ph"] == "C":
            assert event["pid"] in processes
            assert all(isinstance(value, float) for value in event["args"].values())
    for thread in threads:
        open_ends: list[float] = []
        for event in spans(events):
            if (event["pid"], event["tid"]) != thread:
                continue
            while open_ends and open_ends[-1] <= event["ts"] + 1e-9:
                open_ends.pop()
            end = event["ts"] + event["dur"]
            assert not open_ends or end <= open_ends[-1] + 1e-9, "spans of a thread nest"
            open_ends.append(end)


@pytest.mark.parametrize("timelines", [[two_layers()], [pipeline()], [two_layers(), pipeline()]], ids=len)
def test_the_structure_is_right(timelines: list[Timeline]) -> None:
    check(perfetto_events(timelines))


def test_a_task_with_all_that_is_known() -> None:
    first = next(event for event in spans(perfetto_events([two_layers()])) if event["cat"] == "all_reduce")
    assert first == {
        "ph": "X",
        "name": "hypershard.all_reduce",
        "cat": "all_reduce",
        "pid": 1,
        "tid": 2,
        "ts": 3e6,
        "dur": 3e6,
        "args": {
            "path": "model.layers.0",
            "flops": 0.0,
            "bytes": 8e6,
            "bytes_received": 6e6,
            "bound": "communication",
            "reason": "ring over tp",
        },
    }


def test_groups_are_processes_and_tiers_are_counters() -> None:
    events = perfetto_events([pipeline(3, 2)])
    names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert names == {"stage 0", "stage 1", "stage 2"}
    counters = [event for event in events if event["ph"] == "C" and event["pid"] == 1]
    assert [event["args"]["bytes"] for event in counters] == [size for _, size in pipeline(3, 2).tiers[0].timeline]


def test_two_timelines_lie_under_each_other() -> None:
    names = [
        event["args"]["name"]
        for event in perfetto_events([two_layers(), two_layers()])
        if event["name"] == "process_name"
    ]
    assert names == ["two_layers simulated: main"] * 2


def test_spans_that_overlap_get_threads_of_their_own() -> None:
    one = two_layers()
    late = dataclasses.replace(one.tasks[0], start=1.0, end=5.0, stream=2)
    early = dataclasses.replace(one.tasks[0], start=0.0, end=2.0, stream=2)
    events = perfetto_events([dataclasses.replace(one, tasks=(early, late))])
    check(events)
    assert {event["tid"] for event in spans(events)} == {3, 4}


def test_the_file_is_the_same_each_time(tmp_path: Path) -> None:
    first, second, plain = tmp_path / "a.json.gz", tmp_path / "b.json.gz", tmp_path / "c.json"
    for path in (first, second, plain):
        write_perfetto(path, [pipeline()])
    assert first.read_bytes() == second.read_bytes()
    assert gzip.decompress(first.read_bytes()) == plain.read_bytes()
    trace = json.loads(plain.read_text())
    assert trace["traceEvents"] == perfetto_events([pipeline()])
