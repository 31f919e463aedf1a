# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a PyTorch module to a pure graph, without computing anything.

1. Every parameter, buffer and input gets a fake twin (shape and element type, no storage) on the CPU; tied tensors get
   one.
2. The module runs once on the twins under functionalisation and the decompositions of ``decompositions.py``: what comes
   out is one flat list of operator calls with no mutation. A hook on every module notes which module, and which block,
   each call belongs to.
3. The list becomes a ``Graph``; tensors that the module holds without registering them become buffers of their own.

Cost: about a millisecond an operator call, whatever the shapes. Limits: shapes are static, and a program whose control
flow depends on values of tensors cannot be traced and is refused.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import torch
import torch.fx.traceback as fx_traceback
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention import SDPBackend, sdpa_kernel

from hyperparallel.enums import Role, StepPhase
from hyperparallel.errors import ImportModelError
from hyperparallel.frontend.decompositions import Rewrites, decomposition_table
from hyperparallel.frontend.graph import Argument, Graph, Node, Opaque, TensorType, Value
from hyperparallel.frontend.signature import bind_call, name_inputs, name_results

ModuleProgress = Callable[[int, int], None]
"""Called with the number of modules that have run and the number of modules."""


@dataclasses.dataclass(frozen=True, slots=True)
class TracedInput:
    """One input of the traced graph.

    Attributes:
        name: Fully qualified name of a parameter or buffer, or name of an argument of ``forward``.
        role: What it is.
        value: Its number in the graph.
        tensor: The tensor that the module or the caller holds.
        aliases: Further names of the same parameter or buffer (tied weights).
    """

    name: str
    role: Role
    value: int
    tensor: torch.Tensor
    aliases: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class TracedModule:
    """A flat graph, and what its inputs, outputs and block instances are.

    Attributes:
        graph: The whole program.
        inputs: One entry for each graph input, in order.
        output_names: One name for each graph output, in order.
        instances: The module path of every block instance, in the order of the calls.
        random: The operators of the graph that draw random numbers.
        written: The inputs that the module writes, whose next values are the last outputs, in order.
    """

    graph: Graph
    inputs: tuple[TracedInput, ...]
    output_names: tuple[str, ...]
    instances: tuple[str, ...]
    random: frozenset[str]
    written: tuple[str, ...] = ()


def mark_origin(phase: StepPhase, instance: int, path: str) -> None:
    """Note where the operator calls that are traced from now on come from."""
    fx_traceback.get_current_meta()["stack_trace"] = f"{phase} {instance} {path}"


@dataclasses.dataclass(slots=True)
class ModuleStack:
    """Which modules are running, and which block instance they belong to."""

    names: dict[int, str]
    blocks: frozenset[str]
    progress: ModuleProgress | None
    stack: list[tuple[int, str, int]] = dataclasses.field(default_factory=lambda: [])
    instances: list[str] = dataclasses.field(default_factory=lambda: [])
    done: int = 0

    def enter(self, module: torch.nn.Module, _args: Any) -> None:
        """A module is about to run."""
        name = self.names.get(id(module))
        if name is None:
            return
        instance = self.stack[-1][2] if self.stack else -1
        if instance < 0 and name in self.blocks:
            instance = len(self.instances)
            self.instances.append(name)
        self.stack.append((id(module), name, instance))
        self._annotate()

    def leave(self, module: torch.nn.Module, _args: Any, _output: Any) -> None:
        """A module has run; what failed inside it is gone, too."""
        if not any(entry[0] == id(module) for entry in self.stack):
            return
        while self.stack.pop()[0] != id(module):
            pass
        self.done += 1
        if self.progress is not None:
            self.progress(min(self.done, len(self.names)), len(self.names))
        self._annotate()

    def path(self) -> str:
        """The module that is running."""
        return self.stack[-1][1] if self.stack else ""

    def _annotate(self) -> None:
        _, name, instance = self.stack[-1] if self.stack else (0, "", -1)
        mark_origin(StepPhase.FORWARD, instance, name)


def trace_module(
    module: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    name: str,
    blocks: frozenset[str],
    written: frozenset[str] = frozenset(),
    progress: ModuleProgress | None = None,
) -> TracedModule:
    """Trace ``module(*args, **kwargs)``.

    Args:
        module: The module; its parameters may be real, fake, or on the ``meta`` device.
        args: Example positional arguments: tensors, plain values, or nested lists, tuples and dicts of these.
        kwargs: Example keyword arguments.
        name: Name of the graph.
        blocks: Paths of the modules whose calls are numbered as block instances.
        written: The buffers that the module may write in place.
        progress: Told how many modules have run.

    Returns:
        The flat graph with its inputs, outputs and block instances.

    Raises:
        ImportModelError: The module fails on these arguments, or its control flow depends on values of tensors, or it
            changes its parameters or other buffers, or an argument or result is not made of tensors.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    state = named_state(module)
    call = bind_call(module, args, kwargs)
    named = name_inputs(call, {entry.name for entry in state})
    inputs = [TracedInput(name, Role.INPUT, -1, tensor) for name, tensor in named.items()]
    twins = [fake_twin(entry.tensor, mode) for entry in (*inputs, *state)]
    stack = ModuleStack({id(child): path for path, child in module.named_modules()}, blocks, progress)
    output_names: list[str] = []

    def run(*tensors: torch.Tensor) -> list[torch.Tensor]:
        own = dict(zip((entry.name for entry in state), tensors[len(inputs) :], strict=True))
        call_args, call_kwargs = call.with_tensors(tensors[: len(inputs)])
        with Rewrites():
            result = torch.func.functional_call(module, own, call_args, call_kwargs, tie_weights=True)
        named = name_results(result)
        output_names[:] = [key for key, _ in named]
        return [value for _, value in named]

    try:
        with tracing_state(stack):
            functional = torch.func.functionalize(run, remove="mutations")
            traced = trace_functional(functional, twins)
            if any(writes_in_place(node) for node in traced.graph.nodes):
                # A decomposition wrote in place. Run what was traced, which has the origin of every node, once more.
                interpreter: Any = torch.fx.Interpreter(traced)
                traced = trace_functional(torch.func.functionalize(interpreter.run, remove="mutations"), twins)
    except ImportModelError:
        raise
    except Exception as error:
        raise tracing_failure(error, stack.path(), module) from error
    if progress is not None:
        progress(len(stack.names), len(stack.names))  # containers never run, and some modules may not either
    return to_traced_module(
        traced, name, (*inputs, *state), tuple(output_names), tuple(stack.instances), module, written
    )


def trace_functional(function: Callable[..., Any], twins: Sequence[torch.Tensor]) -> torch.fx.GraphModule:
    """Record the operator calls of a function that has been made functional."""
    trace = make_fx(
        function,
        decomposition_table(),
        tracing_mode="fake",
        _allow_non_fake_inputs=True,
        _disable_torch_fn_metadata_mode=True,
    )
    return trace(*twins)


def writes_in_place(node: torch.fx.Node) -> bool:
    """Whether the node changes a tensor that is no input of the graph."""
    schema: Any = getattr(node.target, "_schema", None)
    return schema is not None and schema.is_mutable and not _changes_input(node)


def _changes_input(node: torch.fx.Node) -> bool:
    """Whether the node is what functionalisation leaves of a write to a graph input: a copy at the end."""
    first: Any = node.args[0] if node.args else None
    return str(node.target) == "aten.copy_.default" and first.op == "placeholder"


@contextlib.contextmanager
def tracing_state(stack: ModuleStack) -> Generator[None]:
    """Everything global that tracing needs, and puts back."""
    compiler: Any = torch.compiler
    internals: Any = torch._C  # pyright: ignore[reportPrivateUsage]
    flags = compiler._is_compiling_flag, compiler._is_exporting_flag
    fast_path = torch.backends.mha.get_fastpath_enabled()
    collecting = gc.isenabled()
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    level = logger.level
    mkldnn = internals._get_mkldnn_enabled()
    hooks = [
        torch.nn.modules.module.register_module_forward_pre_hook(stack.enter),
        torch.nn.modules.module.register_module_forward_hook(stack.leave),
    ]
    gc.disable()  # a trace makes millions of objects that all stay: looking through them again and again is quadratic
    logger.setLevel(logging.CRITICAL)  # it prints a traceback for every error that is about to be raised
    # Models ask these flags whether they may look at values of tensors (here they may not).
    compiler._is_compiling_flag = compiler._is_exporting_flag = True
    torch.backends.mha.set_fastpath_enabled(False)
    internals._set_mkldnn_enabled(False)
    try:
        with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), fx_traceback.preserve_node_meta():
            yield
    finally:
        internals._set_mkldnn_enabled(mkldnn)
        logger.setLevel(level)
        if collecting:
            gc.enable()
        compiler._is_compiling_flag, compiler._is_exporting_flag = flags
        torch.backends.mha.set_fastpath_enabled(fast_path)
        for hook in hooks:
            hook.remove()


def fake_twin(tensor: torch.Tensor, mode: FakeTensorMode) -> torch.Tensor:
    """A tensor of the same shape, strides and element type, on the CPU and without storage."""
    if tensor.layout != torch.strided or tensor.is_quantized:
        raise ImportModelError(
            "expected dense tensors but got a sparse or quantized one; convert it with to_dense() or dequantize()"
        )
    with mode:
        return torch.empty_strided(tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device="cpu")


def named_state(module: torch.nn.Module) -> list[TracedInput]:
    """One entry for each distinct parameter and buffer, parameters first."""
    found: dict[int, tuple[list[str], Role, torch.Tensor]] = {}
    for role, pairs in (
        (Role.PARAMETER, module.named_parameters(remove_duplicate=False)),
        (Role.BUFFER, module.named_buffers(remove_duplicate=False)),
    ):
        for name, tensor in pairs:
            found.setdefault(id(tensor), ([], role, tensor))[0].append(name)
    return [TracedInput(names[0], role, -1, tensor, tuple(names[1:])) for names, role, tensor in found.values()]


def tracing_failure(error: Exception, path: str, module: torch.nn.Module) -> ImportModelError:
    """What to tell a person of an error in the middle of the trace, in the module ``path``."""
    from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

    place = f"{path} ({type(module.get_submodule(path)).__name__})" if path else type(module).__name__
    op: str | None = None
    if isinstance(error, DataDependentOutputException | DynamicOutputShapeException):
        op = str(getattr(error, "func", error))
        what = (
            "the value of a tensor"
            if isinstance(error, DataDependentOutputException)
            else "a shape that depends on values"
        )
        return ImportModelError(
            f"{place} needs {what} ({op}) while the model is traced without values; "
            "compute it with torch.where instead of branching in Python, or pass it as a plain Python argument",
            op=op,
            module_path=path or None,
        )
    lines = [line for line in str(error).splitlines() if line.strip()]
    return ImportModelError(
        f"running the model on tensors without values failed in {place}: {type(error).__name__}: {' '.join(lines[:4])}",
        module_path=path or None,
    )


def to_traced_module(
    traced: torch.fx.GraphModule,
    name: str,
    inputs: Sequence[TracedInput],
    output_names: tuple[str, ...],
    instances: tuple[str, ...],
    module: torch.nn.Module,
    written: frozenset[str] = frozenset(),
) -> TracedModule:
    """Turn what was recorded into a graph of our own.

    Raises:
        ImportModelError: It takes an argument of a kind that cannot be imported, or changes an input that is not among
            ``written``.
    """
    graph = Graph(name, {}, [], [], [])
    values: dict[torch.fx.Node, tuple[int | None, ...]] = {}
    traced_inputs: list[TracedInput] = []
    constants: list[TracedInput] = []
    random: set[str] = set()
    next_values: dict[str, int | None] = {}

    def add_value(fake: Any) -> int:
        number = len(graph.types)
        graph.types[number] = TensorType(
            tuple(fake.shape), tuple(fake.stride()), str(fake.dtype).removeprefix("torch.")
        )
        return number

    for node in traced.graph.nodes:
        if node.op == "placeholder":
            number = add_value(node.meta["val"])
            values[node] = (number,)
            traced_inputs.append(dataclasses.replace(inputs[len(traced_inputs)], value=number))
        elif node.op == "get_attr":
            tensor = getattr(traced, str(node.target))
            literal = _as_literal(tensor)
            number = add_value(tensor)
            values[node] = (number,)
            if literal is not None:
                shape = tuple(tensor.shape)
                dtype = Opaque("dtype", graph.types[number].dtype)
                phase, instance, path = _origin(node)
                graph.nodes.append(
                    Node(
                        *("aten.full.default", (shape, literal), {"dtype": dtype}, (number,)),
                        *("single", path, instance, phase),
                    )
                )
            else:
                constant = _name_constant(tensor, module, {entry.name for entry in (*inputs, *constants)})
                constants.append(TracedInput(constant, Role.BUFFER, number, tensor))
        elif node.op == "output":
            outputs = [values[entry][0] for entry in node.args[0]]
            graph.outputs = [number for number in outputs if number is not None]
        elif _is_getitem(node):
            values[node] = (values[node.args[0]][node.args[1]],)
        elif _changes_input(node):
            changed = next(entry for entry in traced_inputs if values[node.args[0]] == (entry.value,))
            if changed.name in written:
                next_values[changed.name] = values[node.args[1]][0]
                continue
            way_out = "return the new value instead of writing it in place"
            if changed.role is Role.BUFFER:
                way_out = f"call module.eval() first, or {way_out}, or name it as a cache of a Decoding"
            raise ImportModelError(f"the model changes its {changed.role} {changed.name} while it runs; {way_out}")
        else:
            values[node], entry = _to_node(node, values, add_value)
            graph.nodes.append(entry)
            if torch.Tag.nondeterministic_seeded in node.target.tags:
                random.add(entry.target)
    traced_inputs.extend(constants)
    graph.inputs = [entry.value for entry in traced_inputs]
    graph.outputs += [number for number in next_values.values() if number is not None]
    kept = tuple(
        dataclasses.replace(entry, role=Role.CACHE) if entry.name in next_values else entry for entry in traced_inputs
    )
    return TracedModule(graph, kept, (*output_names, *next_values), instances, frozenset(random), tuple(next_values))


def _origin(node: torch.fx.Node) -> tuple[StepPhase, int, str]:
    """Return the phase, the block instance and the module path that were noted when the node was made."""
    phase, _, rest = str(node.meta.get("stack_trace") or "forward -1 ").partition(" ")
    instance, _, path = rest.partition(" ")
    return StepPhase(phase), int(instance), path


def _is_getitem(node: torch.fx.Node) -> bool:
    return getattr(node.target, "__name__", "") == "getitem"


def _to_node(
    node: torch.fx.Node, values: dict[torch.fx.Node, tuple[int | None, ...]], add_value: Callable[[Any], int]
) -> tuple[tuple[int | None, ...], Node]:
    made = node.meta.get("val")
    structure = "list" if isinstance(made, list) else "tuple" if isinstance(made, tuple) else "single"
    entries = made if isinstance(made, list | tuple) else (made,)
    results = tuple(add_value(entry) if isinstance(entry, torch.Tensor) else None for entry in entries)
    phase, instance, path = _origin(node)

    def convert(argument: Any) -> Argument:
        if isinstance(argument, torch.fx.Node):
            number = values[argument][0]
            assert number is not None
            return Value(number)
        if isinstance(argument, list | tuple):
            return tuple(convert(entry) for entry in argument)
        if isinstance(argument, torch.dtype):
            return Opaque("dtype", str(argument).removeprefix("torch."))
        if isinstance(argument, torch.layout):
            return Opaque("layout", str(argument).removeprefix("torch."))
        if isinstance(argument, torch.memory_format):
            return Opaque("memory_format", str(argument).removeprefix("torch."))
        if isinstance(argument, torch.device):
            return Opaque("device", "cpu")
        if argument is None or isinstance(argument, bool | int | float | str):
            return argument
        raise ImportModelError(
            f"{node.target} in {path or 'the model'} takes a {type(argument).__name__}, which cannot be imported"
        )

    kwargs = {key: convert(argument) for key, argument in node.kwargs.items()}
    args = tuple(convert(argument) for argument in node.args)
    return results, Node(str(node.target), args, kwargs, results, structure, path, instance, phase)


def _as_literal(tensor: torch.Tensor) -> bool | int | float | None:
    """Return the value of a one-element constant, so that it needs no argument of its own."""
    if isinstance(tensor, FakeTensor) or tensor.is_meta or tensor.numel() != 1 or tensor.is_complex():
        return None
    return tensor.item()


def _name_constant(tensor: torch.Tensor, module: torch.nn.Module, taken: set[str]) -> str:
    """Name a tensor that the module holds without registering it, by the attribute that holds it where there is one."""
    for path, child in module.named_modules():
        for key, held in vars(child).items():
            if held is tensor:
                name = f"{path}.{key}" if path else key
                if name not in taken:
                    return name
    number = 0
    while f"constant.{number}" in taken:
        number += 1
    return f"constant.{number}"
