# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Brings the nodes of a training step together with the piece that they belong to, and copies what is not worth keeping.

A *piece* is what becomes one function: a block in one phase, or what one module computes outside of blocks.

- ``adopt``: what runs outside of a block on its behalf (casts of its weights) is the block's.
- ``copy_cheap_nodes``: a value that is nothing but a view of another, a cast of a parameter, or a constant, is made again
  in each piece that takes it, so that what is kept from forward to backward is data, once. What simple arithmetic makes
  of values that the backward of a block takes anyway is made again there, too: it is never kept, and where it is read
  it costs no trip to memory, since loops over elements are fused. With recomputing, the backward of a block makes
  everything again from what the block took.
- ``gather_pieces``: reorders nodes so that those of a block are neighbours.

Cost: linear in the nodes (gathering: n log n).
"""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections.abc import Mapping, Sequence

from hyperparallel.enums import StepPhase
from hyperparallel.frontend.graph import KERNEL, Graph, Node, Value

_VIEWS = frozenset(
    f"aten.{name}"
    for name in (
        *("view.default", "permute.default", "expand.default", "unsqueeze.default", "squeeze.dims", "squeeze.dim"),
        *("slice.Tensor", "select.int", "alias.default"),
    )
)
_CONSTANTS = frozenset(
    f"aten.{name}"
    for name in ("full.default", "scalar_tensor.default", "arange.start_step", "empty_strided.default", "empty.default")
)
_CASTS = frozenset({"prims.convert_element_type.default", "aten._to_copy.default"})

#: Functions of elements that take no longer than reading them.
_ARITHMETIC = frozenset(
    f"aten.{name}"
    for name in (
        *(
            "add.Tensor",
            "sub.Tensor",
            "mul.Tensor",
            "div.Tensor",
            "add.Scalar",
            "sub.Scalar",
            "mul.Scalar",
            "div.Scalar",
        ),
        *("rsub.Scalar", "rsub.Tensor", "neg.default", "abs.default", "relu.default", "where.self", "clamp.default"),
        *("clamp_min.default", "clamp_max.default", "maximum.default", "minimum.default", "bitwise_not.default"),
        *(
            "logical_not.default",
            "logical_and.default",
            "logical_or.default",
            "bitwise_and.Tensor",
            "bitwise_or.Tensor",
        ),
        *(f"{name}.{kind}" for name in ("eq", "ne", "lt", "le", "gt", "ge") for kind in ("Scalar", "Tensor")),
    )
)
#: How many of them may stand between a value and what it is made of again.
_LONGEST_CHAIN = 8

Piece = tuple[StepPhase, int, str]


def _piece(node: Node) -> Piece:
    return (node.phase, node.instance, "" if node.instance >= 0 else node.path)


def adopt(graph: Graph, instances: Sequence[str]) -> None:
    """Give nodes that carry a block's path, but no instance, to the first instance of that path."""
    first: dict[str, int] = {}
    for number, path in enumerate(instances):
        first.setdefault(path, number)
    graph.nodes = [
        dataclasses.replace(node, instance=first[node.path]) if node.instance < 0 and node.path in first else node
        for node in graph.nodes
    ]


def copy_cheap_nodes(graph: Graph, *, recompute: bool) -> None:
    """Make cheap values again where they are used, in place of handing them from piece to piece.

    Args:
        graph: Changed in place.
        recompute: The backward of a block makes again whatever its forward made.
    """
    copier = _Copier(graph, recompute)
    for node in graph.nodes:
        copier.add(node)
    graph.nodes = copier.nodes
    graph.remove_dead_nodes()


class _Copier:
    """Writes the nodes of a graph anew, with copies in front of those that need them."""

    def __init__(self, graph: Graph, recompute: bool) -> None:
        self.graph = graph
        self.recompute = recompute
        self.producers = {result: node for node in graph.nodes for result in node.results if result is not None}
        self.free, self.reshapes = _cheap_values(graph, frozenset(graph.inputs))
        self.derived = _derived_values(graph, self.producers, self.free, self.reshapes)
        self.copies: dict[tuple[Piece, int], int] = {}
        self.nodes: list[Node] = []

    def add(self, node: Node) -> None:
        """Append a node, behind copies of what it takes."""
        piece = _piece(node)
        for value in node.values():
            if self._is_copied(value.id, piece):
                self._copy(value.id, piece)
        self.nodes.append(node.map_values(lambda taken: Value(self.copies.get((piece, taken.id), taken.id))))

    def _is_copied(self, value: int, piece: Piece) -> bool:
        producer = self.producers.get(value)
        if producer is None or _piece(producer) == piece:
            return False
        # A gradient comes to the update in the shape of its parameter.
        if value in self.free or (value in self.reshapes and piece[0] is not StepPhase.UPDATE):
            return True
        if value in self.derived.get(piece, ()):
            return True
        return self.recompute and _is_own_forward(producer, piece)

    def _copy(self, value: int, piece: Piece) -> None:
        """Append copies of what makes the value, operands first."""
        waiting = [value]
        while waiting:
            current = waiting[-1]
            if (piece, current) in self.copies:
                waiting.pop()
                continue
            producer = self.producers[current]
            missing = [
                taken.id
                for taken in producer.values()
                if self._is_copied(taken.id, piece) and (piece, taken.id) not in self.copies
            ]
            if missing:
                waiting.extend(missing)
                continue
            waiting.pop()
            self._append_copy(producer, piece)

    def _append_copy(self, producer: Node, piece: Piece) -> None:
        node = producer.map_values(lambda taken: Value(self.copies.get((piece, taken.id), taken.id)))
        results: list[int | None] = []
        for result in producer.results:
            results.append(None if result is None else len(self.graph.types))
            if result is not None:
                self.copies[(piece, result)] = len(self.graph.types)
                self.graph.types[len(self.graph.types)] = self.graph.types[result]
        path = producer.path if piece[1] >= 0 else piece[2]
        self.nodes.append(
            dataclasses.replace(node, results=tuple(results), phase=piece[0], instance=piece[1], path=path)
        )


def _cheap_values(graph: Graph, inputs: frozenset[int]) -> tuple[frozenset[int], frozenset[int]]:
    """Values that come from constants and inputs alone, and reshapes, which keep nothing alive that is larger."""
    free: set[int] = set()
    reshapes: set[int] = set()
    for node in graph.nodes:
        (result, *others) = node.results
        if result is None or others or node.target == KERNEL:
            continue
        taken = [value.id for value in node.values()]
        is_view = node.target in _VIEWS
        if not (is_view or node.target in _CASTS or (node.target in _CONSTANTS and not taken)):
            continue
        if all(number in free or number in inputs for number in taken):
            free.add(result)
        elif is_view and math.prod(graph.types[taken[0]].shape) == math.prod(graph.types[result].shape):
            reshapes.add(result)
    return frozenset(free), frozenset(reshapes)


def _is_own_forward(producer: Node, piece: Piece) -> bool:
    """Whether the piece is the backward of the block in whose forward the node is."""
    is_pair = producer.phase is StepPhase.FORWARD and piece[0] is StepPhase.BACKWARD
    return is_pair and 0 <= producer.instance == piece[1]


def _derived_values(
    graph: Graph, producers: Mapping[int, Node], free: frozenset[int], reshapes: frozenset[int]
) -> dict[Piece, frozenset[int]]:
    """For the backward of each block: what of its forward is made again of other values that it takes."""
    taken: dict[Piece, dict[int, None]] = {}
    for node in graph.nodes:
        if node.phase is not StepPhase.BACKWARD or node.instance < 0:
            continue
        values = taken.setdefault(_piece(node), {})
        for value in node.values():
            values[value.id] = None
            # Of a view, what it is a view of.
            source = value.id
            while source in reshapes and source not in free:
                source = next(producers[source].values()).id
                values[source] = None

    def chain(value: int, piece: Piece) -> frozenset[int]:
        """The value and what lies between it and others that the piece takes; nothing if it is kept."""
        found, waiting = {value}, [value]
        while waiting:
            number = waiting.pop()
            producer = producers.get(number)
            if producer is None or not _is_own_forward(producer, piece):
                return frozenset()
            if not _is_arithmetic(producer) and number not in reshapes:
                return frozenset()
            for operand in producer.values():
                if operand.id not in taken[piece] and operand.id not in free and operand.id not in found:
                    found.add(operand.id)
                    waiting.append(operand.id)
            if len(found) > _LONGEST_CHAIN:
                return frozenset()
        return frozenset(found)

    return {piece: frozenset().union(*(chain(value, piece) for value in values)) for piece, values in taken.items()}


def _is_arithmetic(node: Node) -> bool:
    return len(node.results) == 1 and (node.target in _ARITHMETIC or node.target in _CASTS)


def gather_pieces(graph: Graph) -> None:
    """Reorder the nodes so that those of one block and phase follow each other.

    The order stays what it was as far as that goes. A block that takes what is made outside from its own results cannot
    be one function, and stays in parts.
    """
    groups = [(node.phase, node.instance) if node.instance >= 0 else index for index, node in enumerate(graph.nodes)]
    while True:
        order, stuck = _order(graph, groups)
        if not stuck:
            graph.nodes = [graph.nodes[index] for index in order]
            return
        # The first group of a cycle, in parts.
        broken = groups[min(index for index in stuck if not isinstance(groups[index], int))]
        groups = [index if group == broken else group for index, group in enumerate(groups)]


def _order(graph: Graph, groups: Sequence[tuple[StepPhase, int] | int]) -> tuple[list[int], list[int]]:
    """Node numbers in an order that respects data flow, and those that are in or behind a cycle of groups."""
    members: dict[tuple[StepPhase, int] | int, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    made_by = {
        result: groups[index] for index, node in enumerate(graph.nodes) for result in node.results if result is not None
    }
    followers: dict[tuple[StepPhase, int] | int, set[tuple[StepPhase, int] | int]] = {}
    missing = dict.fromkeys(members, 0)
    for index, node in enumerate(graph.nodes):
        group = groups[index]
        for value in node.values():
            source = made_by.get(value.id)
            if source is None or source == group or group in followers.setdefault(source, set()):
                continue
            followers[source].add(group)
            missing[group] += 1
    ready = [(indices[0], group) for group, indices in members.items() if missing[group] == 0]
    ready_groups = {first: group for first, group in ready}
    heap = [first for first, _ in ready]
    heapq.heapify(heap)
    order: list[int] = []
    while heap:
        group = ready_groups[heapq.heappop(heap)]
        order.extend(members[group])
        for follower in followers.get(group, ()):
            missing[follower] -= 1
            if missing[follower] == 0:
                ready_groups[members[follower][0]] = follower
                heapq.heappush(heap, members[follower][0])
    return order, [index for group, indices in members.items() if missing[group] > 0 for index in indices]
