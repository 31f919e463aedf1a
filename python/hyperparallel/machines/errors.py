# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The error of a machine description."""

from __future__ import annotations

from hyperparallel.errors import HyperParallelError


class MachineError(HyperParallelError):
    """A machine description cannot be used.

    Attributes:
        path: The file, or the name under which the text was given.
        line: The line that is at fault, counted from 1, where there is one.
    """

    def __init__(self, message: str, *, path: str, line: int | None = None) -> None:
        where = path if line is None else f"{path}:{line}"
        super().__init__(f"{where}: {message}")
        self.path = path
        self.line = line


__all__ = ["MachineError"]
