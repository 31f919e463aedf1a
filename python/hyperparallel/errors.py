# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every error that HyperParallel raises on purpose, in one tree.

An error of this tree means that something handed in is at fault, or that the machine lacks something; its text is meant
for the person at the keyboard and is complete without a traceback. Any other exception that leaves the package is a
defect of the package.

    HyperParallelError
    ├── ImportModelError        a model, or the files of an imported model, cannot be used
    ├── PlanError               a plan does not fit the program or the machine
    ├── CompilationError        a pass refused the program
    ├── RuntimeFailure          a run was refused, or failed
    └── MissingDependencyError  an optional package is not installed
"""

from __future__ import annotations

from collections.abc import Sequence


class HyperParallelError(Exception):
    """The root of all errors raised on purpose."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message


class ImportModelError(HyperParallelError):
    """A model cannot be imported, or the files of an imported model cannot be read.

    Attributes:
        op: The operator that has no lowering, such as ``aten.sort.default``, where one is to blame.
        module_path: The path of the submodule that is to blame, such as ``model.layers.3``, where it is known.
    """

    def __init__(self, message: str, *, op: str | None = None, module_path: str | None = None) -> None:
        super().__init__(message)
        self.op = op
        self.module_path = module_path


class PlanError(HyperParallelError):
    """A plan does not fit the program or the machine.

    Attributes:
        constraint: The tightest constraint that the plan breaks, in words, where there is one.
    """

    def __init__(self, message: str, *, constraint: str | None = None) -> None:
        super().__init__(message)
        self.constraint = constraint


class CompilationError(HyperParallelError):
    """A pass refused the program.

    Attributes:
        diagnostics: What the compiler said, one entry for each diagnostic with its notes.
        pass_name: The pass or pipeline that refused, such as ``hypershard-partition``.
        command: The ``hp-opt`` command line that reproduces the refusal.
    """

    def __init__(
        self,
        message: str,
        *,
        diagnostics: Sequence[str] = (),
        pass_name: str | None = None,
        command: str | None = None,
    ) -> None:
        super().__init__(message)
        self.diagnostics = tuple(diagnostics)
        self.pass_name = pass_name
        self.command = command

    def __str__(self) -> str:
        lines = [self.message, *(f"  {line}" for text in self.diagnostics for line in text.splitlines())]
        if self.pass_name is not None:
            lines.append(f"in pass: {self.pass_name}")
        if self.command is not None:
            lines.append(f"reproduce with: {self.command}")
        return "\n".join(lines)


class RuntimeFailure(HyperParallelError):
    """A run was refused before it began, or failed on a device.

    Attributes:
        status: The name of the runtime's status, such as ``HP_DEADLOCK``, where the runtime gave one.
    """

    def __init__(self, message: str, *, status: str | None = None) -> None:
        super().__init__(message)
        self.status = status


class MissingDependencyError(HyperParallelError):
    """An optional package is not installed.

    Attributes:
        package: The distribution that is missing.
        install: The command line that installs it.
    """

    def __init__(self, package: str, *, needed_for: str, install: str) -> None:
        super().__init__(f"{needed_for} needs {package}, which is not installed; install it with: {install}")
        self.package = package
        self.install = install


__all__ = [
    "CompilationError",
    "HyperParallelError",
    "ImportModelError",
    "MissingDependencyError",
    "PlanError",
    "RuntimeFailure",
]
