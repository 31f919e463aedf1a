# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Removes from a traced graph what has no meaning in a pure program.

Copies, identity reshapes, products with one, assertions on metadata: tracing leaves many of them, and every one would
become an operation that later passes have to see through. What stays computes bit for bit the same values.
"""

from __future__ import annotations

import dataclasses

from hyperparallel.errors import ImportModelError
from hyperparallel.frontend.graph import KERNEL, Argument, Graph, Node, Opaque, TensorType, Value
from hyperparallel.frontend.indexed import SCATTER_ADD
from hyperparallel.frontend.kernels import KernelName

_SAME_VALUES = frozenset(
    {
        "aten.alias.default",
        "aten.clone.default",
        "aten.detach.default",
        "aten.lift_fresh.default",
        "aten.lift_fresh_copy.default",
    }
)
_RESHAPES = frozenset({"aten.view.default", "aten._unsafe_view.default", "aten.reshape.default", "aten.expand.default"})
_VIEWS = frozenset({"aten.view.default", "aten.expand.default", "aten.permute.default", "aten.unsqueeze.default"})
_FILLS = {
    "aten.full.default": None,
    "aten.full_like.default": None,
    "aten.zeros_like.default": 0,
    "aten.ones_like.default": 1,
}
_KERNELS = {
    "aten.cumsum.default": KernelName.CUMULATIVE_SUM,
    "aten.amax.default": KernelName.MAXIMUM,
    "aten.amin.default": KernelName.MINIMUM,
}


def simplify(graph: Graph, *, random: frozenset[str]) -> None:
    """Simplify ``graph`` in place.

    Args:
        graph: A traced graph.
        random: The operators that draw random numbers.

    Raises:
        ImportModelError: A result depends on random numbers.
    """
    renamed: dict[int, Value] = {}

    def current(value: Value) -> Value:
        return renamed.get(value.id, value)

    fills: dict[int, Node] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        node = node.map_values(current)
        same = _forwarded(node, graph)
        if same is not None:
            result = node.results[0]
            assert result is not None
            renamed[result] = same
        else:
            node = _normalized(node, graph)
            node = _with_fills(node, graph, fills)
            nodes.append(node)
    graph.nodes = nodes
    graph.outputs = [current(Value(output)).id for output in graph.outputs]
    graph.remove_dead_nodes()
    for node in graph.nodes:
        if node.target in random:
            raise ImportModelError(
                f"{node.path or 'the model'} draws random numbers ({node.target}); "
                "a training may draw them in torch.nn.Dropout and functional.dropout, and nothing else may; call "
                "module.eval(), or set its p to 0 where the rest of the module trains",
                op=node.target,
                module_path=node.path or None,
            )


def _with_fills(node: Node, graph: Graph, fills: dict[int, Node]) -> Node:
    """A view of a fill is a fill; and what adds to zeros makes them itself."""
    (result, *_) = node.results
    if node.target in _VIEWS and result is not None and node.args[0].id in fills:
        fill = fills[node.args[0].id]
        shape = graph.types[result].shape
        node = dataclasses.replace(node, target=fill.target, args=(shape, fill.args[1]), kwargs=fill.kwargs)
    if node.target == "aten.full.default" and result is not None:
        fills[result] = node
    if node.kwargs.get("kernel") == KernelName.SCATTER_ADD and node.args[2].id in fills:
        fill = fills[node.args[2].id]
        if fill.args[1] == 0:
            node = dataclasses.replace(node, args=node.args[:2])
    return node


def _type(argument: Argument, graph: Graph) -> TensorType | None:
    return graph.types[argument.id] if isinstance(argument, Value) else None


def _forwarded(node: Node, graph: Graph) -> Value | None:
    """Return the argument whose elements are the node's result, where there is one."""
    if node.structure != "single" or not node.args or not isinstance(node.args[0], Value) or node.results[0] is None:
        return None
    first = node.args[0]
    before, after = graph.types[first.id], graph.types[node.results[0]]
    if (before.shape, before.dtype) != (after.shape, after.dtype):
        return None
    if node.target in _SAME_VALUES or node.target in _RESHAPES or node.target == "prims.convert_element_type.default":
        return first
    if node.target == "aten.permute.default" and node.args[1] == tuple(range(len(before.shape))):
        return first
    scalar = node.args[1] if len(node.args) == 2 and not node.kwargs else None
    if isinstance(scalar, bool) or not isinstance(scalar, int | float):
        return None
    if node.target in ("aten.mul.Tensor", "aten.div.Tensor") and scalar == 1:
        return first
    if (
        node.target in ("aten.add.Tensor", "aten.sub.Tensor")
        and scalar == 0
        and before.dtype.startswith(("int", "uint"))
    ):
        return first
    return None


def _normalized(node: Node, graph: Graph) -> Node:
    """Spell a node in the form that the rest of the import expects."""
    result = graph.types[node.results[0]] if node.results and node.results[0] is not None else None
    if node.target in _RESHAPES and result is not None:
        target = "aten.view.default" if node.target != "aten.expand.default" else node.target
        return dataclasses.replace(node, target=target, args=(node.args[0], result.shape), kwargs={})
    if node.target in _FILLS and result is not None:
        fill = _FILLS[node.target]
        value = node.args[1] if fill is None else fill
        if isinstance(value, bool) and result.dtype != "bool":
            value = int(value)
        return dataclasses.replace(
            node,
            target="aten.full.default",
            args=(result.shape, value),
            kwargs={"dtype": Opaque("dtype", result.dtype)},
        )
    if node.target == SCATTER_ADD:
        return dataclasses.replace(node, target=KERNEL, kwargs={"kernel": KernelName.SCATTER_ADD, "dims": ()})
    if node.target in _KERNELS and result is not None:
        source = _type(node.args[0], graph)
        assert source is not None
        if not source.shape:
            return dataclasses.replace(
                node,
                target="prims.convert_element_type.default",
                args=(node.args[0], Opaque("dtype", result.dtype)),
                kwargs={},
            )
        rank = len(source.shape)
        along = node.args[1] if len(node.args) > 1 else ()
        dims = tuple(dim % rank for dim in (along if isinstance(along, tuple) else (along,))) or tuple(range(rank))
        return dataclasses.replace(
            node, target=KERNEL, args=node.args[:1], kwargs={"kernel": _KERNELS[node.target], "dims": dims}
        )
    return node
