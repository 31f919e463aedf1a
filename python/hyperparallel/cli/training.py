# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training on the command line: steps, and the comparison of a training with PyTorch's."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hyperparallel.compare import Comparison, compare
from hyperparallel.enums import Role
from hyperparallel.errors import RuntimeFailure

if TYPE_CHECKING:
    from hyperparallel.cli.models import Model
    from hyperparallel.execute import RunResult
    from hyperparallel.feed import Feed
    from hyperparallel.frontend.composed import Composed


@dataclasses.dataclass(frozen=True, slots=True)
class Checked:
    """A comparison, and the losses of PyTorch's training where there was one."""

    comparison: Comparison
    losses: tuple[float, ...] = ()


def check_steps(arguments: argparse.Namespace, has_state: bool) -> None:
    """Refuse options that do not fit the program.

    Raises:
        RuntimeFailure: ``--steps`` for a model that keeps nothing, or ``--repeat`` for one that does.
    """
    if arguments.steps is not None and not has_state:
        raise RuntimeFailure(
            f"{arguments.model} keeps nothing from step to step; --steps is for a model file whose build() returns a "
            "Training or a Decoding"
        )
    if has_state and arguments.repeat != 1:
        raise RuntimeFailure(f"{arguments.model} is a step that changes its state; give --steps, not --repeat")


def check(
    model: Model, run: RunResult, tolerance: float, feed: Feed | None = None, given: Mapping[str, Any] | None = None
) -> Checked:
    """Train in PyTorch for as many steps, and compare losses, parameters and what changes of the buffers.

    Args:
        model: The model.
        run: What its training gave.
        tolerance: The largest relative error.
        feed: What the steps were fed.
        given: Inputs that all of them had, instead of the model file's.

    Raises:
        ImportModelError: The model file is not known or no longer there.
    """
    import numpy as np

    from hyperparallel.cli.feeding import reference_feed
    from hyperparallel.cli.models import rebuild, to_array
    from hyperparallel.frontend.training_reference import train
    from hyperparallel.runtime import bfloat16_to_float32

    loaded = rebuild(model)
    if loaded.training is None:
        raise RuntimeFailure(f"the model file of {model.imported.name} no longer says how it is trained")
    fed = reference_feed(feed, given or {}, loaded)
    steps = run.first_step + len(run.losses)
    reference = train(loaded.module, loaded.args, loaded.kwargs, loaded.training, steps, fed)
    losses = reference.losses[run.first_step :]
    trained = {**reference.parameters, **reference.buffers}
    kept = {entry.name for entry in model.imported.arguments if entry.role in (Role.PARAMETER, Role.BUFFER)}
    got = {"losses": np.array(run.losses)}
    want = {"losses": np.array(losses)}
    for result in model.imported.results:
        if result.updates in kept:
            is_wide = result.dtype == "bf16"
            value, wanted = run.results[result.name], to_array(trained[result.name])
            got[result.name] = bfloat16_to_float32(value) if is_wide else value
            want[result.name] = bfloat16_to_float32(wanted) if is_wide else wanted
    return Checked(compare(got, want, tolerance), losses)


def check_decoding(model: Model, run: RunResult, tolerance: float) -> Checked:
    """Do as many steps of generation in PyTorch, and compare what the last one gives and the caches after it.

    Raises:
        ImportModelError: The model file is not known or no longer there.
        RuntimeFailure: It no longer says what a step keeps.
    """
    from hyperparallel.cli.models import rebuild, to_array
    from hyperparallel.frontend.decoding import decode
    from hyperparallel.runtime import bfloat16_to_float32

    loaded = rebuild(model)
    if loaded.decoding is None:
        raise RuntimeFailure(f"the model file of {model.imported.name} no longer says what a step keeps for the next")
    reference = decode(loaded.module, loaded.args, loaded.kwargs, loaded.decoding, len(run.wall_seconds))
    got: dict[str, Any] = {}
    want: dict[str, Any] = {}
    for result in model.imported.results:
        value, wanted = run.results[result.name], to_array(reference[result.name])
        is_wide = result.dtype == "bf16"
        got[result.name] = bfloat16_to_float32(value) if is_wide else value
        want[result.name] = bfloat16_to_float32(wanted) if is_wide else wanted
    return Checked(compare(got, want, tolerance))


def check_composed(composed: Composed, run: RunResult, tolerance: float) -> Checked:
    """Do as many steps in PyTorch as the model file says, and compare the results that it gives.

    Raises:
        RuntimeFailure: The model file gives no reference, or one of something that is no result.
    """
    import numpy as np

    from hyperparallel.cli.models import to_array

    if composed.reference is None:
        raise RuntimeFailure(f"the model file of {composed.model.name} gives no reference to compare with")
    want = {name: to_array(value) for name, value in composed.reference(len(run.wall_seconds)).items()}
    got = {**run.results, "losses": np.array(run.losses)}
    unknown = sorted(name for name in want if name not in got)
    if unknown:
        raise RuntimeFailure(f"the reference of {composed.model.name} gives {unknown[0]}, which is no result of it")
    losses = tuple(float(loss) for loss in want.get("losses", ()))
    return Checked(compare({name: got[name] for name in want}, want, tolerance), losses)
