# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program that a command compiles, looks at or runs, and forgets."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hyperparallel.cli.console import Talk
    from hyperparallel.cli.models import Model
    from hyperparallel.compiled import CompiledProgram
    from hyperparallel.plan import GroupedPlan, ResolvedPlan


@contextlib.contextmanager
def passing_program(
    model: Model, resolved: ResolvedPlan | GroupedPlan, talk: Talk, **options: Any
) -> Iterator[CompiledProgram]:
    """Compiles into a folder that is gone afterwards.

    Args:
        model: The model.
        resolved: The plan, fitted to it.
        talk: Is told of the phases.
        options: As :func:`hyperparallel.compile.compile_model` takes them.

    Raises:
        CompilationError: As it does.
    """
    from hyperparallel.compile import compile_model

    with tempfile.TemporaryDirectory(prefix="hyperparallel-") as temporary:
        program = compile_model(
            model.imported, resolved, out_dir=Path(temporary) / "program", progress=talk.begin, **options
        )
        talk.end()
        yield program


__all__ = ["passing_program"]
