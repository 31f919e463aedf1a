# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running a compiled program over processes: ``mpiexec`` starts hp-run, which needs neither Python nor MLIR."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from hyperparallel import hp_run
from hyperparallel.compiled import CompiledProgram
from hyperparallel.enums import Role, StrEnum
from hyperparallel.errors import MissingDependencyError, RuntimeFailure
from hyperparallel.feed import Feed, write_feed
from hyperparallel.runtime import DeviceStatistics, RunStatistics, find_openblas, read_statistics
from hyperparallel.state import open_state
from hyperparallel.tensor_files import write_safetensors

Array = NDArray[Any]
_PATIENCE_SECONDS = 5.0
_RANK = re.compile(r"^rank \d+: ")


class Launcher(StrEnum):
    """Where the devices of a run are."""

    LOCAL = "local"
    MPI = "mpi"


@dataclass(frozen=True, slots=True)
class ProcessRun:
    """What a run over processes gave.

    Attributes:
        results: Global results by name.
        statistics: The last step's.
        wall_seconds: Of each step.
        losses: The first scalar result of each step; empty if there is none.
        first_step: The steps that were done before.
    """

    results: Mapping[str, Array]
    statistics: RunStatistics
    wall_seconds: tuple[float, ...]
    losses: tuple[float, ...]
    first_step: int


def find_mpiexec() -> Path:
    """The ``mpiexec`` of this Python's prefix, or that of the path.

    Raises:
        MissingDependencyError: There is none.
    """
    own = Path(sys.prefix) / "bin" / "mpiexec"
    found = str(own) if own.exists() else shutil.which("mpiexec")
    if found is None:
        raise MissingDependencyError("mpich", needed_for="--launcher mpi", install="pip install mpich")
    return Path(found)


def run_over_processes(
    directory: Path,
    programs: Sequence[CompiledProgram],
    values: Mapping[str, Array] | Callable[[str], Array],
    *,
    processes: int | None = None,
    steps: int = 1,
    threads: int | None = None,
    stuck_after: int | None = None,
    save: Path | None = None,
    save_every: int | None = None,
    resume: Path | None = None,
    feed: Feed | None = None,
) -> ProcessRun:
    """Run a compiled program over processes of this machine.

    Args:
        directory: What hp compile made.
        programs: The program of all devices, or those of groups of devices.
        values: The global value of each argument: by name, or a function from names.
        processes: How many; one for each device if None.
        steps: How many steps; what a step updates is kept.
        threads: Cores that each process may use; all of its share if None.
        stuck_after: Milliseconds after which a program that makes no call of the runtime is taken for stuck (6000 if None).
        save: Where the state is saved after the last step.
        save_every: Save it also after so many steps.
        resume: A state to go on from.
        feed: What the steps are fed, beside ``values``.

    Raises:
        RuntimeFailure: The run failed; the message has what the ranks said.
        MissingDependencyError: There is no mpiexec.
    """
    mpiexec = find_mpiexec()
    count = processes or sum(program.mesh.num_devices for program in programs)
    with tempfile.TemporaryDirectory(prefix="hyperparallel-") as temporary:
        folder = Path(temporary)
        arguments = {argument.name: argument for program in programs for argument in program.arguments}
        state = open_state(resume) if resume is not None else None
        first_step = 0 if state is None else state.step
        kept = set() if state is None else set(state.names)
        fed = set() if feed is None else set(feed(first_step))
        given = {
            name: (argument.dtype, values(name) if callable(values) else values[name])
            for name, argument in arguments.items()
            if name not in (fed if argument.role is Role.INPUT else kept)
        }
        write_safetensors(folder / "values.safetensors", given)
        if feed is not None:
            inputs = [argument for argument in arguments.values() if argument.name in fed]
            write_feed(folder / "data.safetensors", feed, inputs, steps, first_step)
        command = [
            str(mpiexec),
            "-n",
            str(count),
            str(hp_run.path()),
            str(directory),
            f"--inputs={folder / 'values.safetensors'}",
            f"--steps={steps}",
            f"--results={folder / 'results'}",
            f"--statistics={folder / 'statistics'}",
        ]
        openblas = find_openblas()
        options = {
            "openblas": openblas,
            "threads": threads,
            "stuck-after": stuck_after,
            "save": save,
            "save-every": save_every,
            "resume": resume,
            "data": folder / "data.safetensors" if feed is not None else None,
        }
        command += [f"--{name}={value}" for name, value in options.items() if value is not None]
        status, out, said = _run(command)
        if status != 0:
            raise RuntimeFailure(_said(said) or f"mpiexec ended with status {status}")
        report = json.loads(out)
        made = open_state(folder / "results")
        devices: list[DeviceStatistics] = []
        for rank in range(count):
            devices += read_statistics((folder / f"statistics.{rank}").read_bytes())
        seconds = tuple(float(value) for value in report["seconds"])
        return ProcessRun(
            {name: made.read(name) for name in made.names},
            RunStatistics(seconds[-1], tuple(sorted(devices, key=lambda one: one.device))),
            seconds,
            tuple(float("nan") if value is None else float(value) for value in report["losses"]),
            int(report["first_step"]),
        )


def _run(command: Sequence[str]) -> tuple[int, str, str]:
    """Status, output and messages of a command, which ends with this process if that is asked to."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        try:
            out, said = started.communicate()
        except BaseException:
            # mpiexec ends its ranks when it is asked to, but not when it is killed.
            started.terminate()
            try:
                started.wait(_PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                started.kill()
            raise
        return started.returncode, out, said


def _said(text: str) -> str:
    """What the ranks said, without what mpiexec adds."""
    lines = text.splitlines()
    ends = [number for number, line in enumerate(lines) if line.startswith("====")]
    messages: list[str] = []
    for line in lines[: ends[0]] if ends else lines:
        if line.startswith("hp-run: ") or not messages:
            messages.append(line.removeprefix("hp-run: ").replace("error: ", "", 1))
        elif line.strip():
            messages[-1] += "\n" + line
    # What all ranks say is said once, and so is what one says and others hand on.
    said: dict[str, str] = {}
    for message in messages:
        if message.strip():
            said.setdefault(_RANK.sub("", message), message)
    first = {"".join(_RANK.findall(message)): text for text, message in said.items()}
    handed_on = {f"{rank.removesuffix(': ')} failed: {text}" for rank, text in first.items() if rank}
    return "\n".join(message for text, message in said.items() if text not in handed_on)


__all__ = ["Launcher", "ProcessRun", "find_mpiexec", "run_over_processes"]
