# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a module, a loss and an optimizer to the flat graph of one training step.

1. Forward and loss run on tensors without storage while autograd watches. What runs notes its module and block; each
   node of the autograd graph keeps the note that was current when it was made (anomaly detection does that).
2. The gradients are taken in the same trace. A hook in front of every autograd node puts its note back, with the phase
   ``backward``: so every operator of the backward pass knows the block whose backward it is.
3. The update of a parameter is traced once for each shape and set of options, and appended for every parameter.

The backward of a block is one run of nodes, because autograd takes the node that was made last first; what falls out of
that order (casts of weights to another element type) ``outline.py`` puts back.

Buffers that forward changes (running statistics) are state as parameters are: their next values are returned.

Limits: of random numbers the step draws those of dropout alone (``dropout.py``). What ``Training`` splits in microbatches is traced for one of them.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
import torch.fx.traceback as fx_traceback
from torch._subclasses.fake_tensor import FakeTensorMode
from torch._subclasses.functional_tensor import FunctionalTensor, dispatch_functionalize

from hyperparallel.enums import Role, StepPhase
from hyperparallel.errors import ImportModelError
from hyperparallel.frontend.decompositions import Rewrites
from hyperparallel.frontend.dropout import CountedDropout
from hyperparallel.frontend.feeding import Rates
from hyperparallel.frontend.graph import Graph, TensorType, Value
from hyperparallel.frontend.optimizers import (
    STEP,
    Rule,
    add_squares,
    clip_factor,
    initial_state,
    initial_step,
)
from hyperparallel.frontend.signature import Call, bind_call, name_inputs
from hyperparallel.frontend.tracing import (
    ModuleProgress,
    ModuleStack,
    TracedInput,
    TracedModule,
    fake_twin,
    mark_origin,
    named_state,
    to_traced_module,
    trace_functional,
    tracing_failure,
    tracing_state,
    writes_in_place,
)

LOSS = "loss"
"""The name of the loss among the results, and the module path of what computes it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Training:
    """How a model is trained: what ``build()`` of a model file returns behind the model and its inputs.

    Attributes:
        loss: Takes what the model returns, and the targets; returns one number.
        optimizer: SGD, Adam or AdamW of ``torch.optim`` over parameters of the model.
        targets: Further inputs of the loss, such as labels, by the names of its parameters.
        microbatches: In how many parts the batch is taken. The gradient is the mean over the parts. Part m of M holds
            the rows m, m + M, m + 2M and so on of every input.
        checkpoint: Keep only what goes into a block, and compute the rest again for its backward.
        compute_dtype: What parameters are cast to for forward and backward, such as ``torch.bfloat16``. What is
            updated keeps the parameters' own type.
        clip_norm: The most that the norm over all gradients may be, as of ``torch.nn.utils.clip_grad_norm_``.
        trust_repeats: Trace three layers of a list of alike ones, and write the others as the second (``repeats.py`` says
            what is checked, and what is not): a model of any number of layers imports as fast as one of three.
        batches: The batch of each step: values of inputs and targets by name. A function from the number of the step,
            from 0, or batches that can be gone through again and again, such as a list or a data loader. Without
            them all steps have the example inputs.
        scheduler: A schedule of ``torch.optim.lr_scheduler`` for the optimizer, which goes on after each step.
        seed: Where the random numbers of dropout begin.
    """

    loss: Callable[..., torch.Tensor]
    optimizer: torch.optim.Optimizer
    targets: Mapping[str, torch.Tensor] = dataclasses.field(default_factory=dict[str, torch.Tensor])
    microbatches: int = 1
    checkpoint: bool = False
    compute_dtype: torch.dtype | None = None
    clip_norm: float | None = None
    trust_repeats: bool = False
    batches: Callable[[int], Mapping[str, torch.Tensor]] | Iterable[Mapping[str, torch.Tensor]] | None = None
    scheduler: torch.optim.lr_scheduler.LRScheduler | None = None
    seed: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class TracedStep:
    """The flat graph of a step: first what is done for each microbatch, then the updates.

    Attributes:
        traced: The graph, its inputs (in the order inputs, parameters, buffers, optimizer state), outputs and block
            instances.
        updates: For each output, the input whose next value it is; None for the loss.
        batched: Names of the inputs that have a microbatch's part of the batch in their first dimension.
    """

    traced: TracedModule
    updates: tuple[str | None, ...]
    batched: frozenset[str]


def owner_of(name: str, blocks: frozenset[str]) -> str | None:
    """The block that a parameter belongs to, if any."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        path = ".".join(parts[:length])
        if path in blocks:
            return path
    return None


def trace_step(
    module: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    training: Training,
    *,
    rules: Mapping[str, Rule],
    blocks: frozenset[str],
    progress: ModuleProgress | None = None,
) -> TracedStep:
    """Trace one step of training.

    Args:
        module: The module; its parameters may be real, fake, or on the ``meta`` device.
        args: Example positional arguments of its ``forward``, the whole batch.
        kwargs: Example keyword arguments.
        training: Loss and optimizer.
        rules: The update of each parameter that is trained.
        blocks: Paths of the modules whose calls are numbered as block instances.
        progress: Told how many modules have run.

    Raises:
        ImportModelError: The step cannot be traced, or an option is not supported, or the batch does not divide.
    """
    state = named_state(module)
    parameters = {entry.name: entry.tensor for entry in state if entry.role is Role.PARAMETER}
    call = bind_call(module, args, kwargs)
    named = name_inputs(call, {entry.name for entry in state})
    for name in training.targets:
        if name in named or name in parameters:
            raise ImportModelError(f"target {name} has the name of another argument; name it differently")
    tensors = {**named, **training.targets}
    batched = _batched(tensors, training.microbatches)
    inputs = [TracedInput(name, Role.INPUT, -1, tensor) for name, tensor in tensors.items()]
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    twins = [
        _part(fake_twin(entry.tensor, mode), training.microbatches if entry.name in batched else 1)
        for entry in (*inputs, *state)
    ]
    stack = ModuleStack({id(child): path for path, child in module.named_modules()}, blocks, progress)
    gradients = _Gradients(module, call, training, state, frozenset(rules), blocks)
    try:
        with tracing_state(stack):
            traced = trace_functional(dispatch_functionalize(gradients), twins)
            if any(writes_in_place(node) for node in traced.graph.nodes):
                interpreter: Any = torch.fx.Interpreter(traced)
                traced = trace_functional(torch.func.functionalize(interpreter.run, remove="mutations"), twins)
    except ImportModelError:
        raise
    except Exception as error:
        raise tracing_failure(error, stack.path(), module) from error
    if progress is not None:
        progress(len(stack.names), len(stack.names))
    flat = to_traced_module(traced, "main", (*inputs, *state), (LOSS,), tuple(stack.instances), module)
    trained = {name: rules[name] for name in gradients.of}
    return _with_updates(flat, training, trained, gradients.changed, blocks, batched)


# Forward and backward -------------------------------------------------------------------------------------------------


def _batched(tensors: Mapping[str, torch.Tensor], microbatches: int) -> frozenset[str]:
    """The inputs that are split into microbatches: those with as many rows as the first one."""
    if microbatches < 1:
        raise ImportModelError(f"expected at least one microbatch but got {microbatches}")
    if microbatches == 1:
        return frozenset()
    rows = next((tensor.shape[0] for tensor in tensors.values() if tensor.dim() > 0), 0)
    if rows == 0 or rows % microbatches != 0:
        raise ImportModelError(f"a batch of {rows} rows does not divide into {microbatches} microbatches")
    return frozenset(name for name, tensor in tensors.items() if tensor.dim() > 0 and tensor.shape[0] == rows)


def _part(twin: torch.Tensor, parts: int) -> torch.Tensor:
    if parts == 1:
        return twin
    return twin.new_empty((twin.shape[0] // parts, *twin.shape[1:]))


@dataclasses.dataclass(slots=True)
class _Gradients:
    """The function that is traced: inputs and state in, the loss and gradients out.

    Attributes:
        of: The parameters that have a gradient, in the order in which they are returned; known when it has run.
        changed: The buffers that forward changed, whose next values are returned behind the gradients; likewise.
    """

    module: torch.nn.Module
    call: Call
    training: Training
    state: Sequence[TracedInput]
    trained: frozenset[str]
    blocks: frozenset[str]
    of: list[str] = dataclasses.field(default_factory=list[str])
    changed: list[str] = dataclasses.field(default_factory=list[str])

    def __call__(self, *given: torch.Tensor) -> list[torch.Tensor]:
        training, count = self.training, len(given) - len(self.state)
        own: dict[str, torch.Tensor] = {}
        for entry, tensor in zip(self.state, given[count:], strict=True):
            own[entry.name] = tensor.detach().requires_grad_() if entry.name in self.trained else tensor
        leaves = {name: tensor for name, tensor in own.items() if name in self.trained}
        with Rewrites(), CountedDropout(training.seed), torch.enable_grad(), _anomaly_notes():
            if training.compute_dtype is not None:
                own = _cast(own, training.compute_dtype, self.blocks)
            num_targets = len(training.targets)
            args, kwargs = self.call.with_tensors(given[: count - num_targets])
            output = torch.func.functional_call(self.module, own, args, kwargs, tie_weights=True)
            mark_origin(StepPhase.FORWARD, -1, LOSS)
            targets = dict(zip(training.targets, given[count - num_targets : count], strict=True))
            loss = training.loss(output, **targets)
            _check_loss(loss)
            if training.microbatches > 1:
                loss = loss / training.microbatches
            _hook_backward(loss)
            found: tuple[Any, ...] = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
        state = dict(zip((entry.name for entry in self.state), given[count:], strict=True))
        self.changed = self._changed_buffers(state, own)
        self.of = [name for name, gradient in zip(leaves, found, strict=True) if gradient is not None]
        gradients = [gradient for gradient in found if gradient is not None]
        return [loss.detach(), *gradients, *(state[name] for name in self.changed)]

    def _changed_buffers(self, state: Mapping[str, torch.Tensor], own: Mapping[str, torch.Tensor]) -> list[str]:
        """The buffers that forward changed.

        Args:
            state: What the step was given.
            own: What forward computed with.
        """
        changed: list[str] = []
        for entry in self.state:
            tensor, used = state[entry.name], own[entry.name]
            if _was_changed(tensor) and entry.role is Role.PARAMETER:
                raise ImportModelError(
                    f"the model changes its parameter {entry.name} while it runs; "
                    "call eval() on the module that does it, or return the new value instead"
                )
            if used is not tensor and entry.role is Role.BUFFER and _was_changed(used):
                raise ImportModelError(
                    f"the model changes its buffer {entry.name}, which is computed with as {used.dtype} and kept as "
                    f"{tensor.dtype}; leave compute_dtype out, or call eval() on the module that does it"
                )
            if _was_changed(tensor):
                changed.append(entry.name)
        return changed


def _cast(own: Mapping[str, torch.Tensor], dtype: torch.dtype, blocks: frozenset[str]) -> dict[str, torch.Tensor]:
    """Parameters and buffers of floats in the type that is computed in."""
    cast: dict[str, torch.Tensor] = {}
    for name, tensor in own.items():
        if tensor.is_floating_point():
            mark_origin(StepPhase.FORWARD, -1, owner_of(name, blocks) or name.rpartition(".")[0])
            cast[name] = tensor.to(dtype)
        else:
            cast[name] = tensor
    return cast


def _anomaly_notes() -> Any:
    """Make every autograd node keep the note that is current when it is made."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.autograd.set_detect_anomaly(True, check_nan=False)


def _check_loss(loss: Any) -> None:
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1 or not loss.is_floating_point():
        what = f"a tensor of shape {list(loss.shape)}" if isinstance(loss, torch.Tensor) else f"a {type(loss).__name__}"
        raise ImportModelError(f"expected the loss to return one floating-point number but got {what}")
    if loss.grad_fn is None:
        raise ImportModelError("the loss does not depend on a parameter that the optimizer trains")


def _hook_backward(loss: torch.Tensor) -> None:
    """Before an autograd node runs, say where its forward ran."""
    seen: set[Any] = set()
    waiting: list[Any] = [loss.grad_fn]
    while waiting:
        function = waiting.pop()
        if function is None or function in seen:
            continue
        seen.add(function)
        notes: Any = function.metadata.get("traceback_")
        note = str(notes[0]).strip() if notes else f"{StepPhase.FORWARD} -1 {LOSS}"
        note = f"{StepPhase.BACKWARD} {note.partition(' ')[2]}"
        function.register_prehook(lambda _gradients, note=note: _restore(note))
        waiting.extend(following for following, _ in function.next_functions)


def _restore(note: str) -> None:
    fx_traceback.get_current_meta()["stack_trace"] = note


def _was_changed(tensor: torch.Tensor) -> bool:
    functions: Any = torch
    return isinstance(tensor, FunctionalTensor) and bool(functions._functionalize_has_data_mutation(tensor.elem))


# The update -----------------------------------------------------------------------------------------------------------


class _Builder:
    """Appends traced functions to a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.templates: dict[Any, Graph] = {}

    def input(self, tensor: torch.Tensor) -> int:
        """A new input of the graph."""
        number = len(self.graph.types)
        self.graph.types[number] = TensorType(
            tuple(tensor.shape), tuple(tensor.stride()), str(tensor.dtype).removeprefix("torch.")
        )
        return number

    def apply(
        self,
        key: Any,
        function: Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]],
        arguments: Sequence[int],
        path: str,
        instance: int,
    ) -> list[int]:
        """Append the operators of ``function``, which is traced once for each key and types of arguments."""
        types = tuple(
            dataclasses.replace(self.graph.types[number], stride=_dense(self.graph.types[number].shape))
            for number in arguments
        )
        template = self.templates.get((key, types))
        if template is None:
            template = self.templates[(key, types)] = _trace_function(function, types)
        numbers = dict(zip(template.inputs, arguments, strict=True))
        for node in template.nodes:
            for result in node.results:
                if result is not None:
                    numbers[result] = len(self.graph.types)
                    self.graph.types[numbers[result]] = template.types[result]
            self.graph.nodes.append(
                dataclasses.replace(
                    node.map_values(lambda value: Value(numbers[value.id])),
                    results=tuple(None if result is None else numbers[result] for result in node.results),
                    path=path,
                    instance=instance,
                    phase=StepPhase.UPDATE,
                )
            )
        return [numbers[output] for output in template.outputs]


def _dense(shape: Sequence[int]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return tuple(strides)


def _trace_function(
    function: Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]], types: Sequence[TensorType]
) -> Graph:
    mode = FakeTensorMode()
    with mode:
        twins = [torch.empty(type_.shape, dtype=getattr(torch, type_.dtype)) for type_ in types]
    inputs = [TracedInput(str(number), Role.INPUT, -1, twin) for number, twin in enumerate(twins)]
    with torch.no_grad():
        traced = trace_functional(lambda *given: list(function(given)), twins)
    return to_traced_module(traced, "update", inputs, (), (), torch.nn.Module()).graph


def _with_updates(
    flat: TracedModule,
    training: Training,
    rules: Mapping[str, Rule],
    changed: Sequence[str],
    blocks: frozenset[str],
    batched: frozenset[str],
) -> TracedStep:
    """Append the updates, and the state that they need to the inputs.

    Args:
        flat: Forward and backward; returns the loss, a gradient for each rule, and the next value of each changed buffer.
        training: How it is trained.
        rules: The update of each parameter.
        changed: The buffers.
        blocks: Paths of blocks.
        batched: Inputs that are split into microbatches.
    """
    graph = flat.graph
    builder = _Builder(graph)
    instances = list(flat.instances)
    inputs = {entry.name: entry for entry in flat.inputs}
    gradients = dict(zip(rules, graph.outputs[1 : 1 + len(rules)], strict=True))
    state: list[TracedInput] = []
    owners: dict[str, list[str]] = {}
    for name in rules:
        owners.setdefault(owner_of(name, blocks) or name.rpartition(".")[0], []).append(name)
    outputs = list(zip(changed, graph.outputs[1 + len(rules) :], strict=True))

    def instance_of(path: str) -> int:
        if path not in blocks:
            return -1
        instances.append(path)
        return len(instances) - 1

    rates = _rate_inputs(training, rules, builder)
    scalars: dict[Rule, list[int]] = {}
    following: list[int] = []
    if any(rule.needs_step for rule in rules.values()):
        tensor = initial_step(training.optimizer)
        step = TracedInput(STEP, Role.OPTIMIZER, builder.input(tensor), tensor)
        state.append(step)
        following = builder.apply("step", lambda given: [given[0] + 1], [step.value], "optimizer", -1)
        outputs.append((STEP, following[0]))
    for rule in dict.fromkeys(rules.values()):
        scalars[rule] = _scalars_of(rule, builder, following, rates)
    factor: list[int] = []
    if training.clip_norm is not None:
        total = builder.apply("zero", lambda _given: [torch.zeros([])], [], "optimizer", -1)
        for path, names in owners.items():
            given = [*total, *(gradients[name] for name in names)]
            total = builder.apply("squares", lambda given: [add_squares(given)], given, path, instance_of(path))
        make = clip_factor(training.clip_norm)
        factor = builder.apply("clip", lambda given: [make(given[0])], total, "optimizer", -1)

    for path, names in owners.items():
        instance = instance_of(path)
        for name in names:
            rule = rules[name]
            held = initial_state(training.optimizer, inputs[name].tensor, rule)
            own = [
                TracedInput(f"{name}.{key}", Role.OPTIMIZER, builder.input(value), value) for key, value in held.items()
            ]
            state.extend(own)
            common = [*scalars.get(rule, ()), *factor]
            given = [inputs[name].value, gradients[name], *(entry.value for entry in own), *common]
            made = builder.apply((rule, bool(factor)), _update_of(rule, bool(factor)), given, path, instance)
            outputs.extend(zip((name, *(entry.name for entry in own)), made, strict=True))
    given_inputs = [entry for entry in flat.inputs if entry.role is Role.INPUT]
    own_state = [entry for entry in flat.inputs if entry.role is not Role.INPUT]
    all_inputs = (*given_inputs, *rates.values(), *own_state, *state)
    order = {entry.name: position for position, entry in enumerate(all_inputs)}
    outputs.sort(key=lambda entry: order[entry[0]])
    loss = graph.outputs[0]
    graph.inputs = [entry.value for entry in all_inputs]
    graph.outputs = [loss, *(number for _, number in outputs)]
    names = tuple(name for name, _ in outputs)
    traced = TracedModule(graph, all_inputs, (LOSS, *names), tuple(instances), flat.random)
    return TracedStep(traced, (None, *names), batched)


def _rate_inputs(training: Training, rules: Mapping[str, Rule], builder: _Builder) -> dict[str, TracedInput]:
    """The learning rates that are inputs, by name."""
    rates: dict[str, TracedInput] = {}
    if training.scheduler is not None:
        schedule = Rates(training.optimizer, training.scheduler)
        for name, value in zip(schedule.names, schedule(0), strict=True):
            tensor = torch.tensor(value, dtype=torch.float32)
            if any(rule.lr == name for rule in rules.values()):
                rates[name] = TracedInput(name, Role.INPUT, builder.input(tensor), tensor)
    return rates


def _scalars_of(rule: Rule, builder: _Builder, following: Sequence[int], rates: Mapping[str, TracedInput]) -> list[int]:
    """The numbers that all updates by a rule share."""
    step = [*following] if rule.needs_step else []
    rate = [rates[rule.lr].value] if isinstance(rule.lr, str) else []
    if not step and not rate:
        return []

    def make(given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        return rule.scalars(given[0] if step else None, given[-1] if rate else None)

    return builder.apply(("scalars", rule), make, [*step, *rate], "optimizer", -1)


def _update_of(rule: Rule, is_clipped: bool) -> Callable[[Sequence[torch.Tensor]], list[torch.Tensor]]:
    def update(given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        param, grad, *rest = given
        count = len(rule.state)
        if is_clipped:
            grad = grad * rest.pop()
        return rule.update(param, grad, rest[:count], rest[count:])

    return update
