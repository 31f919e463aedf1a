# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Turns the repeated blocks of a flat graph into functions: one for all blocks that are the same.

1. The nodes that ran inside one call of a block are neighbours in the flat graph. What they take from outside are the
   function's inputs (activations first, then parameters and buffers, each in the order of first use); what others take
   from them are its outputs, what forward takes before what is kept for backward.
2. Blocks are the same when these pieces are equal, node by node: operators, arguments, data flow, shapes and element
   types. Nothing is assumed about modules of the same class: the comparison is on what was traced, in full.
3. Each distinct piece becomes a graph of its own; each block becomes one ``hp.call`` of it.

In a training step a block has a piece for each phase. What forward makes and backward takes is an output of the one and
an input of the other. All nodes that belong to no block are pieces, too, then: *segments*, one for each run of one
phase and module.

Cost: linear in the nodes.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence
from typing import Any

from hyperparallel.enums import StepPhase
from hyperparallel.frontend.graph import CALL, Graph, Node, TensorType, Value, encode_argument


@dataclasses.dataclass(frozen=True, slots=True)
class Outlined:
    """A program in functions.

    Attributes:
        main: What calls the functions.
        functions: The functions, each once.
        segments: The names of those that are no blocks.
    """

    main: Graph
    functions: list[Graph]
    segments: frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True)
class _Piece:
    """The nodes of one block call or segment, and what crosses their border."""

    instance: int
    start: int
    nodes: list[Node]
    inputs: list[int]
    outputs: list[int]


@dataclasses.dataclass(frozen=True, slots=True)
class _Uses:
    """The last node that takes each value, and the last one of the forward phase."""

    last: dict[int, int]
    last_forward: dict[int, int]


def outline_blocks(
    graph: Graph, instances: Sequence[tuple[str, str]], *, is_state: Sequence[int], segments: bool = False
) -> Outlined:
    """Split ``graph`` into a main graph and one graph for each distinct block.

    Args:
        graph: A flat graph whose nodes carry block instances.
        instances: Module path and class name of every instance.
        is_state: The graph inputs that are parameters, buffers or optimizer state.
        segments: Make functions of what belongs to no block, too.

    Returns:
        The main graph, whose ``hp.call`` nodes carry the block's path, and the functions that it calls.
    """
    state = frozenset(is_state)
    pieces = _find_pieces(graph, state, segments)
    functions: dict[str, Graph] = {}
    names_of_segments: set[str] = set()
    taken = {graph.name}
    main: list[Node] = []
    position = 0
    for piece in pieces:
        main.extend(graph.nodes[position : piece.start])
        position = piece.start + len(piece.nodes)
        first = piece.nodes[0]
        is_segment = piece.instance < 0
        path, name = (first.path, first.path or "model") if is_segment else instances[piece.instance]
        if first.phase is not StepPhase.FORWARD:
            name = f"{name}_{first.phase}"
        # A segment is called once, so that it can be put back where it is called.
        key = f"segment {piece.start}" if is_segment else _canonical_text(piece, graph, state)
        function = functions.get(key)
        if function is None:
            function = functions[key] = _extract(piece, graph, _fresh_name(name, taken))
        if is_segment:
            names_of_segments.add(function.name)
        arguments = tuple(Value(number) for number in piece.inputs)
        results: tuple[int | None, ...] = tuple(piece.outputs)
        callee = {"callee": function.name}
        main.append(Node(CALL, arguments, callee, results, "tuple", path, piece.instance, first.phase))
    main.extend(graph.nodes[position:])
    kept = {*graph.inputs, *(result for node in main for result in node.results if result is not None)}
    types = {number: type_ for number, type_ in graph.types.items() if number in kept}
    outlined = Graph(graph.name, types, graph.inputs, main, graph.outputs)
    return Outlined(outlined, list(functions.values()), frozenset(names_of_segments))


def _find_pieces(graph: Graph, state: frozenset[int], segments: bool) -> list[_Piece]:
    """Cut out every block whose nodes are neighbours; others stay where they are, or become segments."""
    spans: dict[tuple[StepPhase, int], list[int]] = {}
    uses = _Uses(dict.fromkeys(graph.outputs, len(graph.nodes)), dict.fromkeys(graph.outputs, len(graph.nodes)))
    for index, node in enumerate(graph.nodes):
        if node.instance >= 0:
            spans.setdefault((node.phase, node.instance), []).append(index)
        for value in node.values():
            uses.last[value.id] = max(uses.last.get(value.id, -1), index)
            if node.phase is StepPhase.FORWARD:
                uses.last_forward[value.id] = max(uses.last_forward.get(value.id, -1), index)
    found: list[tuple[int, int, int]] = []
    for (_, instance), indices in spans.items():
        if indices[-1] + 1 - indices[0] == len(indices):
            found.append((indices[0], indices[-1] + 1, instance))
    found.sort()
    if segments:
        found = _with_segments(graph, found)
    return [_cut(graph, state, uses, *span) for span in found]


def _with_segments(graph: Graph, blocks: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Blocks, and between them runs of nodes of the same phase and module."""
    spans: list[tuple[int, int, int]] = []
    position = 0
    for start, end, instance in [*blocks, (len(graph.nodes), len(graph.nodes), -1)]:
        while position < start:
            first, stop = graph.nodes[position], position + 1
            while stop < start and (graph.nodes[stop].phase, graph.nodes[stop].path) == (first.phase, first.path):
                stop += 1
            spans.append((position, stop, -1))
            position = stop
        if end > start:
            spans.append((start, end, instance))
        position = end
    return spans


def _cut(graph: Graph, state: frozenset[int], uses: _Uses, start: int, end: int, instance: int) -> _Piece:
    nodes = graph.nodes[start:end]
    made = {result for node in nodes for result in node.results if result is not None}
    taken = dict.fromkeys(value.id for node in nodes for value in node.values() if value.id not in made)
    inputs = [number for number in taken if number not in state] + [number for number in taken if number in state]
    outputs = [
        result for node in nodes for result in node.results if result is not None and uses.last.get(result, -1) >= end
    ]
    outputs.sort(key=lambda result: uses.last_forward.get(result, -1) < end)
    return _Piece(instance, start, nodes, inputs, outputs)


def _local_numbers(piece: _Piece) -> dict[int, int]:
    numbers = {number: index for index, number in enumerate(piece.inputs)}
    for node in piece.nodes:
        for result in node.results:
            if result is not None:
                numbers[result] = len(numbers)
    return numbers


def _canonical_text(piece: _Piece, graph: Graph, state: frozenset[int]) -> str:
    """Spell a piece so that two are the same function exactly when their texts are equal."""
    numbers = _local_numbers(piece)
    # Strides of tensors mean something to as_strided alone; everywhere else a tensor is its shape and its elements.
    strided = any("as_strided" in node.target for node in piece.nodes)

    def spell(type_: TensorType) -> list[Any]:
        return [type_.shape, type_.dtype, type_.stride if strided else None]

    text: list[Any] = [[[spell(graph.types[number]), number in state] for number in piece.inputs]]
    for node in piece.nodes:
        local = node.map_values(lambda value: Value(numbers[value.id]))
        results = [None if result is None else spell(graph.types[result]) for result in node.results]
        kwargs = sorted((key, encode_argument(argument)) for key, argument in local.kwargs.items())
        text.append([local.target, encode_argument(local.args), kwargs, results, local.structure])
    text.append([numbers[number] for number in piece.outputs])
    return json.dumps(text)


def _extract(piece: _Piece, graph: Graph, name: str) -> Graph:
    numbers = _local_numbers(piece)
    types = {local: graph.types[number] for number, local in numbers.items()}
    nodes = [
        dataclasses.replace(
            node.map_values(lambda value: Value(numbers[value.id])),
            results=tuple(None if result is None else numbers[result] for result in node.results),
        )
        for node in piece.nodes
    ]
    return Graph(name, types, [numbers[n] for n in piece.inputs], nodes, [numbers[n] for n in piece.outputs])


def _fresh_name(class_name: str, taken: set[str]) -> str:
    base = re.sub(r"\W", "_", class_name)
    name, number = base, 0
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    taken.add(name)
    return name
