# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a training in bf16 with parameters in f32 is held against."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from hyperparallel.cli.models import to_array
from hyperparallel.enums import Role
from hyperparallel.execute import RunResult
from hyperparallel.frontend.artifact import ImportedModel
from hyperparallel.frontend.training_reference import train


def sgd_in_bf16(loaded: Any) -> Any:
    """The training of a model file by SGD, since Adam takes a whole step for a gradient that is all rounding.

    Args:
        loaded: The model file, built with ``dtype=bf16``.
    """
    import torch

    return dataclasses.replace(loaded.training, optimizer=torch.optim.SGD(loaded.module.parameters(), lr=0.5))


def assert_near_exact(run: RunResult, model: ImportedModel, loaded: Any, training: Any, steps: int) -> None:
    """Every parameter is as near to a training in f32 as PyTorch's own in bf16 is.

    Both round each operator's result to 8 bits, at other places (fused operators, sums in another order), so that they
    differ from each other as they do from f32.

    Args:
        run: The training of so many steps.
        model: What was trained.
        loaded: The model file.
        training: How.
        steps: How long.
    """
    half = train(loaded.module, loaded.args, loaded.kwargs, training, steps)
    whole = dataclasses.replace(training, compute_dtype=None)
    exact = train(loaded.module, loaded.args, loaded.kwargs, whole, steps)
    np.testing.assert_allclose(run.losses, exact.losses, rtol=2**-9)
    for name in (argument.name for argument in model.arguments if argument.role is Role.PARAMETER):
        wanted, theirs = to_array(exact.parameters[name]), to_array(half.parameters[name])
        assert run.results[name].dtype == np.float32
        moved, limit = _distance(wanted, model.weight(name)), 2 * _distance(theirs, wanted)
        assert _distance(run.results[name], wanted) < limit < 0.1 * moved, name


def _distance(left: Any, right: Any) -> float:
    """Root mean square of the difference."""
    return float(np.sqrt(np.mean(np.square(np.asarray(left, np.float64) - np.asarray(right, np.float64)))))


__all__ = ["assert_near_exact", "sgd_in_bf16"]
