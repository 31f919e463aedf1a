# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``hp run``'s options for processes, and the run over them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from hyperparallel.errors import RuntimeFailure

if TYPE_CHECKING:
    from hyperparallel.compiled import CompiledProgram
    from hyperparallel.execute import RunResult

#: Options that are about the devices of one process.
_LOCAL_ONLY = ("trace", "timeline", "device_memory")


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """The options of ``hp run`` that say where the devices are."""
    verb.add_argument(
        "--launcher",
        choices=["local", "mpi"],
        default="local",
        help="local: all devices in this process; mpi: over processes that mpiexec starts, without Python",
    )
    verb.add_argument("--processes", type=int, metavar="N", help="with mpi: how many processes (default: one a device)")


def runs_over_processes(arguments: argparse.Namespace) -> bool:
    """Whether the run is one over processes.

    Raises:
        RuntimeFailure: An option does not go with that.
    """
    if arguments.launcher == "local":
        if arguments.processes is not None:
            raise RuntimeFailure("--processes is for --launcher mpi; all devices of a local run are in one process")
        return False
    for name in _LOCAL_ONLY:
        if getattr(arguments, name) is not None:
            raise RuntimeFailure(f"--{name.replace('_', '-')} is for local runs; leave out --launcher mpi, or this")
    if arguments.processes is not None and arguments.processes < 1:
        raise RuntimeFailure(f"--processes: expected a number of at least 1 but got {arguments.processes}")
    return True


def execute_over_processes(
    arguments: argparse.Namespace, program: CompiledProgram, values: Any, *, steps: int
) -> RunResult:
    """Run a compiled program over processes, as the options say."""
    from hyperparallel.execute import RunResult
    from hyperparallel.launching import run_over_processes

    run = run_over_processes(
        program.directory,
        (program,),
        values,
        processes=arguments.processes,
        steps=steps,
        threads=arguments.threads,
    )
    return RunResult(run.results, run.statistics, run.wall_seconds)
