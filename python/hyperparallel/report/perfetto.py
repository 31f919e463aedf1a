# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Timelines as a Chrome trace, which Perfetto and chrome://tracing open.

A process for each group, a thread for each stream (several where spans overlap without nesting), a counter for each
memory tier, and what is known of a task as its arguments. The same timelines give the same bytes.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hyperparallel.report.summary import kind_of
from hyperparallel.report.tracks import tracks_of
from hyperparallel.simulator.timeline import TaskSpan, Timeline

_MICROSECONDS = 1e6
_DIGITS = 6  # of a microsecond: picoseconds


def _time(seconds: float) -> float:
    return round(seconds * _MICROSECONDS, _DIGITS)


def _metadata(kind: str, pid: int, tid: int | None, **arguments: Any) -> dict[str, Any]:
    thread = {} if tid is None else {"tid": tid}
    return {"ph": "M", "name": kind, "pid": pid, **thread, "args": arguments}


def _arguments(task: TaskSpan) -> dict[str, Any]:
    values = {
        "path": task.path or None,
        "flops": task.flops,
        "bytes": task.bytes,
        "bytes_received": task.bytes_received,
        "bound": task.bound,
        "reason": task.reason or None,
    }
    return {key: value for key, value in values.items() if value is not None}


def _stream(tasks: Sequence[TaskSpan], name: str, kind: str, pid: int, tid: int) -> tuple[list[Any], list[Any], int]:
    """Metadata and spans of a stream whose threads start at ``tid``, and the first free thread after them."""
    tracks = tracks_of([(task.start, task.end) for task in tasks])
    count = max(tracks, default=0) + 1
    metadata: list[Any] = []
    for track in range(count):
        metadata.append(_metadata("thread_name", pid, tid + track, name=name))
        metadata.append(_metadata("thread_sort_index", pid, tid + track, sort_index=tid + track))
    spans = [
        {
            "ph": "X",
            "name": task.op,
            "cat": kind_of(task, kind),
            "pid": pid,
            "tid": tid + track,
            "ts": _time(task.start),
            "dur": round(_time(task.end) - _time(task.start), _DIGITS),
            "args": _arguments(task),
        }
        for task, track in zip(tasks, tracks, strict=True)
    ]
    return metadata, spans, tid + count


def _group(
    timeline: Timeline, number: int, tasks: Sequence[TaskSpan], pid: int, name: str
) -> tuple[list[Any], list[Any]]:
    group = timeline.groups[number]
    metadata = [
        _metadata("process_name", pid, None, name=name),
        _metadata("process_sort_index", pid, None, sort_index=pid),
    ]
    events: list[Any] = []
    by_stream: list[list[TaskSpan]] = [[] for _ in group.streams]
    for task in tasks:
        by_stream[task.stream].append(task)
    tid = 1
    for stream, members in zip(group.streams, by_stream, strict=True):
        named, spans, tid = _stream(members, stream.name, stream.kind, pid, tid)
        metadata += named
        events += spans
    for tier in timeline.tiers:
        if tier.group == number:
            events += [
                {"ph": "C", "name": f"{tier.name} memory", "pid": pid, "ts": _time(time), "args": {"bytes": size}}
                for time, size in tier.timeline
            ]
    return metadata, events


def perfetto_events(timelines: Sequence[Timeline]) -> list[dict[str, Any]]:
    """Trace events: names first, then spans and counters by time.

    Args:
        timelines: One, or several to lie under each other; then the processes' names say whose they are.
    """
    metadata: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    pid = 1
    for timeline in timelines:
        by_group: list[list[TaskSpan]] = [[] for _ in timeline.groups]
        for task in timeline.tasks:
            by_group[task.group].append(task)
        for number, tasks in enumerate(by_group):
            own = timeline.groups[number].name
            name = f"{timeline.name} {timeline.kind}: {own}" if len(timelines) > 1 else own
            named, happened = _group(timeline, number, tasks, pid, name)
            metadata += named
            events += happened
            pid += 1
    events.sort(key=lambda event: (event["ts"], event["pid"], event.get("tid", 0), -event.get("dur", 0.0)))
    return metadata + events


def write_perfetto(path: str | Path, timelines: Sequence[Timeline]) -> None:
    """Writes the trace, compressed if the file's name ends in ``.gz``.

    Raises:
        OSError: The file cannot be written.
    """
    trace = {
        "displayTimeUnit": "ns",
        "otherData": {f"step {i}": f"{one.name}, {one.kind}" for i, one in enumerate(timelines, 1)},
        "traceEvents": perfetto_events(timelines),
    }
    content = json.dumps(trace, separators=(",", ":")).encode()
    target = Path(path)
    target.write_bytes(gzip.compress(content, mtime=0) if target.suffix == ".gz" else content)


__all__ = ["perfetto_events", "write_perfetto"]
