# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Timelines: what a step did, simulated or measured, in one form for the simulator, real runs and reports.

The file is JSON; :class:`Timeline` is the same as data, key by key. Times are seconds and start at 0 with the reported
step, sizes are bytes, `group` and `stream` are indices (of `groups`, and of that group's `streams`). What is not known
is null, or an empty list.

- ``format``, ``version``: ``"hyperparallel-timeline"``, 1
- ``kind``: ``"simulated"`` or ``"measured"``; ``name`` of the program; ``machine``; ``mesh``: sizes by axis; ``devices``
- ``seconds``: the reported step. Where steps can overlap (something moves beside the kernels), that is the second step,
  from the end of the first to its own, or a later one if only later steps take equally long; ``first_step_seconds``: the
  first, from an idle machine
- ``flops``: of one device in one step; ``mfu``: seconds that the contractions take at peak rates over ``seconds``;
  ``utilisation``: seconds in which a kernel runs over ``seconds``; both are means over groups, by devices
- ``exposed``: seconds of the step in which no kernel runs, by what runs instead: ``communication`` (a collective, or a
  transfer between groups), else ``transfer`` (a copy between tiers), else ``bubble`` (nothing); a mean like the above
- ``masked_communication``: the part of communication that is hidden behind kernels: of the seconds in which a collective
  or a transfer between groups is under way, those in which a kernel runs, too; over all devices; null where nothing
  communicates. In a measured run a collective is under way while it waits for the other devices, too
- ``groups``: of each ``name``, ``devices``, ``exposed``, and ``streams``: of each ``name``, ``kind`` and ``busy`` seconds.
  A simulated group is devices that do the same; a measured one is one device
- ``tiers``: of each ``name``, ``group``, ``capacity``, ``peak`` (the most that is there in the step), and ``timeline``:
  pairs of a time and what is there from then on. Bytes are those of one device of the group
- ``links``: of each ``name``, ``kind`` (``level`` of the network, ``link`` between tiers, shared ``segment``; a device's
  memory is a segment, too), ``bandwidth``, ``bytes`` of a step that go through it (through the busiest, where there are
  many), ``utilisation``: bytes over what it could carry in the step
- ``collectives``: of each ``op`` the ``count``, ``bytes_received``, ``seconds`` and ``exposed_seconds`` of one device
- ``tensors``: arguments of the program: ``name``, ``role``, global ``shape``, ``dtype``, ``sharding``, ``local_bytes``
- ``tasks``: ``op``, ``path`` (the block it is in), ``group``, ``stream``, ``start``, ``end``, ``flops``, ``bytes`` (to and
  from memory, or moved), ``bytes_received``, ``bound`` (what its time goes to) and ``reason`` (in words)
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from hyperparallel.enums import StrEnum
from hyperparallel.simulator.errors import SimulationError

FORMAT = "hyperparallel-timeline"
VERSION = 1


class TimelineKind(StrEnum):
    """Where a timeline comes from."""

    SIMULATED = "simulated"
    MEASURED = "measured"


class StreamKind(StrEnum):
    """What a stream does."""

    COMPUTE = "compute"
    COMMUNICATION = "communication"
    H2D = "h2d"
    D2H = "d2h"
    NETWORK = "network"
    TASK = "task"


class LinkKind(StrEnum):
    """What carries bytes."""

    LEVEL = "level"
    LINK = "link"
    SEGMENT = "segment"


@dataclass(frozen=True, slots=True)
class Exposed:
    """Seconds of the step in which no kernel runs, by what runs instead."""

    communication: float | None = None
    transfer: float | None = None
    bubble: float | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """A queue of a group: its name, its kind, and the seconds in which it runs something."""

    name: str
    kind: StreamKind
    busy: float


@dataclass(frozen=True, slots=True)
class Group:
    """Devices that do the same (measured: one device)."""

    name: str
    devices: int
    streams: tuple[Stream, ...]
    exposed: Exposed = field(default_factory=Exposed)


@dataclass(frozen=True, slots=True)
class TierUse:
    """A tier of a group: its capacity, the most that was in it, and every change as (time, bytes)."""

    name: str
    group: int
    capacity: float | None
    peak: float
    timeline: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class LinkUse:
    """What went through a level of the network, a link between tiers, or a segment."""

    name: str
    kind: LinkKind
    bandwidth: float | None
    bytes: float
    utilisation: float | None


@dataclass(frozen=True, slots=True)
class CollectiveUse:
    """All collectives of one kind, on one device."""

    op: str
    count: int
    bytes_received: float
    seconds: float
    exposed_seconds: float | None


@dataclass(frozen=True, slots=True)
class TensorUse:
    """An argument of the program and how it is split."""

    name: str
    role: str
    shape: tuple[int, ...]
    dtype: str
    sharding: str
    local_bytes: float


@dataclass(frozen=True, slots=True)
class TaskSpan:
    """A kernel, collective or transfer, and when it runs."""

    op: str
    path: str
    group: int
    stream: int
    start: float
    end: float
    flops: float | None = None
    bytes: float | None = None
    bytes_received: float | None = None
    bound: str = "none"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Timeline:
    """A step; the module's text says what each entry means."""

    kind: TimelineKind
    name: str
    machine: str
    mesh: Mapping[str, int]
    devices: int
    seconds: float
    first_step_seconds: float | None
    flops: float | None
    mfu: float | None
    utilisation: float | None
    exposed: Exposed
    groups: tuple[Group, ...]
    tiers: tuple[TierUse, ...] = ()
    links: tuple[LinkUse, ...] = ()
    collectives: tuple[CollectiveUse, ...] = ()
    tensors: tuple[TensorUse, ...] = ()
    tasks: tuple[TaskSpan, ...] = ()
    masked_communication: float | None = None

    def streams(self, kind: StreamKind) -> tuple[Stream, ...]:
        """The streams of that kind, of every group."""
        return tuple(stream for group in self.groups for stream in group.streams if stream.kind == kind)

    def to_json(self) -> dict[str, Any]:
        """As the file holds it."""
        return {"format": FORMAT, "version": VERSION, **dataclasses.asdict(self)}

    def to_json_text(self) -> str:
        """As the file's text: an entry a line, and a task a line."""
        return json_text(self.to_json())

    def write(self, path: str | Path) -> None:
        """Write the file.

        Raises:
            SimulationError: It cannot be written.
        """
        try:
            Path(path).write_text(self.to_json_text(), encoding="utf-8")
        except OSError as error:
            raise SimulationError(f"cannot write {path}: {error.strerror or error}") from None

    @staticmethod
    def from_json(data: Any, where: str = "the timeline") -> Timeline:
        """From JSON that was read.

        Args:
            data: The JSON.
            where: What to call it in messages.

        Raises:
            SimulationError: It is no timeline of this version; the message says what is wrong.
        """
        if not isinstance(data, Mapping) or cast("Mapping[str, Any]", data).get("format") != FORMAT:
            raise SimulationError(f'{where}: expected a timeline ("format": "{FORMAT}")')
        entries = cast("Mapping[str, Any]", data)
        if entries.get("version") != VERSION:
            raise SimulationError(f"{where}: expected version {VERSION} but got {entries.get('version')}")
        try:
            return _timeline(entries)
        except KeyError as error:
            raise SimulationError(f"{where}: expected the key {error.args[0]!r}") from None
        except (TypeError, ValueError, AttributeError) as error:
            raise SimulationError(f"{where}: not a timeline as documented ({error})") from None


def read_timeline(path: str | Path) -> Timeline:
    """Read a timeline's file.

    Raises:
        SimulationError: The file cannot be read or is no timeline.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise SimulationError(f"{path}: cannot read the file: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise SimulationError(f"{path}: expected JSON") from None
    return Timeline.from_json(data, str(path))


def json_text(data: Mapping[str, Any]) -> str:
    """The text of a timeline's JSON: an entry a line, and an entry of a list a line."""
    lines: list[str] = []
    for key, value in data.items():
        text = json.dumps(value)
        if isinstance(value, (list, tuple)) and value:
            text = "[\n  " + ",\n  ".join(json.dumps(one) for one in cast("Sequence[Any]", value)) + "\n ]"
        lines.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


# Reading --------------------------------------------------------------------------------------------------------------


def _number(entries: Mapping[str, Any], key: str) -> float:
    value = entries[key]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"expected {key} to be a number but got {value!r}")
    return float(value)


def _maybe(entries: Mapping[str, Any], key: str) -> float | None:
    return None if entries[key] is None else _number(entries, key)


def _exposed(entries: Mapping[str, Any]) -> Exposed:
    return Exposed(_maybe(entries, "communication"), _maybe(entries, "transfer"), _maybe(entries, "bubble"))


def _group(entries: Mapping[str, Any]) -> Group:
    streams = tuple(
        Stream(str(stream["name"]), StreamKind(stream["kind"]), _number(stream, "busy"))
        for stream in entries["streams"]
    )
    return Group(str(entries["name"]), int(entries["devices"]), streams, _exposed(entries["exposed"]))


def _tier(entries: Mapping[str, Any]) -> TierUse:
    return TierUse(
        name=str(entries["name"]),
        group=int(entries["group"]),
        capacity=_maybe(entries, "capacity"),
        peak=_number(entries, "peak"),
        timeline=tuple((float(time), float(size)) for time, size in entries["timeline"]),
    )


def _link(entries: Mapping[str, Any]) -> LinkUse:
    return LinkUse(
        name=str(entries["name"]),
        kind=LinkKind(entries["kind"]),
        bandwidth=_maybe(entries, "bandwidth"),
        bytes=_number(entries, "bytes"),
        utilisation=_maybe(entries, "utilisation"),
    )


def _collective(entries: Mapping[str, Any]) -> CollectiveUse:
    return CollectiveUse(
        op=str(entries["op"]),
        count=int(entries["count"]),
        bytes_received=_number(entries, "bytes_received"),
        seconds=_number(entries, "seconds"),
        exposed_seconds=_maybe(entries, "exposed_seconds"),
    )


def _tensor(entries: Mapping[str, Any]) -> TensorUse:
    return TensorUse(
        name=str(entries["name"]),
        role=str(entries["role"]),
        shape=tuple(int(size) for size in entries["shape"]),
        dtype=str(entries["dtype"]),
        sharding=str(entries["sharding"]),
        local_bytes=_number(entries, "local_bytes"),
    )


def _task(entries: Mapping[str, Any], groups: Sequence[Group]) -> TaskSpan:
    task = TaskSpan(
        op=str(entries["op"]),
        path=str(entries["path"]),
        group=int(entries["group"]),
        stream=int(entries["stream"]),
        start=_number(entries, "start"),
        end=_number(entries, "end"),
        flops=_maybe(entries, "flops"),
        bytes=_maybe(entries, "bytes"),
        bytes_received=_maybe(entries, "bytes_received"),
        bound=str(entries["bound"]),
        reason=str(entries["reason"]),
    )
    if not 0 <= task.group < len(groups) or not 0 <= task.stream < len(groups[task.group].streams):
        raise ValueError(f"task {task.op} is on stream {task.stream} of group {task.group}, which is not there")
    return task


def _timeline(entries: Mapping[str, Any]) -> Timeline:
    groups = tuple(_group(entry) for entry in entries["groups"])
    return Timeline(
        kind=TimelineKind(entries["kind"]),
        name=str(entries["name"]),
        machine=str(entries["machine"]),
        mesh={str(axis): int(size) for axis, size in entries["mesh"].items()},
        devices=int(entries["devices"]),
        seconds=_number(entries, "seconds"),
        first_step_seconds=_maybe(entries, "first_step_seconds"),
        flops=_maybe(entries, "flops"),
        mfu=_maybe(entries, "mfu"),
        utilisation=_maybe(entries, "utilisation"),
        exposed=_exposed(entries["exposed"]),
        groups=groups,
        tiers=tuple(_tier(entry) for entry in entries["tiers"]),
        links=tuple(_link(entry) for entry in entries["links"]),
        collectives=tuple(_collective(entry) for entry in entries["collectives"]),
        tensors=tuple(_tensor(entry) for entry in entries["tensors"]),
        tasks=tuple(_task(entry, groups) for entry in entries["tasks"]),
        masked_communication=_maybe(entries, "masked_communication"),
    )


__all__ = [
    "FORMAT",
    "VERSION",
    "CollectiveUse",
    "Exposed",
    "Group",
    "LinkKind",
    "LinkUse",
    "Stream",
    "StreamKind",
    "TaskSpan",
    "TensorUse",
    "TierUse",
    "Timeline",
    "TimelineKind",
    "json_text",
    "read_timeline",
]
