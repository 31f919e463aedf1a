# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One self-contained page: ``page/page.html`` with the style, the scripts and the timelines put in.

The timelines go in as columns, compressed and in base64, so that a hundred thousand tasks are a few megabytes and no
name of an op or a tensor can be read as markup. A content security policy lets nothing be fetched, and no script run but
the one that is there. The same timelines give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import zlib
from collections.abc import Sequence
from importlib import resources
from typing import Any

from hyperparallel.report.summary import kind_of, summarise
from hyperparallel.simulator.timeline import TaskSpan, Timeline

_SCRIPTS = (
    "units.js",
    "runs.js",
    "window.js",
    "palette.js",
    "lanes.js",
    "tiers.js",
    "gestures.js",
    "tables.js",
    "figures.js",
    "page.js",
)
_PICOSECONDS = 12
_PLACE = re.compile(r"\{\{([A-Z]+)\}\}")


class _Strings:
    """Each text once."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._index: dict[str, int] = {}

    def __getitem__(self, text: str) -> int:
        index = self._index.get(text)
        if index is None:
            index = self._index[text] = len(self.texts)
            self.texts.append(text)
        return index


def _number(value: float | None) -> float | int | None:
    """Whole numbers without a fraction, which is half of the text."""
    return int(value) if value is not None and value == int(value) else value


def _columns(tasks: Sequence[TaskSpan], kinds: Sequence[Sequence[str]], strings: _Strings) -> dict[str, list[Any]]:
    return {
        "op": [strings[task.op] for task in tasks],
        "path": [strings[task.path] for task in tasks],
        "kind": [strings[kind_of(task, kinds[task.group][task.stream])] for task in tasks],
        "group": [task.group for task in tasks],
        "stream": [task.stream for task in tasks],
        "start": [round(task.start, _PICOSECONDS) for task in tasks],
        "end": [round(task.end, _PICOSECONDS) for task in tasks],
        "flops": [_number(task.flops) for task in tasks],
        "bytes": [_number(task.bytes) for task in tasks],
        "received": [_number(task.bytes_received) for task in tasks],
        "bound": [strings[str(task.bound)] for task in tasks],
        "reason": [strings[task.reason] for task in tasks],
    }


def _run(timeline: Timeline, label: str) -> dict[str, Any]:
    strings = _Strings()
    kinds = [[str(stream.kind) for stream in group.streams] for group in timeline.groups]
    tasks = sorted(timeline.tasks, key=lambda task: (task.group, task.stream, task.start, -task.end))
    return {
        "label": label,
        "summary": summarise(timeline).to_json(),
        "groups": [
            {
                "name": group.name,
                "devices": group.devices,
                "streams": [
                    {"name": stream.name, "kind": str(stream.kind), "busy": stream.busy} for stream in group.streams
                ],
                "exposed": {
                    "communication": group.exposed.communication,
                    "transfer": group.exposed.transfer,
                    "bubble": group.exposed.bubble,
                },
            }
            for group in timeline.groups
        ],
        "tiers": [
            {
                "name": tier.name,
                "group": tier.group,
                "capacity": tier.capacity,
                "peak": tier.peak,
                "times": [round(time, _PICOSECONDS) for time, _ in tier.timeline],
                "bytes": [_number(size) for _, size in tier.timeline],
            }
            for tier in timeline.tiers
        ],
        "tensors": [
            [tensor.name, str(tensor.role or ""), list(tensor.shape), tensor.dtype, tensor.sharding, tensor.local_bytes]
            for tensor in timeline.tensors
        ],
        "tasks": _columns(tasks, kinds, strings),
        "strings": strings.texts,
    }


def labels_of(timelines: Sequence[Timeline], labels: Sequence[str] | None = None) -> list[str]:
    """What to call timelines: what they are, with A and B where both are the same."""
    if labels is not None:
        return list(labels)
    kinds = [str(timeline.kind) for timeline in timelines]
    return kinds if len(set(kinds)) == len(kinds) else [f"{kind} {'AB'[i]}" for i, kind in enumerate(kinds)]


def page(timelines: Sequence[Timeline], *, labels: Sequence[str] | None = None) -> str:
    """The page of one timeline, or of two side by side.

    Args:
        timelines: One or two.
        labels: What to call them; by default ``simulated`` and ``measured``, with A and B where both are the same.
    """
    files = resources.files("hyperparallel.report") / "page"
    runs = [_run(one, label) for one, label in zip(timelines, labels_of(timelines, labels), strict=True)]
    data = json.dumps({"version": 1, "runs": runs}, separators=(",", ":"), allow_nan=False).encode()
    script = "\n".join(
        ["(() => {", '"use strict";', *[(files / name).read_text("utf-8") for name in _SCRIPTS], "})();"]
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    title = " and ".join(dict.fromkeys(timeline.name for timeline in timelines))
    values = {
        "TITLE": html.escape(title),
        "POLICY": f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        "STYLE": (files / "page.css").read_text("utf-8"),
        "SCRIPT": script,
        "DATA": base64.b64encode(zlib.compress(data, 9)).decode(),
    }
    # In one pass, so that nothing in a value is taken for a place.
    return _PLACE.sub(lambda place: values[place[1]], (files / "page.html").read_text("utf-8"))


__all__ = ["labels_of", "page"]
