# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The same training in PyTorch alone, on one device: what a compiled training step is compared with."""

from __future__ import annotations

import copy
import dataclasses
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from hyperparallel.enums import Role
from hyperparallel.frontend.dropout import CountedDropout, give_counters
from hyperparallel.frontend.feeding import Batches, checked_batch
from hyperparallel.frontend.optimizers import STEP
from hyperparallel.frontend.signature import bind_call, name_inputs
from hyperparallel.frontend.threads import fitting_threads
from hyperparallel.frontend.tracing import named_state

if TYPE_CHECKING:
    from hyperparallel.frontend.training_step import Training


@dataclasses.dataclass(frozen=True, slots=True)
class ReferenceTraining:
    """What PyTorch gives.

    Attributes:
        losses: The loss of every step.
        parameters: The parameters after the last step, by name.
        optimizer: The optimizer's state after the last step, by the names that it has in the program.
        buffers: The buffers after the last step, by name.
    """

    losses: tuple[float, ...]
    parameters: Mapping[str, torch.Tensor]
    optimizer: Mapping[str, torch.Tensor]
    buffers: Mapping[str, torch.Tensor]


def train(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    training: Training,
    steps: int,
    fed: Callable[[int], Mapping[str, torch.Tensor]] | None = None,
) -> ReferenceTraining:
    """Train a copy of a module for some steps.

    Args:
        module: The module; it is not changed.
        args: Positional arguments of its ``forward``, the whole batch.
        kwargs: Keyword arguments.
        training: Loss, optimizer, and how a step is done.
        steps: How many.
        fed: Values of inputs and targets in each step, which begin at 0, instead of the training's own batches.

    Raises:
        ImportModelError: A batch does not fit.
    """
    if fed is None and training.batches is not None:
        fed = Batches(training.batches)
    module, training = copy.deepcopy((module, dataclasses.replace(training, batches=None)))
    give_counters(module, args, kwargs)
    state = named_state(module)
    call = bind_call(module, args, kwargs)
    inputs = name_inputs(call, {entry.name for entry in state})
    tensors = {**inputs, **training.targets}
    rows = next((tensor.shape[0] for tensor in tensors.values() if tensor.dim() > 0), 0)
    losses: list[float] = []
    with fitting_threads(module):
        for step in range(steps):
            given = tensors if fed is None else {**tensors, **checked_batch(fed(step), step, tensors)}
            training.optimizer.zero_grad(set_to_none=True)
            total = 0.0
            for number in range(training.microbatches):
                parts = {
                    name: tensor[number :: training.microbatches]
                    if tensor.dim() > 0 and tensor.shape[0] == rows
                    else tensor
                    for name, tensor in given.items()
                }
                call_args, call_kwargs = call.with_tensors([parts[name] for name in inputs])
                with CountedDropout(training.seed):
                    output = torch.func.functional_call(
                        module, _computed_with(module, training), call_args, call_kwargs, tie_weights=True
                    )
                loss = training.loss(output, **{name: parts[name] for name in training.targets})
                loss = loss / training.microbatches
                loss.backward()
                total += float(loss.detach())
            if training.clip_norm is not None:
                trained = [tensor for group in training.optimizer.param_groups for tensor in group["params"]]
                torch.nn.utils.clip_grad_norm_(trained, training.clip_norm)
            training.optimizer.step()
            if training.scheduler is not None:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a copied optimizer no longer counts its steps for its scheduler
                    training.scheduler.step()
            losses.append(total)
    parameters = {entry.name: entry.tensor.detach() for entry in state if entry.role is Role.PARAMETER}
    buffers = {entry.name: entry.tensor.detach() for entry in state if entry.role is Role.BUFFER}
    return ReferenceTraining(tuple(losses), parameters, _optimizer_state(training, state), buffers)


def _computed_with(module: torch.nn.Module, training: Training) -> dict[str, torch.Tensor]:
    """The parameters and buffers as forward takes them."""
    own: dict[str, torch.Tensor] = {entry.name: entry.tensor for entry in named_state(module)}
    if training.compute_dtype is None:
        return own
    return {
        name: tensor.to(training.compute_dtype) if tensor.is_floating_point() else tensor
        for name, tensor in own.items()
    }


def _optimizer_state(training: Training, state: list[Any]) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for entry in state:
        held: Mapping[str, Any] = training.optimizer.state.get(entry.tensor, {})
        for key, value in held.items():
            if isinstance(value, torch.Tensor):
                found[STEP if key == "step" else f"{entry.name}.{key}"] = value
    return found
