# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Import of a training step: forward, backward and update in one program.

    nn.Module, loss, optimizer ──trace_step──▶ flat graph with phases ──locality, outline──▶ functions ──▶ ImportedModel

``@main`` takes inputs, parameters, buffers and the optimizer's state, and returns the loss and the next value of all
that the step changes; ``hp.updates`` on a result names the argument that it takes the place of. It calls a forward, a
backward and an update function for every block, each distinct one being there once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from hyperparallel.enums import Role
from hyperparallel.frontend import worker_process
from hyperparallel.frontend.artifact import ImportedModel
from hyperparallel.frontend.microbatches import Microbatches
from hyperparallel.frontend.torch import (
    Progress,
    ResultSpec,
    drop_unused_state,
    find_blocks,
    lower_outlined,
    open_worker,
    silent,
)

if TYPE_CHECKING:
    import torch

    from hyperparallel.frontend.training_step import Training


def import_training(
    module: torch.nn.Module,
    example_args: Sequence[Any],
    example_kwargs: Mapping[str, Any] | None = None,
    *,
    training: Training,
    name: str | None = None,
    block_paths: Literal["auto"] | Sequence[str] | None = "auto",
    progress: Progress | None = None,
    timeout: float = worker_process.DEFAULT_TIMEOUT,
) -> ImportedModel:
    """Import one step of training a PyTorch module.

    Args:
        module: The module, with real parameters, or with fake ones or on the ``meta`` device (then there are no
            weights).
        example_args: Positional arguments of its ``forward``, with the whole batch.
        example_kwargs: Keyword arguments of its ``forward``.
        training: Loss, optimizer, and how the step is done.
        name: What to call the model; the module's class name if not given.
        block_paths: Which modules become functions of their own, as of ``import_model``.
        progress: Told about the stages of the work.
        timeout: Seconds that the lowering may take.

    Returns:
        The program. Its first result is the loss; the others carry ``updates``.

    Raises:
        ImportModelError: The step cannot be traced, or an operator has no lowering, or the optimizer or an option of it
            is not supported.
        MissingDependencyError: torch or torch-mlir is not installed.

    Example:
        >>> import torch
        >>> from hyperparallel.frontend.training import import_training
        >>> from hyperparallel.frontend.training_step import Training
        >>> layer = torch.nn.Linear(4, 3)
        >>> training = Training(lambda y: (y * y).mean(), torch.optim.SGD(layer.parameters(), lr=0.1))
        >>> model = import_training(layer, (torch.ones(2, 4),), training=training)
        >>> [(result.name, result.updates) for result in model.results]
        [('loss', None), ('weight', 'weight'), ('bias', 'bias')]
    """
    with open_worker() as worker:
        return _import(
            module,
            example_args,
            example_kwargs or {},
            training,
            name or type(module).__name__,
            find_blocks(module, block_paths),
            progress or silent,
            timeout,
            worker,
        )


def _import(
    module: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    training: Training,
    name: str,
    blocks: frozenset[str],
    progress: Progress,
    timeout: float,
    worker: worker_process.Worker,
) -> ImportedModel:
    from hyperparallel.frontend.locality import adopt, copy_cheap_nodes, gather_pieces
    from hyperparallel.frontend.outline import outline_blocks
    from hyperparallel.frontend.simplify import simplify
    from hyperparallel.frontend.training_step import trace_step

    step = trace_step(
        module, args, kwargs, training, blocks=blocks, progress=lambda done, total: progress("trace", done, total)
    )
    traced = step.traced
    simplify(traced.graph, random=traced.random)
    adopt(traced.graph, traced.instances)
    copy_cheap_nodes(traced.graph, recompute=training.checkpoint)
    gather_pieces(traced.graph)
    inputs, unused = drop_unused_state(traced)
    classes = [(path, type(module.get_submodule(path)).__name__) for path in traced.instances]
    state = [entry.value for entry in inputs if entry.role is not Role.INPUT]
    outlined = outline_blocks(traced.graph, classes, is_state=state, segments=True)
    results = [ResultSpec(key, updates) for key, updates in zip(traced.output_names, step.updates, strict=True)]
    microbatches = Microbatches(training.microbatches, step.batched)
    return lower_outlined(
        outlined,
        inputs,
        results,
        name,
        unused,
        progress,
        worker=worker,
        timeout=timeout,
        microbatches=microbatches,
    )
