# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the steps of a training are fed, as the command line says: the model file's own batches, a file, given inputs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperparallel.enums import Role
from hyperparallel.errors import RuntimeFailure

if TYPE_CHECKING:
    import torch

    from hyperparallel.cli.models import Model
    from hyperparallel.compiled import CompiledProgram, CompiledTensor
    from hyperparallel.feed import Feed
    from hyperparallel.frontend.model_file import LoadedModel

DATA_FILE = "data.safetensors"
"""What a compiled program's first steps are fed, beside the program."""


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """The option of ``hp run`` that gives data."""
    verb.add_argument(
        "--data",
        type=Path,
        metavar="FILE",
        help="what the inputs are in every step (.npz or safetensors): the rows of one step behind those of the other; "
        "instead of the model file's batches",
    )


def _inputs_of(program: CompiledProgram) -> list[CompiledTensor]:
    """The inputs of a program, or of those of its groups, each once."""
    found = {entry.name: entry for one in (program, *program.programs) for entry in one.arguments}
    return [entry for entry in found.values() if entry.role is Role.INPUT]


def feed_for(
    arguments: argparse.Namespace,
    program: CompiledProgram,
    model: Model | None,
    given: Collection[str],
    first_step: int,
) -> Feed | None:
    """What the steps are fed; None if they are all alike.

    Args:
        arguments: The options.
        program: The compiled program.
        model: The model that it was compiled from, if that is at hand.
        given: The inputs that ``--inputs`` gives for all steps.
        first_step: The steps that were done before.

    Raises:
        RuntimeFailure: A file does not fit, or ``--data`` is given for a model that is not trained.
        ImportModelError: What the model file says of its steps cannot be used.
    """
    from hyperparallel.feed import open_feed, together, without

    is_training = any(result.updates is not None for result in program.results)
    if arguments.data is not None and not is_training:
        raise RuntimeFailure(f"--data is for trainings; {program.name} is none, give --inputs")
    feed = _own_feed(program, model, (arguments.steps or 1) + first_step) if is_training else None
    if feed is not None and given:
        feed = without(feed, given)
    if arguments.data is not None:
        feed = together(feed, open_feed(arguments.data, _inputs_of(program)))
    return feed


def _own_feed(program: CompiledProgram, model: Model | None, steps: int) -> Feed | None:
    """The feed of the model file."""
    from hyperparallel.feed import open_feed
    from hyperparallel.frontend.feeding import feed_of

    if model is not None and model.loaded is not None:
        return feed_of(model.loaded)
    source: Mapping[str, Any] = program.source if model is None else model.source
    if not source.get("fed"):
        return None
    if model is None and (program.directory / DATA_FILE).exists():
        return open_feed(program.directory / DATA_FILE, _inputs_of(program))
    if steps == 1:
        return None  # the inputs that were kept are those of the first step
    file = Path(str(source.get("model_file", "")))
    if not file.exists():
        raise RuntimeFailure(
            f"{', '.join(source['fed'])} of {program.name} differ from step to step, and the model file that knows them, "
            f"{file}, is not there; give --data, or compile with --steps"
        )
    from hyperparallel.frontend.model_file import load_model_file

    return feed_of(load_model_file(file, source.get("overrides", {})))


def keep_feed(program: CompiledProgram, model: Model, steps: int) -> None:
    """Write what the first steps are fed beside a compiled program, for hp-run.

    Raises:
        RuntimeFailure: All steps are alike.
        ImportModelError: What the model file says of its steps cannot be used.
    """
    from hyperparallel.feed import write_feed

    feed = _own_feed(program, model, steps + 1)
    if feed is None:
        raise RuntimeFailure(
            f"all steps of {program.name} are fed alike, so that there is nothing to keep for them; leave out --steps"
        )
    write_feed(program.directory / DATA_FILE, feed, _inputs_of(program), steps)
    program.write_manifest(program.directory)


def reference_feed(
    feed: Feed | None, given: Mapping[str, Any], loaded: LoadedModel
) -> Callable[[int], Mapping[str, torch.Tensor]]:
    """The same in tensors, for PyTorch's own training: without learning rates, which its scheduler knows.

    Args:
        feed: What the steps were fed.
        given: Inputs that all steps have, by name.
        loaded: The model.
    """
    from hyperparallel.cli.models import to_tensor
    from hyperparallel.frontend.feeding import named_inputs

    types = {name: tensor.dtype for name, tensor in named_inputs(loaded).items()}

    def fed(step: int) -> Mapping[str, torch.Tensor]:
        values = {**given, **({} if feed is None else feed(step))}
        return {name: to_tensor(value, types[name]) for name, value in values.items() if name in types}

    return fed
