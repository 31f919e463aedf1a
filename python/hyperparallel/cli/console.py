# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Talk on stderr: lines, and moving bars when a person is watching. stdout is for the product alone."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

_TITLES = {
    "build": "Building the model",
    "import": "Importing from PyTorch",
    "parse": "Reading the program",
    "plan": "Fitting the plan",
    "imported": "Checking the program",
    "annotated": "Applying the plan",
    "propagated": "Propagating shardings",
    "resharded": "Placing collectives",
    "partitioned": "Partitioning",
    "offloaded": "Fitting into memory",
    "codegen": "Generating code",
    "simulate": "Simulating",
    "run": "Running",
    "check": "Running PyTorch",
}


class Talk:
    """Says what is going on, and keeps the time of each step.

    Args:
        quiet: Say nothing.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.live = not quiet and sys.stderr.isatty()
        self.seconds: dict[str, float] = {}
        self._progress: Any = None
        self._task: Any = None
        self._name: str | None = None
        self._begin = 0.0

    def say(self, text: str) -> None:
        """Print a line."""
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def begin(self, name: str) -> None:
        """A step begins; the one before it ends."""
        self.end()
        self._name, self._begin = name, time.perf_counter()
        if self.live:
            self._show(_TITLES.get(name, name))

    def advance(self, done: int, total: int) -> None:
        """How far the step is."""
        if self._progress is not None and total > 1:
            self._progress.update(self._task, completed=done, total=total)

    def end(self) -> None:
        """The step ends."""
        if self._name is None:
            return
        self.seconds[self._name] = self.seconds.get(self._name, 0.0) + time.perf_counter() - self._begin
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
        self._name = None

    @contextmanager
    def step(self, name: str) -> Generator[None]:
        """A step for the duration of a block."""
        self.begin(name)
        try:
            yield
        finally:
            self.end()

    def _show(self, title: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:<28}"),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task(title, total=None)
        self._progress.start()
