# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Import of a training step: forward, backward and update in one program.

    nn.Module, loss, optimizer ──trace_step──▶ flat graph with phases ──locality, outline──▶ functions ──▶ ImportedModel

``@main`` takes inputs, parameters, buffers and the optimizer's state, and returns the loss and the next value of all
that the step changes; ``hp.updates`` on a result names the argument that it takes the place of. It calls a forward, a
backward and an update function for every block, each distinct one being there once.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from hyperparallel.enums import Role
from hyperparallel.errors import ImportModelError
from hyperparallel.frontend import worker_process
from hyperparallel.frontend.artifact import ImportedModel
from hyperparallel.frontend.import_cache import Subject, current_memory
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

    from hyperparallel.frontend.optimizers import Rule
    from hyperparallel.frontend.outline import Outlined
    from hyperparallel.frontend.repeats import Repeat
    from hyperparallel.frontend.tracing import TracedInput
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
            weights). Where it is in training mode and drops something, it gets a buffer that counts the random
            numbers (``dropout.py``).
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
    from hyperparallel.frontend.dropout import give_counters

    kwargs = example_kwargs or {}
    give_counters(module, example_args, kwargs)

    def make() -> ImportedModel:
        with open_worker() as worker:
            step = _Step(module, tuple(example_args), kwargs, training, block_paths, progress or silent)
            outlined, inputs, results, batched = step.trace()
            used = {entry.name for entry in inputs}
            return lower_outlined(
                outlined,
                inputs,
                results,
                name or type(module).__name__,
                tuple(key for key in step.state if key not in used),
                step.progress,
                worker=worker,
                timeout=timeout,
                microbatches=Microbatches(training.microbatches, batched),
            )

    memory = current_memory()
    if memory is None:
        return make()
    return memory.get(Subject(module, example_args, kwargs, name, block_paths, training), make)


_Traced = tuple["Outlined", "Sequence[TracedInput]", "Sequence[ResultSpec]", frozenset[str]]
"""Functions, inputs and outputs of a step, and which inputs are split into microbatches."""


class _Step:
    """What is imported, and how."""

    def __init__(
        self,
        module: torch.nn.Module,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        training: Training,
        block_paths: Literal["auto"] | Sequence[str] | None,
        progress: Progress,
    ) -> None:
        from hyperparallel.frontend.optimizers import rules_of
        from hyperparallel.frontend.tracing import named_state

        self.module, self.args, self.kwargs = module, args, kwargs
        self.training, self.block_paths, self.progress = training, block_paths, progress
        entries = named_state(module)
        self.state: dict[str, torch.Tensor] = {entry.name: entry.tensor for entry in entries}
        parameters = {entry.name: entry.tensor for entry in entries if entry.role is Role.PARAMETER}
        self.rules = rules_of(training.optimizer, parameters, is_scheduled=training.scheduler is not None)
        if not self.rules:
            raise ImportModelError("the optimizer trains no parameter of the model; make it from module.parameters()")

    def trace(self) -> _Traced:
        from hyperparallel.frontend.repeats import DoesNotRepeat, find_repeats

        blocks = find_blocks(self.module, self.block_paths)
        if self.training.trust_repeats:
            repeats = find_repeats(self.module, blocks)
            alike = [repeat for repeat in repeats if self._has_one_rule(repeat)]
            if alike:
                with contextlib.suppress(DoesNotRepeat):
                    return self._trace_repeats(alike)
        return self._trace(blocks, self.rules)

    def _has_one_rule(self, repeat: Repeat) -> bool:
        """Whether the optimizer treats the layers of a list alike."""
        by_name: dict[str, set[Any]] = {}
        for key in self.state:
            if key.startswith(f"{repeat.path}."):
                number, _, suffix = key.removeprefix(f"{repeat.path}.").partition(".")
                assert number.isdigit()
                by_name.setdefault(suffix, set()).add(self.rules.get(key))
        return all(len(rules) == 1 for rules in by_name.values())

    def _trace(self, blocks: frozenset[str], rules: Mapping[str, Rule]) -> _Traced:
        from hyperparallel.frontend.locality import adopt, copy_cheap_nodes, gather_pieces
        from hyperparallel.frontend.outline import outline_blocks
        from hyperparallel.frontend.simplify import simplify
        from hyperparallel.frontend.training_step import trace_step

        step = trace_step(
            self.module,
            self.args,
            self.kwargs,
            self.training,
            rules=rules,
            blocks=blocks,
            progress=lambda done, total: self.progress("trace", done, total),
        )
        traced = step.traced
        simplify(traced.graph, random=traced.random)
        adopt(traced.graph, traced.instances)
        copy_cheap_nodes(traced.graph, recompute=self.training.checkpoint)
        gather_pieces(traced.graph)
        inputs, _ = drop_unused_state(traced)
        classes = [(path, type(self.module.get_submodule(path)).__name__) for path in traced.instances]
        state = [entry.value for entry in inputs if entry.role is not Role.INPUT]
        outlined = outline_blocks(traced.graph, classes, is_state=state, segments=True)
        results = [ResultSpec(key, updates) for key, updates in zip(traced.output_names, step.updates, strict=True)]
        return outlined, inputs, results, step.batched

    def _trace_repeats(self, repeats: Sequence[Repeat]) -> _Traced:
        """Trace with three layers of each list, and write the calls of all."""
        from hyperparallel.frontend.repeats import expand, shortened

        with shortened(self.module, repeats):
            rules: dict[str, Rule] = {}
            for key, _ in self.module.named_parameters():
                original = key
                for repeat in repeats:
                    original = repeat.original(original)
                if original in self.rules:
                    rules[key] = self.rules[original]
            blocks = find_blocks(self.module, self.block_paths)
            outlined, inputs, results, batched = self._trace(blocks, rules)
        tensors = self._all_state()
        main, names = outlined.main, [result.name for result in results]
        for repeat in repeats:
            main, inputs, names = expand(main, inputs, names, repeat, tensors)
        order = {
            key: position for position, key in enumerate([entry.name for entry in inputs if entry.role is Role.INPUT])
        }
        count = len(order)
        order |= {key: count + position for position, key in enumerate(tensors)}
        last_buffer = count + len(self.state) - 0.5  # tensors that the module holds without registering them
        inputs = sorted(inputs, key=lambda entry: order.get(entry.name, last_buffer))
        results = [ResultSpec(key, None if position == 0 else key) for position, key in enumerate(names)]
        sorted_outputs = sorted(
            zip(main.outputs, results, strict=True), key=lambda pair: order.get(str(pair[1].updates), -1)
        )
        main.inputs = [entry.value for entry in inputs]
        main.outputs = [value for value, _ in sorted_outputs]
        return dataclasses.replace(outlined, main=main), inputs, [result for _, result in sorted_outputs], batched

    def _all_state(self) -> dict[str, torch.Tensor]:
        """State of module and optimizer, in the order of the arguments."""
        from hyperparallel.frontend.optimizers import named_optimizer_state

        parameters = {key: self.state[key] for key in self.state if key in self.rules}
        return {**self.state, **named_optimizer_state(self.training.optimizer, parameters)}
