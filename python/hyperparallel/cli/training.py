# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training on the command line: steps, and the comparison of a training with PyTorch's."""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING

from hyperparallel.compare import Comparison, compare
from hyperparallel.enums import Role
from hyperparallel.errors import RuntimeFailure

if TYPE_CHECKING:
    from hyperparallel.cli.models import Model
    from hyperparallel.execute import RunResult


@dataclasses.dataclass(frozen=True, slots=True)
class Checked:
    """A comparison, and the losses of PyTorch's training where there was one."""

    comparison: Comparison
    losses: tuple[float, ...] = ()


def check_steps(arguments: argparse.Namespace, is_training: bool) -> None:
    """Refuse options that do not fit the program.

    Raises:
        RuntimeFailure: ``--steps`` for a model that is not trained, or ``--repeat`` for one that is.
    """
    if arguments.steps is not None and not is_training:
        raise RuntimeFailure(
            f"{arguments.model} is no training step; --steps is for a model file whose build() returns a Training"
        )
    if is_training and arguments.repeat != 1:
        raise RuntimeFailure(
            f"{arguments.model} is a training step, which changes its state; give --steps, not --repeat"
        )


def check(model: Model, run: RunResult, tolerance: float) -> Checked:
    """Train in PyTorch for as many steps, and compare losses and parameters.

    Raises:
        ImportModelError: The model file is not known or no longer there.
    """
    import numpy as np

    from hyperparallel.cli.models import rebuild, to_array
    from hyperparallel.frontend.training_reference import train
    from hyperparallel.runtime import bfloat16_to_float32

    loaded = rebuild(model)
    if loaded.training is None:
        raise RuntimeFailure(f"the model file of {model.imported.name} no longer says how it is trained")
    reference = train(loaded.module, loaded.args, loaded.kwargs, loaded.training, run.first_step + len(run.losses))
    losses = reference.losses[run.first_step :]
    parameters = {entry.name: entry for entry in model.imported.arguments if entry.role is Role.PARAMETER}
    got = {"losses": np.array(run.losses)}
    want = {"losses": np.array(losses)}
    for result in model.imported.results:
        if result.updates in parameters:
            is_wide = result.dtype == "bf16"
            value, wanted = run.results[result.name], to_array(reference.parameters[result.name])
            got[result.name] = bfloat16_to_float32(value) if is_wide else value
            want[result.name] = bfloat16_to_float32(wanted) if is_wide else wanted
    return Checked(compare(got, want, tolerance), losses)
