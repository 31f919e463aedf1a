# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``hp simulate`` and ``hp import-trace``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from hyperparallel.cli.console import Talk
from hyperparallel.errors import CompilationError

if TYPE_CHECKING:
    from hyperparallel.simulator import Timeline

#: Tasks that the summary names.
_LONGEST = 8


def simulate_command(arguments: argparse.Namespace) -> int:
    """``hp simulate``."""
    from hyperparallel import machines
    from hyperparallel.simulator import simulate_file

    machine = None if arguments.machine is None else machines.load(arguments.machine)
    talk = Talk(arguments.quiet)
    with talk.step("simulate"):
        timeline = simulate_file(arguments.program, machine=machine, noise=arguments.noise, seed=arguments.seed)
    if arguments.output is not None:
        timeline.write(arguments.output)
    if arguments.json:
        print(timeline.to_json_text(), end="")
    else:
        _summarise(timeline)
    for use in timeline.tiers:
        if use.capacity is not None and use.peak > use.capacity:
            talk.say(
                f"hp: note: {_bytes(use.peak)} do not fit into {use.name}, which has {_bytes(use.capacity)}: "
                "what is simulated cannot run as it is"
            )
    return 0


# The summary ----------------------------------------------------------------------------------------------------------


def _bytes(size: float) -> str:
    for factor, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= factor:
            return f"{size / factor:.2f} {unit}"
    return f"{size:.0f} B"


def _seconds(seconds: float) -> str:
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= factor:
            return f"{seconds / factor:.3f} {unit}"
    return f"{seconds * 1e9:.3f} ns" if seconds else "0 s"


def _part(part: float | None) -> str:
    return "unknown" if part is None else f"{part * 100:.1f} %"


def _rows(timeline: Timeline) -> Iterable[tuple[str, list[str], list[list[str]]]]:
    """Tables: a title, the heads of the columns (the first is to the left), the rows."""
    step = timeline.seconds or 1.0
    exposed = timeline.exposed
    parts = [
        ("kernels", (timeline.utilisation or 0.0) * timeline.seconds),
        ("communication, exposed", exposed.communication or 0.0),
        ("copies, exposed", exposed.transfer or 0.0),
        ("bubble", exposed.bubble or 0.0),
    ]
    yield "Step", ["", "time", "of the step"], [[name, _seconds(time), _part(time / step)] for name, time in parts]
    yield (
        "Memory of one device",
        ["tier", "peak", "capacity", "used"],
        [
            [
                use.name if len(timeline.groups) == 1 else f"{timeline.groups[use.group].name}: {use.name}",
                _bytes(use.peak),
                "unknown" if use.capacity is None else _bytes(use.capacity),
                _part(None if not use.capacity else use.peak / use.capacity),
            ]
            for use in timeline.tiers[:_LONGEST]
        ],
    )
    yield (
        "Collectives of one device",
        ["op", "count", "received", "time", "exposed"],
        [
            [
                use.op,
                str(use.count),
                _bytes(use.bytes_received),
                _seconds(use.seconds),
                "unknown" if use.exposed_seconds is None else _seconds(use.exposed_seconds),
            ]
            for use in timeline.collectives
        ],
    )
    yield (
        "Links",
        ["name", "kind", "bandwidth", "bytes", "used"],
        [
            [
                use.name,
                str(use.kind),
                "unknown" if use.bandwidth is None else f"{_bytes(use.bandwidth)}/s",
                _bytes(use.bytes),
                _part(use.utilisation),
            ]
            for use in timeline.links
        ],
    )
    kinds: dict[str, tuple[int, float]] = {}
    for task in timeline.tasks:
        count, time = kinds.get(task.op, (0, 0.0))
        kinds[task.op] = (count + 1, time + task.end - task.start)
    longest = sorted(kinds.items(), key=lambda item: (-item[1][1], item[0]))[:_LONGEST]
    yield (
        "What takes longest",
        ["op", "count", "time"],
        [[op, str(count), _seconds(time)] for op, (count, time) in longest],
    )


def _summarise(timeline: Timeline) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    mesh = ",".join(f"{axis}={size}" for axis, size in timeline.mesh.items())
    on = f"{timeline.devices} device{'s' if timeline.devices > 1 else ''}{f' ({mesh})' if mesh else ''}"
    console.print(f"{timeline.name} on {on} of {timeline.machine}", markup=False)
    console.print(
        f"step {_seconds(timeline.seconds)}, {_part(timeline.utilisation)} in kernels, model flops utilisation "
        f"{_part(timeline.mfu)}"
        + (
            ""
            if timeline.masked_communication is None
            else f", {_part(timeline.masked_communication)} of communication behind kernels"
        )
    )
    for title, heads, rows in _rows(timeline):
        if not rows:
            continue
        table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
        for index, head in enumerate(heads):
            table.add_column(head, justify="right" if index else "left", header_style="dim")
        for row in rows:
            table.add_row(*(cell.replace("[", "\\[") for cell in row))
        console.print()
        console.print(table)


# Traces ---------------------------------------------------------------------------------------------------------------


def import_trace_command(arguments: argparse.Namespace) -> int:
    """``hp import-trace``."""
    from hyperparallel.simulator import import_trace, read_trace

    trace = read_trace(arguments.trace)
    text = str(import_trace(trace))
    try:
        arguments.output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CompilationError(f"cannot write {arguments.output}: {error.strerror or error}") from None
    if arguments.json:
        print(
            json.dumps(
                {
                    "trace": trace.name,
                    "file": str(arguments.output),
                    "operations": len(trace.operations),
                    "tensors": len(trace.tensors),
                    "persistent": sum(trace.persistent),
                    "compute_seconds": trace.compute_seconds,
                    "largest_operation_bytes": trace.largest_operation_bytes,
                },
                indent=1,
            )
        )
    else:
        print(arguments.output)
    return 0


__all__ = ["import_trace_command", "simulate_command"]
