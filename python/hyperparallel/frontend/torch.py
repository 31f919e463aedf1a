# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Import of PyTorch modules.

    nn.Module + example inputs ──trace──▶ flat graph ──simplify, outline blocks──▶ graphs ──worker (torch_mlir)──▶
    linalg text
        ──assemble (our MLIR)──▶ ImportedModel

Nothing is computed: shapes come from tensors without storage, so a model of any size imports on a laptop. torch_mlir is
loaded in a worker process only (``worker.py`` says why).
"""

from __future__ import annotations

import contextlib
import dataclasses
import fnmatch
import importlib.util
import re
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from hyperparallel.enums import Role
from hyperparallel.errors import ImportModelError, MissingDependencyError
from hyperparallel.frontend import worker_process
from hyperparallel.frontend.artifact import ArgumentInfo, BlockInfo, ImportedModel, ResultInfo
from hyperparallel.frontend.graph import CALL, KERNEL, Graph, TensorType, encode_graph
from hyperparallel.frontend.import_cache import Subject, current_memory
from hyperparallel.frontend.kernels import Kernel, element_type
from hyperparallel.frontend.microbatches import Microbatches

if TYPE_CHECKING:
    import torch

    from hyperparallel.frontend.decoding import Decoding
    from hyperparallel.frontend.outline import Outlined
    from hyperparallel.frontend.tracing import TracedInput, TracedModule

Progress = Callable[[str, int, int], None]
"""Called with the stage (``trace``, ``lower``, ``assemble``), how much of it is done, and how much there is."""

_INSTALL = "pip install 'hyperparallel[torch]'"

_WAYS_OUT = {
    "scatter": "write it as a product with a one-hot matrix, or with torch.where",
    "index_put": "write it as torch.where over a mask",
    "attention": "build the model with attn_implementation='eager'",
    "fft": "write it as a product with the matrix of the transform",
}


def import_model(
    module: torch.nn.Module,
    example_args: Sequence[Any] = (),
    example_kwargs: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    block_paths: Literal["auto"] | Sequence[str] | None = "auto",
    decoding: Decoding | None = None,
    progress: Progress | None = None,
    timeout: float = worker_process.DEFAULT_TIMEOUT,
) -> ImportedModel:
    """Import a PyTorch module as linalg on tensors.

    The program's entry is ``@main``. Its arguments are the inputs, then the parameters, then the buffers, each with
    ``hp.name``, ``hp.role`` and, for tied weights, ``hp.aliases``; its results carry ``hp.name``. Shapes are those of
    the example inputs.

    Args:
        module: The module, with real parameters, or with fake ones or on the ``meta`` device (then there are no
            weights).
        example_args: Positional arguments of its ``forward``: tensors (also fake or meta), plain values, or nested
            lists, tuples and dicts of these. Plain values become part of the program.
        example_kwargs: Keyword arguments of its ``forward``.
        name: What to call the model; the module's class name if not given.
        block_paths: Which modules become functions of their own, shared by all that are the same: ``"auto"`` takes the
            entries of every ``ModuleList`` or ``Sequential`` in which a class of modules with children repeats; a list
            of paths, which may be globs such as ``"model.layers.*"``, takes those, and with ``"auto"`` among them both;
            None takes none and makes one flat function.
        decoding: The buffers that the module writes in place, and the inputs that it gives the next value of, if it is a
            step of generation.
        progress: Told about the stages of the work.
        timeout: Seconds that the lowering may take.

    Returns:
        The program with its arguments, results and blocks, and access to the weights.

    Raises:
        ImportModelError: The module cannot be traced, or an operator has no lowering (the message names the operator,
            the submodule and a way out), or the worker died.
        MissingDependencyError: torch or torch-mlir is not installed.

    Example:
        >>> import torch
        >>> from hyperparallel.frontend.torch import import_model
        >>> model = import_model(torch.nn.Linear(4, 3), (torch.ones(2, 4),), name="linear")
        >>> [(argument.name, argument.role.value, argument.shape) for argument in model.arguments]
        [('input', 'input', (2, 4)), ('weight', 'parameter', (3, 4)), ('bias', 'parameter', (3,))]
        >>> model.results[0].shape
        (2, 3)
    """
    kwargs = example_kwargs or {}

    def make() -> ImportedModel:
        with open_worker() as worker:
            return _import(
                module, example_args, kwargs, name, block_paths, decoding, progress or silent, timeout, worker
            )

    memory = current_memory()
    if memory is None:
        return make()
    return memory.get(Subject(module, example_args, kwargs, name, block_paths, decoding=decoding), make)


@contextlib.contextmanager
def open_worker() -> Generator[worker_process.Worker]:
    """The session's worker, or one for this import alone.

    Raises:
        MissingDependencyError: torch or torch-mlir is not installed.
    """
    for package, wanted in (("torch", "torch"), ("torch_mlir", "torch-mlir")):
        if importlib.util.find_spec(package) is None:
            raise MissingDependencyError(wanted, needed_for="importing a PyTorch model", install=_INSTALL)
    session = worker_process.current_worker()
    worker = session or worker_process.Worker()
    try:
        yield worker
    finally:
        if session is None:
            worker.close()


def silent(_stage: str, _done: int, _total: int) -> None:
    """Say nothing of the progress."""
    return None


def _import(
    module: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    name: str | None,
    block_paths: Literal["auto"] | Sequence[str] | None,
    decoding: Decoding | None,
    progress: Progress,
    timeout: float,
    worker: worker_process.Worker,
) -> ImportedModel:
    from hyperparallel.frontend.outline import outline_blocks
    from hyperparallel.frontend.simplify import simplify
    from hyperparallel.frontend.tracing import trace_module

    blocks = find_blocks(module, block_paths)
    written: frozenset[str] = frozenset()
    if decoding is not None:
        written = decoding.written([name for name, _ in module.named_buffers()])
    traced = trace_module(
        module,
        args,
        kwargs,
        name="main",
        blocks=blocks,
        written=written,
        progress=lambda done, total: progress("trace", done, total),
    )
    simplify(traced.graph, random=traced.random)
    inputs, unused = drop_unused_state(traced)
    classes = [(path, type(module.get_submodule(path)).__name__) for path in traced.instances]
    state = [entry.value for entry in inputs if entry.role is not Role.INPUT]
    outlined = outline_blocks(traced.graph, classes, is_state=state)
    results = _results(traced, () if decoding is None else decoding.carried)
    return lower_outlined(
        outlined, inputs, results, name or type(module).__name__, unused, progress, worker=worker, timeout=timeout
    )


@dataclasses.dataclass(frozen=True, slots=True)
class ResultSpec:
    """A result's name, and the argument whose next value it is."""

    name: str
    updates: str | None = None


def _results(traced: TracedModule, carried: Sequence[str]) -> list[ResultSpec]:
    """The results of a traced module, with the arguments whose next values they are."""
    graph = traced.graph
    given = {entry.name: graph.types[entry.value] for entry in traced.inputs if entry.role is Role.INPUT}
    made = {name: graph.types[number] for name, number in zip(traced.output_names, graph.outputs, strict=True)}
    for name in carried:
        if name not in given or name not in made:
            raise ImportModelError(
                f"{name} is carried from step to step, so it must be an input and a result; the inputs are "
                f"{', '.join(given)}, the results {', '.join(made)}"
            )
        before, after = given[name], made[name]
        if (before.shape, before.dtype) != (after.shape, after.dtype):
            raise ImportModelError(
                f"{name} is carried from step to step but goes in as {before.dtype} {list(before.shape)} and comes out as "
                f"{after.dtype} {list(after.shape)}"
            )
    updated = {*carried, *traced.written}
    return [ResultSpec(name, name if name in updated else None) for name in traced.output_names]


def lower_outlined(
    outlined: Outlined,
    inputs: Sequence[TracedInput],
    result_specs: Sequence[ResultSpec],
    name: str,
    unused: tuple[str, ...],
    progress: Progress,
    *,
    worker: worker_process.Worker,
    timeout: float,
    microbatches: Microbatches | None = None,
) -> ImportedModel:
    """Lower the functions of a traced program, and put the model together.

    Args:
        outlined: The program.
        inputs: One entry for each input of its main graph.
        result_specs: One entry for each of its outputs.
        name: What to call the model.
        unused: Parameters and buffers that the program does not need.
        progress: Told about the stages of the work.
        worker: What lowers operators.
        timeout: Seconds that the lowering may take.
        microbatches: For a training step, how many, and which inputs are split into them.

    Raises:
        ImportModelError: An operator has no lowering, or the worker died.
    """
    from hyperparallel.frontend.assemble import assemble

    main, functions = outlined.main, outlined.functions
    kernels = _name_kernels([*functions, main])
    arguments = tuple(_argument(entry, main.types[entry.value], microbatches) for entry in inputs)
    results = tuple(
        ResultInfo(spec.name, main.types[number].shape, _element(main.types[number].dtype, f"result {spec.name}"))
        for spec, number in zip(result_specs, main.outputs, strict=True)
    )
    results = tuple(
        dataclasses.replace(result, updates=spec.updates) for result, spec in zip(results, result_specs, strict=True)
    )
    calls = [node for node in main.nodes if node.target == CALL]

    progress("lower", 0, 1)
    graphs = [encode_graph(graph) for graph in (*functions, main)]
    reply = worker.request({"graphs": graphs}, timeout=timeout)
    if "mlir" not in reply:
        raise _refusal(reply)
    progress("lower", 1, 1)
    progress("assemble", 0, 1)
    text = assemble(
        reply["mlir"],
        kernels=kernels,
        argument_attributes=[_attributes(entry) for entry in arguments],
        result_attributes=[
            {"hp.name": entry.name} if entry.updates is None else {"hp.name": entry.name, "hp.updates": entry.updates}
            for entry in results
        ],
        calls=calls,
        segments=outlined.segments,
        with_phases=microbatches is not None,
        microbatches=microbatches,
    )
    progress("assemble", 1, 1)
    weights = {entry.name: entry.tensor for entry in inputs if entry.role is not Role.INPUT}
    has_weights = all(has_storage(tensor) for tensor in weights.values())
    return ImportedModel(
        name=name,
        mlir=text,
        arguments=arguments,
        results=results,
        blocks=tuple(
            BlockInfo(node.path, node.kwargs["callee"], "" if microbatches is None else str(node.phase))
            for node in calls
            if node.kwargs["callee"] not in outlined.segments
        ),
        unused=unused,
        has_weights=has_weights,
        microbatches=0 if microbatches is None else microbatches.count,
        _read_weight=(lambda key: as_array(weights[key])) if has_weights else None,
    )


def find_blocks(module: torch.nn.Module, block_paths: Literal["auto"] | Sequence[str] | None) -> frozenset[str]:
    """Return the paths of the modules that become functions.

    Raises:
        ImportModelError: An entry of ``block_paths`` matches no module.
    """
    import torch

    if block_paths is None:
        return frozenset()
    if isinstance(block_paths, str):
        if block_paths != "auto":
            raise ImportModelError(
                f"expected block_paths to be 'auto', None or a list of module paths but got {block_paths!r}"
            )
        found: set[str] = set()
        for path, child in module.named_modules():
            if isinstance(child, torch.nn.ModuleList | torch.nn.Sequential):
                parents = {
                    key: entry for key, entry in child.named_children() if next(entry.children(), None) is not None
                }
                repeated = Counter(type(entry) for entry in parents.values())
                found.update(
                    f"{path}.{key}" if path else key for key, entry in parents.items() if repeated[type(entry)] > 1
                )
        return frozenset(found)
    paths = [path for path, _ in module.named_modules() if path]
    chosen: set[str] = set()
    for pattern in block_paths:
        if pattern == "auto":
            chosen |= find_blocks(module, "auto")
            continue
        matched = fnmatch.filter(paths, pattern)
        # A glob's star stays within one level: model.layers.* are the layers, not everything below them.
        matched = [path for path in matched if path.count(".") == pattern.count(".")]
        if not matched:
            raise ImportModelError(f"block path {pattern!r} matches no module of {type(module).__name__}")
        chosen.update(matched)
    return frozenset(chosen)


def drop_unused_state(traced: TracedModule) -> tuple[tuple[TracedInput, ...], tuple[str, ...]]:
    """Drop parameters and buffers that nothing takes; return the inputs that stay, and the names of the others."""
    graph = traced.graph
    used = {value.id for node in graph.nodes for value in node.values()} | set(graph.outputs)
    kept = tuple(
        entry
        for entry in traced.inputs
        if entry.role is Role.INPUT or entry.value in used or entry.name in traced.written
    )
    graph.inputs = [entry.value for entry in kept]
    names = {entry.name for entry in kept}
    return kept, tuple(entry.name for entry in traced.inputs if entry.name not in names)


def _name_kernels(graphs: Sequence[Graph]) -> dict[str, Kernel]:
    """Give every kernel node the function that the worker declares for it."""
    names: dict[Kernel, str] = {}
    for graph in graphs:
        for index, node in enumerate(graph.nodes):
            if node.target != KERNEL:
                continue
            (result,) = node.results
            assert result is not None
            sources = tuple(graph.types[source.id] for source in node.args)
            kernel = Kernel(node.kwargs["kernel"], node.kwargs["dims"], sources, graph.types[result])
            callee = names.setdefault(kernel, f"hp_kernel_{len(names)}")
            graph.nodes[index] = dataclasses.replace(node, kwargs={"callee": callee}, structure="tuple")
    return {callee: kernel for kernel, callee in names.items()}


def _element(dtype: str, what: str) -> str:
    if dtype == "uint8":
        return "ui8"
    try:
        return element_type(dtype)
    except KeyError:
        raise ImportModelError(
            f"{what} has element type {dtype}, which is not supported; convert it to float32 or int64"
        ) from None


def _argument(entry: TracedInput, type_: TensorType, microbatches: Microbatches | None) -> ArgumentInfo:
    shape = type_.shape
    if microbatches is not None and entry.name in microbatches.split:
        shape = (shape[0] * microbatches.count, *shape[1:])
    return ArgumentInfo(
        entry.name, entry.role, shape, _element(type_.dtype, f"{entry.role} {entry.name}"), entry.aliases
    )


def _attributes(entry: ArgumentInfo) -> dict[str, str | Sequence[str]]:
    attributes: dict[str, str | Sequence[str]] = {"hp.name": entry.name, "hp.role": str(entry.role)}
    if entry.aliases:
        attributes["hp.aliases"] = entry.aliases
    return attributes


def has_storage(tensor: torch.Tensor) -> bool:
    """Whether the tensor has values."""
    from torch._subclasses.fake_tensor import FakeTensor

    return not tensor.is_meta and not isinstance(tensor, FakeTensor)


def as_array(tensor: torch.Tensor) -> Any:
    """The tensor as a NumPy array; bf16 as its bits."""
    import torch

    plain = tensor.detach().cpu().contiguous()
    if plain.dtype == torch.bfloat16:
        return plain.view(torch.int16).numpy().view("uint16")
    return plain.numpy()


def _refusal(reply: Mapping[str, Any]) -> ImportModelError:
    """Turn the worker's refusal into an error that names operator, module and way out.

    The worker knows where an operation came from by a location ``"module path|operator"``.
    """
    entries: list[tuple[str, str]] = [(op, origin) for op, origin in reply.get("unsupported", [])]
    if not entries:
        legalized = re.search(r"failed to legalize operation '([\w.]+)'", reply["error"])
        origin = re.search(r'"([^"|]*\|[^"]*)":\d+', reply["error"])
        if legalized is None and origin is None:
            lines = [line.strip() for line in reply["error"].splitlines() if line.strip()]
            return ImportModelError(f"lowering the model failed: {' '.join(lines[:6])}")
        entries = [(legalized.group(1) if legalized else "", origin.group(1) if origin else "")]
    described: dict[str, None] = {}
    first: tuple[str, str] | None = None
    for lowered, origin in entries:
        path, _, op = origin.partition("|")
        op = op or lowered.removeprefix("torch.")
        first = first or (op, path)
        way = next(
            (text for key, text in _WAYS_OUT.items() if key in op), "write that part of the module with other operators"
        )
        described[f"{op}, used by {path or 'the model'}, has no lowering; {way}"] = None
    assert first is not None
    lines = list(described)
    if len(lines) > 8:
        lines[8:] = [f"and {len(lines) - 8} more"]
    return ImportModelError("\n".join(lines), op=first[0], module_path=first[1] or None)
