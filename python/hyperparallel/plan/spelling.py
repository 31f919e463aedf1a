# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads layouts from YAML values, Python values and text.

Every spelling that is read:

| spelling | example |
| --- | --- |
| placements, by name | ``[Shard(0)@dp, Replicate()@tp]``, ``Shard(1)@tp``, ``Shard(0)@(dp,tp)`` |
| placements, by position | ``[Shard(0), Replicate()]``, ``Replicate()`` |
| MindSpore | ``Layout((2,2),("dp","tp"))("dp","None")`` |
| axis lists | ``[dp, null]``, ``[[dp, tp], "tp?", "?"]``, ``[{axes: [tp], open: true, priority: 1}, null]`` |
| axes by dimension | ``{0: dp, -1: [tp]}``, with ``open: true``, ``replicated: [x]`` |
| the dialect's text | ``'[{"dp"}, {"tp", ?}p1], replicated={"x"}'`` |
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from hyperparallel.errors import PlanError
from hyperparallel.plan.layouts import AxisRef, DimLayout, TensorLayout
from hyperparallel.plan.specs import Dims, Layout, LayoutSpec, Placement, Placements, Replicate, Shard, SplitLargest

_EXAMPLES = 'such as Shard(0)@dp, [dp, null], {0: dp} or Layout((2,2),("dp","tp"))("dp","None")'
_NAME = re.compile(r"[A-Za-z_]\w*")


def read_layout(value: Any, where: str) -> LayoutSpec:
    """Read one layout.

    Args:
        value: A YAML or Python value, text, a spec, or PyTorch's own placement objects.
        where: What to blame in an error, such as ``gpt2.yaml:7``.

    Raises:
        PlanError: If the value spells no layout, or mixes two spellings.
    """
    if isinstance(value, (Placements, Dims, SplitLargest)):
        return value
    if isinstance(value, str):
        return _read_text(value.strip(), where)
    if isinstance(value, Mapping):
        return _read_mapping(cast("Mapping[Any, Any]", value), where)
    if isinstance(value, Sequence):
        return _read_list(list(cast("Sequence[Any]", value)), where)
    placement = _as_placement(value, where)
    if placement is not None:
        return Placements((placement,))
    raise PlanError(f"{where}: expected a layout, {_EXAMPLES}, but got {value!r}")


def read_sharding_text(text: str, where: str) -> TensorLayout:
    """Read the dialect's text of a sharding (without the mesh), not checked against a mesh."""
    dims = _DialectText(text, where).read()
    return TensorLayout(tuple(layout for _, layout in dims.entries), dims.replicated)


# Placements -----------------------------------------------------------------------------------------------------------


def _as_placement(value: Any, where: str) -> Placement | None:
    """A placement of ours, or PyTorch's own by its class name (torch need not be there)."""
    if isinstance(value, (Shard, Replicate)):
        return value
    kind = type(value).__name__
    if type(value).__module__.split(".")[0] != "torch":
        return None
    if kind == "Shard":
        return Shard(int(value.dim))
    if kind == "Replicate":
        return Replicate()
    raise PlanError(f"{where}: {value} cannot be planned; use Shard(dim) or Replicate()")


def _is_placement(value: Any) -> bool:
    if isinstance(value, str):
        return "(" in value
    return isinstance(value, (Shard, Replicate)) or type(value).__module__.split(".")[0] == "torch"


def _read_list(values: list[Any], where: str) -> LayoutSpec:
    kinds = [_is_placement(value) for value in values]
    if any(kinds) and not all(kinds):
        raise PlanError(
            f"{where}: {_show(values)} mixes placements, one for each mesh axis, with axis names, one "
            "for each dimension; "
            "use one spelling"
        )
    if any(kinds):
        placements: list[Placement] = []
        for value in values:
            spec = read_layout(value, where)
            if not isinstance(spec, Placements):
                raise PlanError(f"{where}: expected Shard(dim) or Replicate() in a list of placements but got {value}")
            placements.extend(spec.items)
        return Placements(tuple(placements))
    dims = [(index, _read_dim(value, where)) for index, value in enumerate(values)]
    return Dims(tuple(dims), rank=len(dims), text=_show(values))


# Axis lists -----------------------------------------------------------------------------------------------------------


def _read_dim(value: Any, where: str) -> DimLayout:
    """One dimension: null, an axis, ``axis?``, ``?``, a list of these, or a mapping."""
    if value is None or value == "None":
        return DimLayout()
    if isinstance(value, Mapping):
        options = {str(key): item for key, item in cast("Mapping[Any, Any]", value).items()}
        unknown = sorted(set(options) - {"axes", "open", "priority"})
        if unknown:
            raise PlanError(f"{where}: unknown key {unknown[0]} of a dimension; expected axes, open or priority")
        base = _read_dim(options.get("axes"), where)
        return _checked_dim(
            base.axes,
            _flag(options.get("open", base.is_open), f"{where}: open"),
            _whole_number(options.get("priority", 0), f"{where}: priority"),
            where,
        )
    parts = [value] if isinstance(value, str) else value
    if not isinstance(parts, Sequence):
        raise PlanError(f"{where}: expected an axis, a list of axes or null for a dimension but got {value!r}")
    axes: list[AxisRef] = []
    is_open = False
    for part in cast("Sequence[Any]", parts):
        if not isinstance(part, str):
            raise PlanError(f"{where}: expected the name of an axis but got {part!r}")
        if is_open:
            raise PlanError(f"{where}: the mark ? of an open dimension comes last, after its axes")
        name = part.strip()
        is_open = name.endswith("?")
        name = name.removesuffix("?").strip()
        if name:
            if not _NAME.fullmatch(name):
                raise PlanError(f"{where}: expected the name of an axis but got {part!r}")
            axes.append(AxisRef(name))
    return _checked_dim(tuple(axes), is_open, 0, where)


def _checked_dim(axes: tuple[AxisRef, ...], is_open: bool, priority: int, where: str) -> DimLayout:
    if priority < 0:
        raise PlanError(f"{where}: expected a priority of 0 or more but got {priority}")
    if priority and not axes and not is_open:
        raise PlanError(f"{where}: a closed dimension without axes has no priority; open it or leave the priority out")
    return DimLayout(axes, is_open, priority)


def _read_mapping(value: Mapping[Any, Any], where: str) -> Dims:
    """Axes by dimension, with ``open``, ``priority`` and ``replicated`` beside them."""
    entries: list[tuple[int, DimLayout]] = []
    default = DimLayout()
    priority = 0
    replicated: tuple[AxisRef, ...] = ()
    for key, item in value.items():
        if isinstance(key, int) and not isinstance(key, bool):
            entries.append((key, _read_dim(item, where)))
        elif isinstance(key, str) and key.lstrip("-").isdigit():
            entries.append((int(key), _read_dim(item, where)))
        elif key == "open":
            default = DimLayout(is_open=_flag(item, f"{where}: open"))
        elif key == "priority":
            priority = _whole_number(item, f"{where}: priority")
        elif key == "replicated":
            replicated = _read_dim(item, where).axes
        else:
            raise PlanError(
                f"{where}: unknown key {key!r} of a layout; expected dimensions (0, 1, -1 ...), open, "
                "priority or replicated"
            )
    if priority:
        entries = [(dim, _checked_dim(item.axes, item.is_open, priority, where)) for dim, item in entries]
    return Dims(tuple(entries), replicated=replicated, default=default, text=_show(value))


def _flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise PlanError(f"{where}: expected true or false but got {value!r}")
    return value


def _whole_number(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise PlanError(f"{where}: expected a whole number but got {value!r}")
    return value


def _show(value: Any) -> str:
    """A value as a person would write it in YAML's one-line form."""
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(f"{_show(key)}: {_show(item)}" for key, item in cast("Mapping[Any, Any]", value).items())
            + "}"
        )
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_show(item) for item in cast("Sequence[Any]", value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


# Text -----------------------------------------------------------------------------------------------------------------


def _read_text(text: str, where: str) -> LayoutSpec:
    if "{" in text:
        return _DialectText(text, where).read()
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        raise PlanError(f"{where}: expected a layout, {_EXAMPLES}, but got {text!r}") from None
    return _Expression(text, where).read(node)


class _Expression:
    """Layouts as Python expressions; nothing is evaluated, the syntax tree is read."""

    def __init__(self, text: str, where: str) -> None:
        self.text = text
        self.where = where

    def error(self, what: str) -> PlanError:
        return PlanError(f"{self.where}: {what} in {self.text}")

    def read(self, node: ast.expr) -> LayoutSpec:
        if isinstance(node, (ast.List, ast.Tuple)) and node.elts:
            return Placements(tuple(self.placement(item) for item in node.elts))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Call):
            return self.layout(node.func)(*[self.entry(item) for item in node.args])
        if isinstance(node, (ast.BinOp, ast.Call)):
            return Placements((self.placement(node),))
        raise PlanError(f"{self.where}: expected a layout, {_EXAMPLES}, but got {self.text!r}")

    def placement(self, node: ast.expr) -> Placement:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            placement = self.placement(node.left)
            if placement.axes:
                raise self.error("the axis is named twice")
            names = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
            return placement @ tuple(self.name(item) for item in names)
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.keywords:
            raise self.error("expected Shard(dim) or Replicate()")
        kind, args = node.func.id, node.args
        if kind == "Replicate" and not args:
            return Replicate()
        if kind == "Shard" and len(args) == 1:
            return Shard(self.integer(args[0]))
        if kind == "Partial":
            raise self.error(
                "a plan cannot ask for Partial(): partial values arise inside the program; use "
                "Replicate() or Shard(dim)"
            )
        raise self.error("expected Shard(dim) or Replicate()")

    def layout(self, node: ast.Call) -> Layout:
        if not isinstance(node.func, ast.Name) or node.func.id != "Layout":
            raise self.error("expected Layout(device_matrix, alias_name)(...)")
        parts: dict[str, ast.expr] = dict(zip(("device_matrix", "alias_name", "rank_list"), node.args, strict=False))
        parts.update({keyword.arg or "": keyword.value for keyword in node.keywords})
        if len(node.args) > 3 or not {"device_matrix", "alias_name"} <= set(parts) <= {
            "device_matrix",
            "alias_name",
            "rank_list",
        }:
            raise self.error("expected Layout(device_matrix, alias_name) with an optional rank_list")
        ranks = parts.get("rank_list")
        return Layout(
            tuple(self.integer(item) for item in self.items(parts["device_matrix"])),
            tuple(self.name(item) for item in self.items(parts["alias_name"])),
            tuple(self.integer(item) for item in self.items(ranks)) if ranks is not None else (),
        )

    def items(self, node: ast.expr) -> list[ast.expr]:
        if not isinstance(node, (ast.Tuple, ast.List)):
            raise self.error("expected a tuple, such as (2, 2) or (4,),")
        return node.elts

    def entry(self, node: ast.expr) -> str | tuple[str, ...]:
        if isinstance(node, (ast.Tuple, ast.List)):
            return tuple(self.name(item) for item in node.elts)
        return self.name(node)

    def name(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Constant) and (isinstance(node.value, str) or node.value is None):
            return str(node.value)
        raise self.error("expected the name of an axis")

    def integer(self, node: ast.expr) -> int:
        try:
            value: object = ast.literal_eval(node)
        except ValueError:
            value = None
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error("expected a whole number")
        return value


_TOKEN = re.compile(r'\s*(?:"(?P<name>[^"]+)"|(?P<word>replicated)|(?P<number>\d+)|(?P<mark>p(?=\d)|[\[\]{}(),:?=]))')


class _DialectText:
    """The text of ``#hypershard.sharding`` without the mesh: ``[{"dp"}, {"tp", ?}p1], replicated={"x"}``."""

    def __init__(self, text: str, where: str) -> None:
        self.text = text
        self.where = where
        self.tokens: list[str] = []
        position = 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if not match:
                raise self.error(text[position:].strip() or "the end")
            name = match.group("name")
            self.tokens.append(f'"{name}' if name else match.group().strip())
            position = match.end()
        self.next = 0

    def error(self, got: str) -> PlanError:
        return PlanError(
            f'{self.where}: expected a layout such as [{{"dp"}}, {{"tp", ?}}] but got {self.text!r} (at {got})'
        )

    def peek(self) -> str:
        return self.tokens[self.next] if self.next < len(self.tokens) else "the end"

    def take(self, *wanted: str) -> str:
        token = self.peek()
        if wanted and token not in wanted:
            raise self.error(token)
        self.next += 1
        return token

    def number(self) -> int:
        if not self.peek().isdigit():
            raise self.error(self.peek())
        return int(self.take())

    def axis(self) -> AxisRef:
        token = self.take()
        if not token.startswith('"'):
            raise self.error(token)
        if self.peek() != ":":
            return AxisRef(token[1:])
        self.take(":")
        self.take("(")
        pre = self.number()
        self.take(")")
        size = self.number()
        if pre < 1 or size < 2:
            raise PlanError(
                f"{self.where}: sub-axis {token[1:]}:({pre}){size} needs a pre-size of at least 1 and a "
                "size of at least 2"
            )
        return AxisRef(token[1:], pre, size)

    def braces(self) -> tuple[list[AxisRef], bool]:
        axes: list[AxisRef] = []
        self.take("{")
        while self.peek() != "}":
            if self.peek() == "?":
                self.take()
                self.take("}")
                return axes, True
            axes.append(self.axis())
            if self.peek() != "}":
                self.take(",")
        self.take("}")
        return axes, False

    def read(self) -> Dims:
        entries: list[tuple[int, DimLayout]] = []
        replicated: list[AxisRef] = []
        self.take("[")
        while self.peek() != "]":
            axes, is_open = self.braces()
            priority = 0
            if self.peek() == "p":
                self.take()
                priority = self.number()
            entries.append((len(entries), _checked_dim(tuple(axes), is_open, priority, self.where)))
            if self.peek() != "]":
                self.take(",")
        self.take("]")
        if self.peek() == ",":
            self.take()
            self.take("replicated")
            self.take("=")
            replicated, is_open = self.braces()
            if is_open:
                raise self.error("?")
        if self.next < len(self.tokens):
            raise self.error(self.peek())
        return Dims(tuple(entries), rank=len(entries), replicated=tuple(replicated), text=self.text)
