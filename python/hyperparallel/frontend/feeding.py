# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a training's own model file says of its steps: the batch, and the learning rates, of each.

Learning rates are inputs of the program, numbers that differ from step to step. They are found by turning the schedule's own
copy: whatever a scheduler of ``torch.optim.lr_scheduler`` computes, the program is fed.
"""

from __future__ import annotations

import copy
import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from hyperparallel.errors import ImportModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hyperparallel.frontend.model_file import LoadedModel

    Array = NDArray[np.generic]

RATE = "optimizer.lr"
"""The input that is the learning rate; with several groups of parameters, followed by the number of each."""


def rate_names(optimizer: torch.optim.Optimizer) -> tuple[str, ...]:
    """The inputs that are learning rates, one for each group of parameters."""
    count = len(optimizer.param_groups)
    return (RATE,) if count == 1 else tuple(f"{RATE}.{number}" for number in range(count))


class Rates:
    """The learning rates of each step, by a schedule.

    Args:
        optimizer: The optimizer that is trained with.
        scheduler: A schedule of its learning rates; neither of both is changed.

    Raises:
        ImportModelError: The schedule goes by what happens in training, or is one of another optimizer.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, scheduler: LRScheduler) -> None:
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ImportModelError(
                "ReduceLROnPlateau goes by the losses, which are not known before the steps are done; "
                "give a schedule that goes by the number of the step"
            )
        if scheduler.optimizer is not optimizer:
            raise ImportModelError("the scheduler is for another optimizer than the training's; make it from that one")
        self.names = rate_names(optimizer)
        kept = {id(tensor): tensor for group in optimizer.param_groups for tensor in group["params"]}
        kept[id(optimizer.state)] = {}
        self._scheduler = copy.deepcopy(scheduler, kept)
        self._known = [self._read()]
        self._others = self._options()

    def __call__(self, step: int) -> tuple[float, ...]:
        """The learning rate of each group in a step, which are numbered from 0.

        Raises:
            ImportModelError: The schedule changes something else as well.
        """
        while len(self._known) <= step:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that no step was taken in between: there is nothing to take one of
                self._scheduler.step()
            changed = [key for key, value in self._options().items() if value != self._others[key]]
            if changed:
                raise ImportModelError(
                    f"{type(self._scheduler).__name__} changes {changed[0][1]} from step to step, and only the learning "
                    "rate can; switch that off (cycle_momentum=False)"
                )
            self._known.append(self._read())
        return self._known[step]

    def _read(self) -> tuple[float, ...]:
        return tuple(float(group["lr"]) for group in self._scheduler.optimizer.param_groups)

    def _options(self) -> dict[tuple[int, str], Any]:
        return {
            (number, key): value
            for number, group in enumerate(self._scheduler.optimizer.param_groups)
            for key, value in group.items()
            if key not in ("params", "lr", "initial_lr")
        }


class Batches:
    """The batch of each step.

    Args:
        given: A function from the number of a step, from 0, or something that can be gone through from the beginning
            again, such as a list or a data loader; it begins again when it comes to its end.

    Raises:
        ImportModelError: It can be gone through once only.
    """

    def __init__(
        self, given: Callable[[int], Mapping[str, torch.Tensor]] | Iterable[Mapping[str, torch.Tensor]]
    ) -> None:
        if isinstance(given, Iterator):
            raise ImportModelError(
                "batches can be gone through only once, and they are wanted again for the comparison and for going on; "
                "give a list, a data loader, or a function from the number of a step"
            )
        self._given = given
        self._rest: Iterator[Mapping[str, torch.Tensor]] = iter(())
        self._next = -1

    def __call__(self, step: int) -> Mapping[str, torch.Tensor]:
        """The batch of a step: values of inputs and targets, by name.

        Raises:
            ImportModelError: There is none.
        """
        if callable(self._given):
            return self._given(step)
        if step != self._next:
            self._rest = itertools.islice(self._cycle(self._given), step, None)
        self._next = step + 1
        return next(self._rest)

    def _cycle(self, given: Iterable[Mapping[str, torch.Tensor]]) -> Iterator[Mapping[str, torch.Tensor]]:
        while True:
            empty = True
            for batch in given:
                empty = False
                yield batch
            if empty:
                raise ImportModelError("batches are empty; give one batch or more")


def checked_batch(
    batch: Mapping[str, torch.Tensor], step: int, inputs: Mapping[str, torch.Tensor]
) -> Mapping[str, torch.Tensor]:
    """A batch, if it is one of the program's.

    Args:
        batch: What was given for the step.
        step: The number of the step.
        inputs: The example inputs and targets by name.

    Raises:
        ImportModelError: It names something else, or something in it has another shape or type.
    """
    for name, tensor in batch.items():
        if name not in inputs:
            raise ImportModelError(
                f"the batch of step {step} has {name}, which is no input; the inputs are {', '.join(inputs)}"
            )
        wanted = inputs[name]
        if (tensor.shape, tensor.dtype) != (wanted.shape, wanted.dtype):
            raise ImportModelError(
                f"the batch of step {step}: expected {name} as {wanted.dtype} of the shape {list(wanted.shape)} but got "
                f"{tensor.dtype} of the shape {list(tensor.shape)}"
            )
    return batch


def named_inputs(loaded: LoadedModel) -> dict[str, torch.Tensor]:
    """The example inputs of a model, and the targets of its training, by the names that they have in the program."""
    from hyperparallel.frontend.signature import bind_call, name_inputs

    module = loaded.module
    state = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    inputs = name_inputs(bind_call(module, loaded.args, loaded.kwargs), {name for name, _ in state})
    return inputs if loaded.training is None else {**inputs, **loaded.training.targets}


def feed_of(loaded: LoadedModel) -> Callable[[int], dict[str, Array]] | None:
    """The feed (``hyperparallel.feed``) of a model file's training; None if all steps are alike.

    Raises:
        ImportModelError: Batches or the schedule are not of a kind that can be fed.
    """
    training = loaded.training
    if training is None or (training.batches is None and training.scheduler is None):
        return None
    from hyperparallel.frontend.torch import as_array

    inputs = named_inputs(loaded)
    batches = None if training.batches is None else Batches(training.batches)
    rates = None if training.scheduler is None else Rates(training.optimizer, training.scheduler)

    def feed(step: int) -> dict[str, Array]:
        values: dict[str, Array] = {}
        if batches is not None:
            batch = checked_batch(batches(step), step, inputs)
            values |= {name: as_array(tensor) for name, tensor in batch.items()}
        if rates is not None:
            for name, rate in zip(rates.names, rates(step), strict=True):
                values[name] = as_array(torch.tensor(rate, dtype=torch.float32))
        return values

    return feed


__all__ = ["RATE", "Batches", "Rates", "checked_batch", "feed_of", "named_inputs", "rate_names"]
