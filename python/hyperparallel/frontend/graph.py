# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The traced program between PyTorch and the worker: plain data, no torch.

A ``Graph`` is a pure function: inputs, nodes in the order in which they ran, outputs. Every tensor is a number
(``Value``) with a type; a node names an operator overload (``aten.add.Tensor``), or one of two of our own:

- ``hp.call``     calls another graph (``kwargs["callee"]``): a repeated block
- ``hp.kernel``   an operator that this front end writes as MLIR itself (``kwargs["kernel"]``)

Graphs are encoded as JSON for the worker. Arguments that JSON does not know (values, dtypes, devices, infinities)
become one-entry objects with a ``$`` key.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

from hyperparallel.enums import StepPhase

CALL = "hp.call"
KERNEL = "hp.kernel"


@dataclasses.dataclass(frozen=True, slots=True)
class TensorType:
    """Shape, strides (in elements) and element type (PyTorch's name, such as ``float32``) of a tensor."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str


@dataclasses.dataclass(frozen=True, slots=True)
class Value:
    """A reference to a tensor of the graph."""

    id: int


@dataclasses.dataclass(frozen=True, slots=True)
class Opaque:
    """An argument that is neither number, string nor tensor, such as the dtype ``float32``."""

    kind: str
    text: str


Argument = Any
"""``None | bool | int | float | str | Value | Opaque``, or a tuple of these."""


@dataclasses.dataclass(frozen=True, slots=True)
class Node:
    """One operator call.

    Attributes:
        target: The operator overload, or ``hp.call`` or ``hp.kernel``.
        args: Positional arguments.
        kwargs: Keyword arguments.
        results: The tensors it makes; an entry is None where an operator returns nothing there.
        structure: ``single`` for one tensor, ``tuple`` or ``list`` for several.
        path: The module whose forward function ran it, such as ``model.layers.3.mlp``.
        instance: The block it belongs to, as a number counted in the order of calls; -1 outside of blocks.
        phase: The part of a training step it belongs to.
    """

    target: str
    args: tuple[Argument, ...]
    kwargs: dict[str, Argument]
    results: tuple[int | None, ...]
    structure: str
    path: str
    instance: int = -1
    phase: StepPhase = StepPhase.FORWARD

    def values(self) -> Iterator[Value]:
        """Yield every tensor argument, repeats included."""
        yield from argument_values(self.args)
        for argument in self.kwargs.values():
            yield from argument_values(argument)

    def map_values(self, rename: Callable[[Value], Value]) -> Node:
        """Return this node with every tensor argument replaced by ``rename`` of it."""
        return dataclasses.replace(
            self,
            args=map_argument(self.args, rename),
            kwargs={key: map_argument(argument, rename) for key, argument in self.kwargs.items()},
        )


@dataclasses.dataclass(slots=True)
class Graph:
    """A pure function over tensors.

    Attributes:
        name: The name of the function it becomes.
        types: The type of every value.
        inputs: Values handed in, in order.
        nodes: Calls, every one after those whose results it takes.
        outputs: Values handed back, in order.
    """

    name: str
    types: dict[int, TensorType]
    inputs: list[int]
    nodes: list[Node]
    outputs: list[int]

    def remove_dead_nodes(self) -> None:
        """Drop every node whose results nobody takes: the graph is pure."""
        alive = set(self.outputs)
        kept: list[Node] = []
        for node in reversed(self.nodes):
            if any(result in alive for result in node.results if result is not None):
                alive.update(value.id for value in node.values())
                kept.append(node)
        self.nodes = kept[::-1]


def argument_values(argument: Argument) -> Iterator[Value]:
    """Yield the values inside an argument."""
    if isinstance(argument, Value):
        yield argument
    elif isinstance(argument, tuple):
        for entry in argument:
            yield from argument_values(entry)


def map_argument(argument: Argument, rename: Callable[[Value], Value]) -> Argument:
    """Replace the values inside an argument."""
    if isinstance(argument, Value):
        return rename(argument)
    if isinstance(argument, tuple):
        return tuple(map_argument(entry, rename) for entry in argument)
    return argument


def encode_argument(argument: Argument) -> Any:
    """Turn an argument into what ``json`` can write; distinct arguments give distinct text."""
    match argument:
        case Value(id=number):
            return {"$value": number}
        case Opaque(kind=kind, text=text):
            return {"$" + kind: text}
        case tuple():
            return [encode_argument(entry) for entry in argument]
        case float() if not math.isfinite(argument):
            return {"$float": repr(argument)}
        case _:
            return argument


def encode_graph(graph: Graph) -> dict[str, Any]:
    """Turn a graph into what ``json`` can write."""
    return {
        "name": graph.name,
        "types": {str(key): [type_.shape, type_.stride, type_.dtype] for key, type_ in graph.types.items()},
        "inputs": graph.inputs,
        "nodes": [
            [
                node.target,
                encode_argument(node.args),
                {key: encode_argument(argument) for key, argument in node.kwargs.items()},
                node.results,
                node.structure,
                node.path,
            ]
            for node in graph.nodes
        ],
        "outputs": graph.outputs,
    }
