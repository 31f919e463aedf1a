# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``hp run``'s options for devices and for states: where devices are and what they do, what a training goes on from."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperparallel.enums import Role
from hyperparallel.errors import RuntimeFailure

if TYPE_CHECKING:
    from hyperparallel.compiled import CompiledProgram
    from hyperparallel.execute import RunResult
    from hyperparallel.feed import Feed
    from hyperparallel.runtime import Launch

#: Options that are about the devices of one process.
_LOCAL_ONLY = ("trace", "timeline", "device_memory")
Values = Mapping[str, Any] | Callable[[str], Any]


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """The options of ``hp run`` that say where the devices are, and where the state is."""
    verb.add_argument(
        "--launcher",
        choices=["local", "mpi"],
        default="local",
        help="local: all devices in this process; mpi: over processes that mpiexec starts, without Python",
    )
    verb.add_argument("--processes", type=int, metavar="N", help="with mpi: how many processes (default: one a device)")
    verb.add_argument(
        "--stuck-after",
        type=int,
        metavar="MS",
        help="with mpi: a device is taken for stuck if its program makes no call of the runtime for so long (default 6000)",
    )
    verb.add_argument(
        "--save", type=Path, metavar="DIR", help="save what is trained here after the last step: DIR/step-00000005"
    )
    verb.add_argument("--save-every", type=int, metavar="N", help="save it also after every N steps")
    verb.add_argument(
        "--resume", type=Path, metavar="DIR", help="go on from the last state that was saved there, in any layout"
    )
    verb.add_argument(
        "--tf32", action="store_true", help="let GPUs round the operands of products in f32 to 10 bits, which is faster"
    )
    verb.add_argument(
        "--no-graphs",
        action="store_true",
        help="let GPUs and NPUs run every step as it is; the second one is captured otherwise",
    )


def gpu_options(arguments: argparse.Namespace) -> dict[str, bool]:
    """What ``run_compiled`` is told about GPUs.

    Args:
        arguments: Those of ``hp run``.
    """
    return {"graphs": not arguments.no_graphs, "tf32": arguments.tf32}


def _check_state_options(arguments: argparse.Namespace, program: CompiledProgram) -> None:
    """Refuse options for states that do not go together, or with the program.

    Raises:
        RuntimeFailure: They do not.
    """
    if arguments.save_every is not None and arguments.save is None:
        raise RuntimeFailure("--save-every needs --save, which says where")
    if arguments.save_every is not None and arguments.save_every < 1:
        raise RuntimeFailure(f"--save-every: expected a number of at least 1 but got {arguments.save_every}")
    has_state = any(result.updates is not None for result in program.results)
    for option in ("save", "resume"):
        if getattr(arguments, option) is not None and not has_state:
            raise RuntimeFailure(f"--{option} is for trainings; {program.name} does not change its parameters")
        inputs = {argument.name for argument in program.arguments if argument.role is Role.INPUT}
        carried = [result.name for result in program.results if result.updates in inputs]
        if getattr(arguments, option) is not None and carried:
            raise RuntimeFailure(
                f"--{option} is for trainings; {program.name} carries its input {carried[0]} from step to step, which a "
                "state does not hold"
            )


def runs_over_processes(arguments: argparse.Namespace) -> bool:
    """Whether the run is one over processes.

    Raises:
        RuntimeFailure: An option does not go with that.
    """
    if arguments.launcher == "local":
        if arguments.processes is not None:
            raise RuntimeFailure("--processes is for --launcher mpi; all devices of a local run are in one process")
        if arguments.stuck_after is not None:
            raise RuntimeFailure("--stuck-after is for --launcher mpi; in a local run nobody else waits")
        return False
    for name in _LOCAL_ONLY:
        if getattr(arguments, name) is not None:
            raise RuntimeFailure(f"--{name.replace('_', '-')} is for local runs; leave out --launcher mpi, or this")
    if arguments.processes is not None and arguments.processes < 1:
        raise RuntimeFailure(f"--processes: expected a number of at least 1 but got {arguments.processes}")
    if arguments.stuck_after is not None and arguments.stuck_after < 1:
        raise RuntimeFailure(f"--stuck-after: expected a number of at least 1 but got {arguments.stuck_after}")
    return True


def _programs(program: CompiledProgram) -> tuple[CompiledProgram, ...]:
    """The programs of groups of devices, or the one of all."""
    return program.programs or (program,)


def execute_over_processes(
    arguments: argparse.Namespace, program: CompiledProgram, values: Values, *, steps: int, feed: Feed | None = None
) -> RunResult:
    """Run a compiled program over processes, as the options say."""
    from hyperparallel.execute import RunResult
    from hyperparallel.launching import run_over_processes

    run = run_over_processes(
        program.directory,
        _programs(program),
        values,
        processes=arguments.processes,
        steps=steps,
        threads=arguments.threads,
        stuck_after=arguments.stuck_after,
        save=arguments.save,
        save_every=arguments.save_every,
        resume=arguments.resume,
        feed=feed,
    )
    is_training = any(result.updates is not None for result in program.results)
    losses = run.losses if is_training else ()
    return RunResult(run.results, run.statistics, run.wall_seconds, losses, run.first_step)


def first_step(arguments: argparse.Namespace, program: CompiledProgram) -> int:
    """The steps that were done before, by the state that is gone on from.

    Raises:
        RuntimeFailure: Options for states do not go with the program, there is no whole state where ``--resume`` says, or
            there are later ones where ``--save`` says.
    """
    from hyperparallel.state import check_can_save, open_state

    _check_state_options(arguments, program)
    step = 0 if arguments.resume is None else open_state(arguments.resume).step
    if arguments.save is not None:
        check_can_save(arguments.save, step)
    return step


def resume(arguments: argparse.Namespace, program: CompiledProgram, values: Values) -> tuple[Values, int]:
    """The values to start from, and the steps that were done before.

    Raises:
        RuntimeFailure: There is no whole state where ``--resume`` says, or it is one of another program.
    """
    from hyperparallel.state import open_state

    if arguments.resume is None:
        return values, 0
    state = open_state(arguments.resume)
    kept = {
        argument.name: argument
        for one in _programs(program)
        for argument in one.arguments
        if argument.role is not Role.INPUT
    }
    missing = [name for name in kept if name not in state]
    if missing:
        raise RuntimeFailure(
            f"{state.directory} has no {missing[0]}: it was not saved from a training of {program.name}"
        )

    def value(name: str) -> Any:
        if name in kept:
            return state.read(name)
        return values(name) if callable(values) else values[name]

    return value, state.step


def saver(
    arguments: argparse.Namespace, program: CompiledProgram, first_step: int, steps: int
) -> Callable[[int, list[Launch]], None] | None:
    """What saves the state after a step, where that is asked for."""
    from hyperparallel.state import save_step, state_of

    if arguments.save is None:
        return None

    def after_step(turn: int, launches: list[Launch]) -> None:
        if turn == steps or (arguments.save_every is not None and turn % arguments.save_every == 0):
            save_step(arguments.save, first_step + turn, state_of(_programs(program), launches))

    return after_step
