# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``hp report``: one step, or two side by side, as a page, a Perfetto trace, or a summary."""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import math
import tempfile
import zlib
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperparallel.cli.console import Talk
from hyperparallel.errors import HyperParallelError

if TYPE_CHECKING:
    from hyperparallel.compiled import CompiledProgram
    from hyperparallel.runtime import RunStatistics
    from hyperparallel.simulator.timeline import Timeline

_EXPECTED = (
    "a directory that hp compile made, a program, a timeline of hp simulate or hp run --timeline, or a trace of "
    "hp run --trace"
)
_PROGRAMS = (".mlir", ".mlirbc")


def read_input(path: Path, machine: str | None = None) -> Timeline:
    """The timeline of what was named on the command line; programs are simulated.

    Args:
        path: A compiled directory, a program, a timeline or a trace.
        machine: What to simulate a program on, instead of the machine that it was compiled for.

    Raises:
        HyperParallelError: It cannot be read, or is none of what is expected.
    """
    if path.is_dir() or path.suffix in _PROGRAMS:
        from hyperparallel.simulator import simulate_file

        return simulate_file(path, machine=machine)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise HyperParallelError(f"no file or directory at {path}; expected {_EXPECTED}") from None
    except OSError as error:
        raise HyperParallelError(f"cannot read {path}: {error.strerror or error}") from None
    try:
        data: Any = json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
    except (OSError, EOFError, zlib.error):
        raise HyperParallelError(f"{path} is cut off or damaged: its gzip data cannot be read") from None
    except (ValueError, RecursionError):
        raise HyperParallelError(f"{path} is not JSON; expected {_EXPECTED}") from None
    return _timeline(path, data)


def _timeline(path: Path, data: Any) -> Timeline:
    from hyperparallel.report.measured import is_trace, measured_timeline
    from hyperparallel.simulator.timeline import Timeline

    if is_trace(data):
        name = path.name.removesuffix(".gz").removesuffix(".json").removesuffix(".trace")
        try:
            return measured_timeline(data, name=name)
        except HyperParallelError as error:
            raise HyperParallelError(f"{path}: {error}") from None
    timeline = Timeline.from_json(data, str(path))
    _check(timeline, path)
    return timeline


def _check(timeline: Timeline, path: Path) -> None:
    """Refuses what cannot be drawn: JSON as Python reads it may hold infinite numbers."""
    for tier in timeline.tiers:
        if not 0 <= tier.group < len(timeline.groups):
            raise HyperParallelError(
                f"{path}: expected tier {tier.name} in one of {len(timeline.groups)} groups but got group {tier.group}"
            )
    for what, times in [
        ("the step", (timeline.seconds,)),
        *((f"task {task.op}", (task.start, task.end)) for task in timeline.tasks),
    ]:
        if not all(math.isfinite(time) for time in times):
            raise HyperParallelError(f"{path}: expected finite times of {what} but got {times}")


@contextlib.contextmanager
def trace_file(trace: Path | None, timeline: Path | None) -> Generator[Path | None]:
    """The file that a run's trace goes to: the one that was asked for, or one for as long as a timeline is made."""
    if trace is not None or timeline is None:
        yield trace
        return
    with tempfile.TemporaryDirectory(prefix="hyperparallel-") as folder:
        yield Path(folder) / "trace.json"


def read_timeline(trace: Path, program: CompiledProgram, statistics: RunStatistics) -> Timeline:
    """The timeline of a run, with what the program and its statistics say beyond the trace."""
    from hyperparallel.report.measured import measured_timeline

    data = json.loads(trace.read_text(encoding="utf-8"))
    return measured_timeline(data, program=program, statistics=statistics)


def report_command(arguments: argparse.Namespace) -> int:
    """``hp report``."""
    talk = Talk(arguments.quiet)
    paths = [path for path in (arguments.input, arguments.other) if path is not None]
    timelines: list[Timeline] = []
    for path in paths:
        with talk.step("simulate"):
            timelines.append(read_input(path, arguments.machine))
    labels = _labels(paths, timelines)
    if arguments.output is not None:
        from hyperparallel.report import page

        with talk.step("page"):
            _write(arguments.output, page(timelines, labels=labels))
    if arguments.perfetto is not None:
        from hyperparallel.report import write_perfetto

        try:
            write_perfetto(arguments.perfetto, timelines)
        except OSError as error:
            raise HyperParallelError(f"cannot write {arguments.perfetto}: {error.strerror or error}") from None
    _say(arguments, timelines, labels)
    return 0


def _labels(paths: list[Path], timelines: list[Timeline]) -> list[str]:
    """What to call the inputs: what they are, or what their files are called where both are the same."""
    from hyperparallel.report.page import labels_of

    stems = [path.resolve().name.partition(".")[0] for path in paths]
    alike = len({timeline.kind for timeline in timelines}) < len(timelines)
    return stems if alike and len(set(stems)) == len(stems) else labels_of(timelines)


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise HyperParallelError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _say(arguments: argparse.Namespace, timelines: list[Timeline], labels: list[str]) -> None:
    """The product on stdout: the numbers, the files that were written, or the summary."""
    from hyperparallel.report import print_comparison, print_summary, summarise

    if arguments.json:
        summaries = [summarise(timeline).to_json() for timeline in timelines]
        print(json.dumps(summaries[0] if len(summaries) == 1 else summaries, indent=1))
        return
    written = [path for path in (arguments.output, arguments.perfetto) if path is not None]
    if written:
        for path in written:
            print(path)
        return
    from rich.console import Console

    console = Console()
    summaries = [summarise(timeline) for timeline in timelines]
    if len(summaries) == 1:
        print_summary(console, summaries[0])
    else:
        print_comparison(console, summaries, labels)


__all__ = ["read_input", "report_command"]
