# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs small programs on virtual devices and takes their times."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperparallel.calibration.programs import MicroProgram, module_text
from hyperparallel.errors import CompilationError
from hyperparallel.runtime import Launch, Program, Runtime, Tier, empty, numpy_dtype


class Bench:
    """Compiled small programs, timed in rounds.

    Each round runs every program for a short while, so that a disturbance of the machine meets a few runs of all, not
    all runs of one; the least time of a program is kept.

    Args:
        programs: What to time.
        devices: How many devices run each program at the same time.
        threads: Cores to share out over them.
        directory: Where the compiled code goes.
    """

    def __init__(self, programs: Sequence[MicroProgram], *, devices: int, threads: int, directory: Path) -> None:
        self.programs = tuple(programs)
        self.devices = devices
        self.threads = threads
        self._file = _compiled(self.programs, devices, directory)
        self.seconds: dict[str, float] = {}

    def measure(self, *, rounds: int, budget: float, advance: Callable[[], None]) -> dict[str, float]:
        """Seconds of one step of each program.

        Args:
            rounds: How often to go through the programs.
            budget: Seconds for each program in each round.
            advance: Called after each program.
        """
        alone = self.devices == 1 and self.threads == 1
        with Runtime(devices=self.devices, threads=self.threads) as runtime:
            loaded = runtime.load(self._file)
            launches = {program.name: self._launches(loaded, program) for program in self.programs}
            for _ in range(rounds):
                for program in self.programs:
                    least = _least(runtime, launches[program.name], budget, by_processor=alone)
                    seconds = least / program.repeats
                    self.seconds[program.name] = min(seconds, self.seconds.get(program.name, seconds))
                    advance()
        return self.seconds

    def _launches(self, loaded: Program, program: MicroProgram) -> list[Launch]:
        return [
            Launch(
                loaded,
                f"hp_entry_{program.name}",
                [_filled(shape, element) for shape, element in program.arguments],
                [empty(shape, numpy_dtype(element)) for shape, element in program.results],
                device=device,
                rank=device,
            )
            for device in range(self.devices)
        ]


def _filled(shape: tuple[int, ...], element: str) -> NDArray[Any]:
    """Small numbers of both signs; ones where they are no floats."""
    array = empty(shape, numpy_dtype(element))
    if array.dtype.kind == "f":
        array[...] = np.linspace(-0.5, 0.5, array.size).reshape(shape)
    else:
        array[...] = 1
    return array


def _compiled(programs: Sequence[MicroProgram], devices: int, directory: Path) -> Path:
    from hyperparallel import _hyperparallel
    from hyperparallel.cache import cache_directory
    from hyperparallel.pipeline import make_context, parse_program

    # The loader knows a file by its name, so each has its own.
    with tempfile.NamedTemporaryFile(dir=directory, suffix=".so", delete=False) as file:
        path = Path(file.name)
    module = parse_program(module_text(programs, devices), "calibration", make_context())
    try:
        _hyperparallel.compile_program(module, str(path), str(cache_directory()), 0)
    except ValueError as error:
        raise CompilationError(
            "the code generator refused a program of the calibration", diagnostics=str(error).splitlines()
        ) from None
    return path


def _device_threads() -> list[int]:
    """The clocks of the threads of devices; none where the system does not tell."""
    clocks: list[int] = []
    try:
        for task in Path("/proc/self/task").iterdir():
            if (task / "comm").read_text(encoding="utf-8").startswith("hp-device"):
                clocks.append((~int(task.name) << 3) | 6)  # CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED of linux/posix-timers.h
        for clock in clocks:
            time.clock_gettime_ns(clock)
    except OSError:
        return []
    return clocks


def _least(runtime: Runtime, launches: Sequence[Launch], budget: float, *, by_processor: bool) -> float:
    """The least time of a run, of as many as the budget holds and three at least; the first is not counted.

    One device on one core never waits: the time that its thread had the processor is what a run takes when nothing
    else runs, and other processes take nothing from it.
    """
    runtime.run(launches)
    clocks = _device_threads() if by_processor else []
    least = float("inf")
    end = time.perf_counter() + budget
    count = 0
    while count < 3 or time.perf_counter() < end:
        before = sum(map(time.clock_gettime_ns, clocks))
        statistics = runtime.run(launches)
        seconds = max(device.wall_seconds for device in statistics.devices)
        if clocks:
            # The kernel adds up a thread's time at intervals: where it saw nothing of a run, the clock says nothing.
            used = sum(map(time.clock_gettime_ns, clocks)) - before
            seconds = min(seconds, used / 1e9) if used > 0 else seconds
        least = min(least, seconds)
        count += 1
    return least


def copy_seconds(sizes: Sequence[int], *, repeats: int, advance: Callable[[], None]) -> dict[tuple[bool, int], float]:
    """The least seconds of a copy between the host's tier and a device, by direction (True: inward) and size."""
    taken: dict[tuple[bool, int], float] = {}
    with Runtime(devices=1) as runtime:
        for size in sizes:
            for inward in (True, False):
                source, target = (Tier.HOST, Tier.DEVICE) if inward else (Tier.DEVICE, Tier.HOST)
                taken[inward, size] = min(runtime.time_copy(size, source, target) for _ in range(repeats))
            advance()
    return taken


__all__ = ["Bench", "copy_seconds"]
