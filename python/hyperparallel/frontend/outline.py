# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Turns the repeated blocks of a flat graph into functions: one for all blocks that are the same.

1. The nodes that ran inside one call of a block are neighbours in the flat graph. What they take from outside are the
   function's inputs (activations first, then parameters and buffers, each in the order of first use); what others take
   from them are its outputs.
2. Blocks are the same when these pieces are equal, node by node: operators, arguments, data flow, shapes and element
   types. Nothing is assumed about modules of the same class: the comparison is on what was traced, in full.
3. Each distinct piece becomes a graph of its own; each block becomes one ``hp.call`` of it.

Cost: linear in the nodes.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence
from typing import Any

from hyperparallel.frontend.graph import CALL, Graph, Node, TensorType, Value, encode_argument


@dataclasses.dataclass(frozen=True, slots=True)
class _Piece:
    """The nodes of one block call, and what crosses their border."""

    instance: int
    start: int
    nodes: list[Node]
    inputs: list[int]
    outputs: list[int]


def outline_blocks(
    graph: Graph, instances: Sequence[tuple[str, str]], *, is_state: Sequence[int]
) -> tuple[Graph, list[Graph]]:
    """Split ``graph`` into a main graph and one graph for each distinct block.

    Args:
        graph: A flat graph whose nodes carry block instances.
        instances: Module path and class name of every instance.
        is_state: The graph inputs that are parameters or buffers.

    Returns:
        The main graph, whose ``hp.call`` nodes carry the block's path, and the functions that it calls.
    """
    pieces = _find_pieces(graph, frozenset(is_state))
    functions: dict[str, Graph] = {}
    taken = {graph.name}
    main: list[Node] = []
    position = 0
    for piece in pieces:
        main.extend(graph.nodes[position : piece.start])
        position = piece.start + len(piece.nodes)
        path, class_name = instances[piece.instance]
        key = _canonical_text(piece, graph, frozenset(is_state))
        function = functions.get(key)
        if function is None:
            function = functions[key] = _extract(piece, graph, _fresh_name(class_name, taken))
        arguments = tuple(Value(number) for number in piece.inputs)
        results: tuple[int | None, ...] = tuple(piece.outputs)
        main.append(Node(CALL, arguments, {"callee": function.name}, results, "tuple", path, piece.instance))
    main.extend(graph.nodes[position:])
    kept = {*graph.inputs, *(result for node in main for result in node.results if result is not None)}
    types = {number: type_ for number, type_ in graph.types.items() if number in kept}
    return Graph(graph.name, types, graph.inputs, main, graph.outputs), list(functions.values())


def _find_pieces(graph: Graph, state: frozenset[int]) -> list[_Piece]:
    """Cut out every block whose nodes are neighbours; others stay where they are."""
    spans: dict[int, list[int]] = {}
    last_use: dict[int, int] = dict.fromkeys(graph.outputs, len(graph.nodes))
    for index, node in enumerate(graph.nodes):
        if node.instance >= 0:
            spans.setdefault(node.instance, []).append(index)
        for value in node.values():
            last_use[value.id] = max(last_use.get(value.id, -1), index)
    pieces: list[_Piece] = []
    for instance, indices in sorted(spans.items(), key=lambda item: item[1][0]):
        start, end = indices[0], indices[-1] + 1
        if end - start != len(indices):
            continue
        nodes = graph.nodes[start:end]
        made = {result for node in nodes for result in node.results if result is not None}
        taken = dict.fromkeys(value.id for node in nodes for value in node.values() if value.id not in made)
        inputs = [number for number in taken if number not in state] + [number for number in taken if number in state]
        outputs = [
            result
            for node in nodes
            for result in node.results
            if result is not None and last_use.get(result, -1) >= end
        ]
        pieces.append(_Piece(instance, start, nodes, inputs, outputs))
    return pieces


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
