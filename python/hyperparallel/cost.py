# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a program costs on a machine: operations, bytes and seconds of every task.

The numbers are the compiler's own cost model: a kernel takes the longer of its operations and its bytes, plus the time
of a launch; a collective what its best algorithm takes on the levels of the network that it crosses. Tasks are added up
as if nothing overlapped.

>>> report = cost_of_text('''
... func.func @main(%a: tensor<8x16xf32>, %b: tensor<16x4xf32>, %c: tensor<8x4xf32>) -> tensor<8x4xf32> {
...   %0 = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x4xf32>) outs(%c : tensor<8x4xf32>) -> tensor<8x4xf32>
...   return %0 : tensor<8x4xf32>
... }''', machine="h200-node")
>>> report.machine, report.function("main").total.flops
('h200-node', 1024.0)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperparallel.enums import StrEnum
from hyperparallel.errors import CompilationError
from hyperparallel.machines import Machine

if TYPE_CHECKING:
    from mlir import ir


class Bound(StrEnum):
    """What most of the time goes to."""

    NONE = "none"
    LAUNCH = "launch"
    COMPUTE = "compute"
    MEMORY = "memory"
    COMMUNICATION = "communication"


@dataclass(frozen=True, slots=True)
class Cost:
    """What one device does.

    Attributes:
        flops: Operations.
        contraction_flops: Those of them that a matrix unit does.
        bytes_read: From the device's memory.
        bytes_written: To the device's memory.
        bytes_received: From other devices.
        seconds: Time, when nothing overlaps.
        communication_seconds: The part of it spent in collectives.
        launches: Kernels and collectives started.
        estimated_ops: Ops of unknown cost, counted as one pass over operands and results.
        bound: What most of the time goes to.
    """

    flops: float
    contraction_flops: float
    bytes_read: float
    bytes_written: float
    bytes_received: float
    seconds: float
    communication_seconds: float
    launches: float
    estimated_ops: float
    bound: Bound


@dataclass(frozen=True, slots=True)
class Task:
    """An op or call of a function.

    Attributes:
        op: The op's name.
        path: ``hp.path`` of a call, such as ``model.layers.3``.
        callee: The function that is called.
        algorithm: How a collective is done.
        cost: What it costs, everything in it included.
    """

    op: str
    path: str
    callee: str
    algorithm: str
    cost: Cost


@dataclass(frozen=True, slots=True)
class FunctionCost:
    """A function: its tasks that take time, in order, and their sum."""

    name: str
    total: Cost
    tasks: tuple[Task, ...]


@dataclass(frozen=True, slots=True)
class CostReport:
    """Every function of a program, on a machine."""

    machine: str
    functions: tuple[FunctionCost, ...]

    def function(self, name: str) -> FunctionCost:
        """The function of that name; KeyError if there is none."""
        for function in self.functions:
            if function.name == name:
                return function
        raise KeyError(name)


def _cost(entry: Mapping[str, Any]) -> Cost:
    return Cost(
        **{field.name: float(entry[field.name]) for field in fields(Cost) if field.name != "bound"},
        bound=Bound(entry["bound"]),
    )


def cost_of(module: ir.Module, *, machine: Machine | str | None = None) -> CostReport:
    """The cost of a module.

    Args:
        module: Any module that our dialects can read; before partition its shapes, and so the costs, are global.
        machine: A description, a preset or a file to use instead of the module's ``supernode.machine``
            (``cpu-supernode`` if it has none). The module is not changed.

    Raises:
        MachineError: There is no such machine.
    """
    from hyperparallel import _hyperparallel
    from hyperparallel.dialects import supernode

    with supernode.machine_set(module, machine):
        data = json.loads(_hyperparallel.cost_report(module))
    return CostReport(
        machine=data["machine"],
        functions=tuple(
            FunctionCost(
                name=function["name"],
                total=_cost(function),
                tasks=tuple(
                    Task(task["op"], task["path"], task["callee"], task["algorithm"], _cost(task))
                    for task in function["tasks"]
                ),
            )
            for function in data["functions"]
        ),
    )


def cost_of_text(text: str | bytes, *, machine: Machine | str | None = None, path: str = "<text>") -> CostReport:
    """The cost of a module given as text or bytecode.

    Raises:
        CompilationError: The text is no module; the message has the parser's words.
        MachineError: There is no such machine.
    """
    from mlir import ir

    from hyperparallel import dialects

    context = ir.Context()
    dialects.register(context)
    with context:
        try:
            module = ir.Module.parse(text)
        except ir.MLIRError as error:  # pyright: ignore[reportAttributeAccessIssue] (absent from the stubs)
            said = [str(diagnostic.message) for diagnostic in error.error_diagnostics]
            raise CompilationError(f"{path}: expected a program but it cannot be read", diagnostics=said) from None
        return cost_of(module, machine=machine)


def cost_of_file(path: str | Path, *, machine: Machine | str | None = None) -> CostReport:
    """The cost of a module in a file (text or bytecode); errors as :func:`cost_of_text`."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise CompilationError(f"{path}: cannot read the file: {error.strerror}") from None
    return cost_of_text(content, machine=machine, path=str(path))


COLUMNS = ("task", "flops", "read", "written", "received", "time", "bound")


def _si(value: float, unit: str) -> str:
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.2f} {prefix}{unit}"
    return f"{value:.0f} {unit}" if unit != "s" else _time(value)


def _time(seconds: float) -> str:
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= factor:
            return f"{seconds / factor:.2f} {unit}"
    return f"{seconds * 1e9:.2f} ns" if seconds else "0 s"


def _row(name: str, cost: Cost) -> tuple[str, ...]:
    return (
        name,
        _si(cost.flops, "FLOP"),
        _si(cost.bytes_read, "B"),
        _si(cost.bytes_written, "B"),
        _si(cost.bytes_received, "B"),
        _time(cost.seconds),
        str(cost.bound),
    )


def rows_of(function: FunctionCost) -> list[tuple[str, ...]]:
    """The cells of a function, under :data:`COLUMNS`: its sum, then its tasks."""
    rows = [_row(f"@{function.name}", function.total)]
    for task in function.tasks:
        name = " ".join(part for part in (task.op, task.callee and f"@{task.callee}", task.path) if part)
        rows.append(_row(f"  {name}", task.cost))
    return rows


def table(report: CostReport) -> str:
    """The report as text, one block of aligned columns for each function: what ``hp cost`` prints."""
    lines: list[str] = [f"machine {report.machine}"]
    for function in report.functions:
        rows = [COLUMNS, *rows_of(function)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
        for row in rows:
            cells = [
                row[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
            ]
            lines.append("  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


__all__ = [
    "COLUMNS",
    "Bound",
    "Cost",
    "CostReport",
    "FunctionCost",
    "Task",
    "cost_of",
    "cost_of_file",
    "cost_of_text",
    "rows_of",
    "table",
]
