# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares a split PyTorch module with itself."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperparallel.compare import DEFAULT_TOLERANCE, Comparison, compare
from hyperparallel.compile import PlanLike, compile_model
from hyperparallel.execute import run_compiled

if TYPE_CHECKING:
    import torch


def check_torch(
    module: torch.nn.Module,
    args: Sequence[Any],
    mesh: Mapping[str, int] | str | None,
    plan: PlanLike,
    *,
    kwargs: Mapping[str, Any] | None = None,
    tolerance: float = DEFAULT_TOLERANCE,
) -> Comparison:
    """Imports a module, splits it by a plan, runs it on virtual devices, and compares with PyTorch.

    Args:
        module: The module, with real parameters.
        args: Positional arguments of its ``forward``.
        mesh: Devices along each axis, major to minor, such as ``{"dp": 2, "tp": 2}`` or ``"dp=2,tp=2"``; None takes the
            plan's own mesh.
        plan: A plan, the name of a preset, or a plan file.
        kwargs: Keyword arguments of its ``forward``.
        tolerance: What the largest relative error may be for ``ok``.

    Raises:
        ImportModelError: The module cannot be imported.
        PlanError: The plan does not fit.
        CompilationError: A pass refused the program.
        RuntimeFailure: A device failed.
    """
    from hyperparallel.cli.models import Model, example_inputs, reference_results
    from hyperparallel.frontend.model_file import LoadedModel
    from hyperparallel.frontend.torch import import_model

    name = type(module).__name__
    loaded = LoadedModel(name, module, tuple(args), dict(kwargs or {}))
    imported = import_model(module, loaded.args, loaded.kwargs, name=name)
    inputs = example_inputs(loaded)
    with tempfile.TemporaryDirectory(prefix="hyperparallel-") as folder:
        program = compile_model(imported, plan, mesh, Path(folder) / "program")
        run = run_compiled(program, lambda value: inputs[value] if value in inputs else imported.weight(value))
    return compare(run.results, reference_results(Model(imported, inputs, {}, loaded)), tolerance)
