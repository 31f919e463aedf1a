# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A timeline from a run: the spans that the runtime recorded, and what else is known of the program.

The trace of ``hp run --trace`` has one lane for each device, with kernels, matrix products and collectives, and one for
each stream that the device used. A lane says nothing of layouts, memory or operations; a timeline that ``hp run
--timeline`` writes has these from the program and from the run's statistics, and leaves them open where only the trace
is there. Kernels carry the names of the functions that were compiled for them.

A collective's span begins when its device arrives, so it holds the wait for the other devices.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hyperparallel.errors import HyperParallelError
from hyperparallel.report.intervals import Span, covered, length, union
from hyperparallel.simulator.timeline import (
    CollectiveUse,
    Exposed,
    Group,
    Stream,
    StreamKind,
    TaskSpan,
    TensorUse,
    TierUse,
    Timeline,
    TimelineKind,
)

if TYPE_CHECKING:
    from hyperparallel.compiled import CompiledProgram
    from hyperparallel.runtime import RunStatistics

_SECONDS = 1e-6  # of a unit of the trace
_LANE = re.compile(r"device (\d+)(?: (compute|h2d|d2h|comm|send|recv) stream(?: (\d+))?)?")
_STREAMS = {
    "compute": StreamKind.COMPUTE,
    "comm": StreamKind.COMMUNICATION,
    "send": StreamKind.COMMUNICATION,
    "recv": StreamKind.COMMUNICATION,
    "h2d": StreamKind.H2D,
    "d2h": StreamKind.D2H,
}
_CATEGORIES = {
    "matmul": StreamKind.COMPUTE,
    "parallel_for": StreamKind.COMPUTE,
    "collective": StreamKind.COMMUNICATION,
    "message": StreamKind.COMMUNICATION,
}
_ELEMENT_BYTES = {"i1": 1, "i8": 1, "ui8": 1, "i16": 2, "bf16": 2, "f16": 2, "i32": 4, "f32": 4, "i64": 8, "f64": 8}


@dataclass(slots=True)
class _Device:
    """What one device did: tasks by kind of stream."""

    tasks: dict[StreamKind, list[TaskSpan]] = field(default_factory=dict[StreamKind, list[TaskSpan]])
    begin: float | None = None
    end: float = 0.0


def is_trace(data: Any) -> bool:
    """Whether read JSON is a trace of ``hp run --trace``."""
    return isinstance(data, dict) and "traceEvents" in data


def _task(event: Mapping[str, Any], kind: StreamKind) -> TaskSpan:
    name, category = str(event["name"]), str(event.get("cat", ""))
    start = float(event["ts"]) * _SECONDS
    op, _, reason = name.partition(" ")
    if category == "parallel_for":
        op, reason = name.removesuffix("_range"), ""
    moved = event.get("args", {}).get("bytes")
    received = float(moved) if moved is not None and kind is StreamKind.COMMUNICATION else None
    return TaskSpan(
        op=op,
        path="",
        group=0,
        stream=0,
        start=start,
        end=start + float(event["dur"]) * _SECONDS,
        flops=None,
        bytes=float(moved) if moved is not None and received is None else None,
        bytes_received=received,
        bound="communication" if kind is StreamKind.COMMUNICATION else "none",
        reason=reason,
    )


def _devices(events: Sequence[Mapping[str, Any]]) -> dict[int, _Device]:
    """The tasks of each device that entered a program."""
    lanes: dict[tuple[Any, Any], re.Match[str]] = {}
    for event in events:
        if event.get("ph") == "M" and event.get("name") == "thread_name":
            lane = _LANE.fullmatch(str(event["args"]["name"]))
            if lane is not None:
                lanes[event.get("pid"), event.get("tid")] = lane
    devices: dict[int, _Device] = {}
    for event in events:
        lane = lanes.get((event.get("pid"), event.get("tid")))
        if event.get("ph") != "X" or lane is None:
            continue
        device = devices.setdefault(int(lane[1]), _Device())
        if event.get("cat") == "program":
            begin = float(event["ts"]) * _SECONDS
            device.begin = begin if device.begin is None else min(device.begin, begin)
            device.end = max(device.end, begin + float(event["dur"]) * _SECONDS)
            continue
        if lane[2] and "args" not in event:
            continue  # a stream's waits, records and frees move nothing
        kind = _STREAMS[lane[2]] if lane[2] else _CATEGORIES.get(str(event.get("cat")))
        if kind is not None:
            device.tasks.setdefault(kind, []).append(_task(event, kind))
    return {number: device for number, device in sorted(devices.items()) if device.begin is not None}


def exposed_of(kernels: Sequence[Span], communication: Sequence[Span], transfer: Sequence[Span], end: float) -> Exposed:
    """What runs while no kernel does, from the first moment to ``end``; communication counts before transfers."""
    busy = union(kernels)
    talking = union([*busy, *communication])
    moving = union([*talking, *transfer])
    return Exposed(
        communication=length(talking) - length(busy),
        transfer=length(moving) - length(talking),
        bubble=max(0.0, end - length(moving)),
    )


def masked(kernels: Sequence[Span], communication: Sequence[Span]) -> tuple[float, float]:
    """Seconds of communication that a kernel runs beside, and all of them.

    >>> masked([(0.0, 2.0)], [(1.0, 4.0), (1.0, 3.0)])
    (1.0, 3.0)
    """
    talking = union(communication)
    together = length(union([*kernels, *talking]))
    seconds = length(talking)
    return seconds - (together - length(union(kernels))), seconds


def _mean(values: Sequence[float | None]) -> float:
    return sum(value or 0.0 for value in values) / len(values)


def _spans(tasks: Sequence[TaskSpan]) -> list[Span]:
    return [(task.start, task.end) for task in tasks]


def _group(number: int, device: _Device, begin: float, end: float, index: int) -> tuple[Group, list[TaskSpan]]:
    tasks: list[TaskSpan] = []
    streams: list[Stream] = []
    for kind in dict.fromkeys(_STREAMS.values()):
        if kind not in device.tasks:
            continue
        moved = [
            replace(task, group=index, stream=len(streams), start=task.start - begin, end=task.end - begin)
            for task in sorted(device.tasks[kind], key=lambda task: (task.start, -task.end))
        ]
        streams.append(Stream(str(kind), kind, length(union(_spans(moved)))))
        tasks += moved
    by_kind = {stream.kind: [t for t in tasks if t.stream == position] for position, stream in enumerate(streams)}
    exposed = exposed_of(
        _spans(by_kind.get(StreamKind.COMPUTE, [])),
        _spans(by_kind.get(StreamKind.COMMUNICATION, [])),
        _spans([*by_kind.get(StreamKind.H2D, []), *by_kind.get(StreamKind.D2H, [])]),
        end - begin,
    )
    return Group(f"device {number}", 1, tuple(streams), exposed), tasks


def _masked_part(groups: Sequence[Group], tasks: Sequence[TaskSpan]) -> float | None:
    """The part of communication that is hidden behind kernels, over all devices."""
    spans: list[dict[StreamKind, list[Span]]] = [{} for _ in groups]
    for task in tasks:
        kind = groups[task.group].streams[task.stream].kind
        spans[task.group].setdefault(kind, []).append((task.start, task.end))
    pairs = [masked(one.get(StreamKind.COMPUTE, []), one.get(StreamKind.COMMUNICATION, [])) for one in spans]
    seconds = sum(pair[1] for pair in pairs)
    return max(0.0, sum(pair[0] for pair in pairs) / seconds) if seconds else None


def _collectives(groups: Sequence[Group], tasks: Sequence[TaskSpan]) -> tuple[CollectiveUse, ...]:
    """Collectives of the mean device; the count is that of the device that made most."""
    kernels: list[list[Span]] = [[] for _ in groups]
    for task in tasks:
        if groups[task.group].streams[task.stream].kind is StreamKind.COMPUTE:
            kernels[task.group].append((task.start, task.end))
    busy = [union(spans) for spans in kernels]
    used: dict[str, list[TaskSpan]] = {}
    for task in tasks:
        if groups[task.group].streams[task.stream].kind is StreamKind.COMMUNICATION:
            used.setdefault(task.op, []).append(task)
    uses: list[CollectiveUse] = []
    for op, members in sorted(used.items()):
        counts = [0] * len(groups)
        for task in members:
            counts[task.group] += 1
        seconds = sum(task.end - task.start for task in members)
        hidden = sum(covered((task.start, task.end), busy[task.group]) for task in members)
        received = sum(task.bytes_received or 0.0 for task in members)
        uses.append(
            CollectiveUse(
                op, max(counts), received / len(groups), seconds / len(groups), (seconds - hidden) / len(groups)
            )
        )
    return tuple(uses)


def _tensors(program: CompiledProgram) -> tuple[TensorUse, ...]:
    def use(entry: Any) -> TensorUse:
        local = entry.layout.local_shape(entry.shape, program.mesh)
        size = _ELEMENT_BYTES[entry.dtype]
        for extent in local:
            size *= extent
        role = str(entry.role) if entry.role is not None else "result"
        return TensorUse(entry.name, role, entry.shape, entry.dtype, str(entry.layout), float(size))

    return tuple(use(entry) for entry in (*program.arguments, *program.results))


def _tiers(statistics: RunStatistics) -> tuple[TierUse, ...]:
    return tuple(
        TierUse(str(tier), index, None, float(peak), ())
        for index, device in enumerate(sorted(statistics.devices, key=lambda device: device.device))
        for tier, peak in device.peak_bytes.items()
        if peak
    )


def measured_timeline(
    trace: Mapping[str, Any],
    *,
    name: str = "run",
    program: CompiledProgram | None = None,
    statistics: RunStatistics | None = None,
) -> Timeline:
    """The timeline of a run.

    Args:
        trace: The Chrome trace that the runtime wrote.
        name: Of the model, where ``program`` does not say it.
        program: What was run: gives the mesh and the tensors' layouts.
        statistics: Of the run that was traced: gives peaks of memory and the operations of matrix products.

    Raises:
        HyperParallelError: The trace holds no run of a device.
    """
    try:
        devices = _devices(trace["traceEvents"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise HyperParallelError(f"the trace is damaged ({error!r}); record it again with hp run --trace") from None
    if not devices:
        raise HyperParallelError("the trace has no run of a device in it; expected what hp run --trace writes")
    begin = min(device.begin for device in devices.values() if device.begin is not None)
    end = max(device.end for device in devices.values())
    groups: list[Group] = []
    tasks: list[TaskSpan] = []
    for index, (number, device) in enumerate(devices.items()):
        group, own = _group(number, device, begin, end, index)
        groups.append(group)
        tasks += own
    seconds = end - begin
    exposed = [group.exposed for group in groups]
    busy = sum(stream.busy for group in groups for stream in group.streams if stream.kind is StreamKind.COMPUTE)
    return Timeline(
        kind=TimelineKind.MEASURED,
        name=program.name if program is not None else name,
        machine="",
        mesh=dict(program.mesh.axes) if program is not None else {},
        devices=len(groups),
        seconds=seconds,
        first_step_seconds=None,
        flops=max((device.matmul_flops for device in statistics.devices), default=None) if statistics else None,
        mfu=None,
        utilisation=busy / len(groups) / seconds if seconds else None,
        exposed=Exposed(
            communication=_mean([one.communication for one in exposed]),
            transfer=_mean([one.transfer for one in exposed]),
            bubble=_mean([one.bubble for one in exposed]),
        ),
        groups=tuple(groups),
        tiers=_tiers(statistics) if statistics is not None else (),
        links=(),
        collectives=_collectives(groups, tasks),
        tensors=_tensors(program) if program is not None else (),
        tasks=tuple(tasks),
        masked_communication=_masked_part(groups, tasks),
    )


__all__ = ["exposed_of", "is_trace", "masked", "measured_timeline"]
