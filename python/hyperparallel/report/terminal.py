# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step in the terminal: what it takes, what that time goes to, and what is busiest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hyperparallel.report.summary import Summary, bare

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_BAR = 24
UNKNOWN = "–"
_STYLES = {"kernels": "blue", "communication": "yellow", "transfer": "magenta", "bubble": "bright_black"}
_WORDS = {
    "kernels": "kernels",
    "communication": "exposed communication",
    "transfer": "exposed transfer",
    "bubble": "nothing runs",
}


def seconds_text(seconds: float | None) -> str:
    """Three digits and a unit; ``–`` if unknown.

    >>> seconds_text(0.2787), seconds_text(7.2e-05), seconds_text(0.0), seconds_text(-1.5)
    ('279 ms', '72.0 µs', '0 s', '-1.50 s')
    """
    if seconds is None:
        return UNKNOWN
    size = abs(seconds)
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")):
        if size >= factor * 0.9995:
            return f"{_three(seconds / factor)} {unit}"
    return f"{_three(seconds * 1e9)} ns" if size else "0 s"


def bytes_text(size: float | None) -> str:
    """Three digits and a binary unit; ``–`` if unknown.

    >>> bytes_text(341024256.0), bytes_text(512), bytes_text(None)
    ('325 MiB', '512 B', '–')
    """
    if size is None:
        return UNKNOWN
    for power, unit in ((5, "PiB"), (4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if abs(size) >= 1024**power * 0.9995:
            return f"{_three(size / 1024**power)} {unit}"
    return f"{size:.0f} B"


def _three(value: float) -> str:
    """Three significant digits, no exponent."""
    size = abs(value)
    return f"{value:.0f}" if size >= 99.95 else f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"


def percent_text(share: float | None) -> str:
    """One decimal; ``–`` if unknown.

    >>> percent_text(0.98034), percent_text(None)
    ('98.0 %', '–')
    """
    return UNKNOWN if share is None else f"{share * 100:.1f} %"


def _flops_text(flops: float | None) -> str:
    if flops is None:
        return UNKNOWN
    for factor, unit in ((1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP")):
        if flops >= factor:
            return f"{_three(flops / factor)} {unit}"
    return f"{flops:.0f} FLOP"


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table without the columns of which nothing is known."""
    from rich import box
    from rich.table import Table

    lines = list(rows)
    known = [place for place in range(len(columns)) if place == 0 or any(line[place] != UNKNOWN for line in lines)]
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for place in known:
        table.add_column(columns[place], justify="left" if place == 0 else "right", overflow="fold")
    for line in lines:
        table.add_row(*(line[place] for place in known))
    return table


def _heading(summary: Summary) -> str:
    mesh = ",".join(f"{name}={size}" for name, size in summary.mesh.items())
    where = f" on {summary.machine}" if summary.machine else ""
    devices = f"{summary.devices} device{'s' if summary.devices != 1 else ''}"
    return f"{summary.name} {summary.kind}{where}, {devices}{f' ({mesh})' if mesh else ''}"


def _causes(console: Console, summary: Summary) -> None:
    from rich.text import Text

    for cause in summary.causes:
        filled = round((cause.share or 0.0) * _BAR)
        if cause.seconds and filled == 0:
            filled = 1
        line = Text(f"  {_WORDS[cause.name]:<22}{seconds_text(cause.seconds):>9}  {percent_text(cause.share):>7}  ")
        line.append("█" * filled, style=_STYLES[cause.name])
        console.print(line)


def _operations(summary: Summary, rows: int) -> Table:
    return _table(
        "Busiest operations",
        ("operation", "count", "seconds", "of the step", "work", "bytes"),
        (
            (
                use.name,
                f"{use.count:,.0f}",
                seconds_text(use.seconds),
                percent_text(use.share),
                _flops_text(use.flops),
                bytes_text(use.bytes),
            )
            for use in summary.operations[:rows]
        ),
    )


def _collectives(summary: Summary, rows: int) -> Table:
    return _table(
        "Collectives",
        ("operation", "count", "received", "seconds", "exposed"),
        (
            (
                bare(use.op),
                str(use.count),
                bytes_text(use.bytes_received),
                seconds_text(use.seconds),
                seconds_text(use.exposed_seconds),
            )
            for use in sorted(summary.collectives, key=lambda use: -use.seconds)[:rows]
        ),
    )


def _memory(summary: Summary, rows: int) -> Table:
    several = len({tier.group for tier in summary.tiers}) > 1
    return _table(
        "Memory",
        ("tier", "peak", "capacity", "used"),
        (
            (
                f"{tier.group}: {tier.name}" if several else tier.name,
                bytes_text(tier.peak),
                bytes_text(tier.capacity),
                percent_text(tier.used),
            )
            for tier in sorted(summary.tiers, key=lambda tier: -(tier.used or 0.0))[:rows]
        ),
    )


def _links(summary: Summary, rows: int) -> Table:
    return _table(
        "Links",
        ("link", "carried", "bandwidth", "used"),
        (
            (
                link.name,
                bytes_text(link.bytes),
                UNKNOWN if link.bandwidth is None else f"{_three(link.bandwidth / 1e9)} GB/s",
                percent_text(link.utilisation),
            )
            for link in sorted(summary.links, key=lambda link: -(link.utilisation or 0.0))[:rows]
        ),
    )


def print_summary(console: Console, summary: Summary, *, rows: int = 8) -> None:
    """Prints one step; the longest tables end after ``rows`` rows."""
    console.print(_heading(summary), style="bold", highlight=False)
    facts = [f"step {seconds_text(summary.seconds)}"]
    if summary.utilisation is not None:
        facts.append(f"compute busy {percent_text(summary.utilisation)}")
    if summary.masked_communication is not None:
        facts.append(f"{percent_text(summary.masked_communication)} of communication behind kernels")
    if summary.mfu is not None:
        facts.append(f"MFU {percent_text(summary.mfu)}")
    if summary.flops is not None:
        facts.append(f"{_flops_text(summary.flops)} a device")
    console.print("  " + ", ".join(facts), highlight=False)
    _causes(console, summary)
    console.print()
    for part, table in (
        (summary.operations, _operations),
        (summary.collectives, _collectives),
        (summary.tiers, _memory),
        (summary.links, _links),
    ):
        if part:
            console.print(table(summary, rows))


def print_comparison(console: Console, summaries: Sequence[Summary], labels: Sequence[str]) -> None:
    """Prints two steps side by side; the change is that of the second against the first."""
    first, second = summaries
    for label, summary in zip(labels, summaries, strict=True):
        console.print(f"{label}: {_heading(summary)}", style="bold", highlight=False)
    rows: list[tuple[str, float | None, float | None]] = [("step", first.seconds, second.seconds)]
    rows += [(f"  {_WORDS[a.name]}", a.seconds, b.seconds) for a, b in zip(first.causes, second.causes, strict=True)]
    kinds = {use.name: (use.seconds, 0.0) for use in first.kinds}
    for use in second.kinds:
        kinds[use.name] = (kinds.get(use.name, (0.0, 0.0))[0], use.seconds)
    rows += [(name, *pair) for name, pair in sorted(kinds.items(), key=lambda entry: -max(entry[1]))]
    console.print(_table("", ("", *labels, "difference", "ratio"), (_compared(*row) for row in rows)))


def _compared(name: str, first: float | None, second: float | None) -> tuple[str, ...]:
    difference = None if first is None or second is None else second - first
    ratio = f"{second / first:.2f}" if first and second is not None else UNKNOWN
    return name, seconds_text(first), seconds_text(second), seconds_text(difference), ratio


__all__ = ["bytes_text", "percent_text", "print_comparison", "print_summary", "seconds_text"]
