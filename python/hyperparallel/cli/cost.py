# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``hp cost``: what a program costs on a machine, as a table."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hyperparallel.errors import HyperParallelError

if TYPE_CHECKING:
    from hyperparallel.cost import CostReport

#: What a compiled directory has to cost, and what an imported one has.
_PROGRAMS = ("program.mlirbc", "model.mlir")


def program_file(path: Path) -> Path:
    """The file to cost: the path itself, or in a directory the program of one device, or else the imported model.

    Raises:
        HyperParallelError: There is no program.
    """
    if not path.is_dir():
        return path
    for name in _PROGRAMS:
        if (path / name).is_file():
            return path / name
    raise HyperParallelError(f"{path} has no program to cost; expected a directory of hp compile or hp import")


def cost_command(arguments: argparse.Namespace) -> int:
    """``hp cost``."""
    from hyperparallel.cost import cost_of_file, table

    report = cost_of_file(program_file(arguments.program), machine=arguments.machine)
    if arguments.json:
        print(json.dumps(dataclasses.asdict(report), indent=1))
    elif sys.stdout.isatty():
        _print_rich(report)
    else:
        print(table(report), end="")
    return 0


def _print_rich(report: CostReport) -> None:
    from rich.console import Console
    from rich.table import Table

    from hyperparallel.cost import COLUMNS, rows_of

    console = Console()
    for function in report.functions:
        drawn = Table(title=f"@{function.name} on {report.machine}", title_justify="left")
        for index, column in enumerate(COLUMNS):
            drawn.add_column(column, justify="left" if index == 0 else "right", overflow="fold")
        for number, row in enumerate(rows_of(function)):
            drawn.add_row(*row, style="bold" if number == 0 else None, end_section=number == 0)
        console.print(drawn)


__all__ = ["cost_command", "program_file"]
