# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads plan files (YAML, of which JSON is a part), with the line of every rule for messages.

mesh: {dp: 2, tp: 2}            # optional: --mesh may give it, and wins; an axis pp makes groups, see plan/groups.py
device_ids: [0, 1, 3, 2]        # optional: the physical device at each position
preset: megatron                # optional: or {name: megatron, data: [dp], tensor: [tp], fsdp: true}
shard:                          # rules; the last that matches a tensor holds
"**.mlp.c_fc.weight": Shard(1)@tp
"parameter:**": {store: {0: dp}, use: Replicate()}
offload:                        # where parameters and buffers live between steps
place: {"**.mlp.*.weight": pool}
keep: ["**.ln_*.*"]
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import yaml

from hyperparallel.errors import PlanError
from hyperparallel.plan.groups import KEYS as GROUP_KEYS
from hyperparallel.plan.groups import Groups, read_groups
from hyperparallel.plan.mesh import Mesh
from hyperparallel.plan.placement import Placement, read_placements
from hyperparallel.plan.presets import Preset, read_preset
from hyperparallel.plan.rules import Rule
from hyperparallel.plan.spelling import read_layout

_KEYS = ("mesh", "device_ids", *GROUP_KEYS, "preset", "shard", "offload")


#: Mesh, preset, rules, placements and device groups.
Document = tuple[Mesh | None, Preset | None, tuple[Rule, ...], tuple[Placement, ...], Groups | None]


def read_document(path: str | Path) -> Document:
    """Mesh, preset, rules, placements and device groups of a plan file.

    Raises:
        PlanError: If the file cannot be read or is no plan; the message names file and line.
    """
    name = str(path)
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise PlanError(f"{name}: there is no such plan file") from None
    except IsADirectoryError:
        raise PlanError(f"{name}: expected a plan file but this is a directory") from None
    except OSError as error:
        raise PlanError(f"{name}: the plan file cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise PlanError(f"{name}: expected a plan in YAML but this is not text") from None
    return read_text(text, name)


def read_text(text: str, name: str = "plan") -> Document:
    """Mesh, preset, rules, placements and device groups of a plan's text; ``name`` stands for the file in messages."""
    loader: yaml.SafeLoader | None = None
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        entries = _entries(loader, root, name)
        _refuse_twice(root, name)
        sections: dict[str, tuple[Any, str]] = {}
        for key, node, line in entries:
            where = f"{name}:{line}"
            if key not in _KEYS:
                raise PlanError(f"{where}: unknown key {key!r} of a plan; expected {', '.join(_KEYS)}")
            sections[key] = (node, where)
        mesh = _read_mesh(loader, sections)
        said = [key for key in GROUP_KEYS if key in sections]
        origin = sections[said[0]][1] if said else name
        groups = read_groups({key: _value(loader, sections[key][0]) for key in said}, mesh, origin)
        preset = None
        if "preset" in sections:
            node, where = sections["preset"]
            preset = read_preset(_value(loader, node), where)
        rules: list[Rule] = []
        if "shard" in sections:
            node, where = sections["shard"]
            for pattern, value, line in _entries(loader, node, name, what="shard: rules as pattern: layout"):
                rules.append(read_rule(pattern, _value(loader, value), f"{name}:{line}"))
        placements: tuple[Placement, ...] = ()
        if "offload" in sections:
            node, where = sections["offload"]
            placements = read_placements(_value(loader, node), where)
    except yaml.YAMLError as error:
        raise PlanError(f"{name}{_line_of(error)}: malformed YAML: {_problem(error)}") from None
    except RecursionError:
        raise PlanError(f"{name}: malformed YAML: it is nested too deeply") from None
    finally:
        if loader is not None:
            loader.dispose()
    if preset is None and not rules and not placements and groups is None:
        raise PlanError(f"{name}: the plan says nothing: expected a preset, or rules under shard")
    return mesh, preset, tuple(rules), placements, groups


def read_rule(pattern: str, value: Any, origin: str) -> Rule:
    """One rule: a layout, or ``{store: layout, use: layout}``."""
    if not pattern:
        raise PlanError(f"{origin}: expected a pattern but got an empty one")
    where = f"{origin}: rule {pattern!r}"
    if isinstance(value, Mapping) and ({"store", "use"} & set(cast("Mapping[Any, Any]", value))):
        options = dict(cast("Mapping[Any, Any]", value))
        unknown = sorted(str(key) for key in set(options) - {"store", "use"})
        if unknown:
            raise PlanError(f"{where}: {unknown[0]!r} stands beside store or use; put it inside one of them")
        if "store" not in options:
            raise PlanError(f"{where}: a use layout needs a store layout beside it")
        use = read_layout(options["use"], where) if "use" in options else None
        return Rule(pattern, read_layout(options["store"], where), use, origin)
    return Rule(pattern, read_layout(value, where), None, origin)


def _read_mesh(loader: yaml.SafeLoader, sections: Mapping[str, tuple[Any, str]]) -> Mesh | None:
    if "mesh" not in sections:
        if "device_ids" in sections:
            raise PlanError(f"{sections['device_ids'][1]}: device_ids needs a mesh beside it")
        return None
    node, where = sections["mesh"]
    value = _value(loader, node)
    ids: Any = ()
    if "device_ids" in sections:
        ids = _value(loader, sections["device_ids"][0])
        if not isinstance(ids, list) or not all(type(item) is int for item in cast("list[Any]", ids)):
            raise PlanError(f"{sections['device_ids'][1]}: expected a list of device numbers but got {ids!r}")
    try:
        if isinstance(value, str):
            value = dict(Mesh.parse(value).axes)
        if not isinstance(value, dict):
            raise PlanError(f"mesh: expected axes with sizes, such as {{dp: 2, tp: 2}}, but got {value!r}")
        axes = tuple((str(axis), size) for axis, size in cast("dict[Any, Any]", value).items())
        return Mesh(axes, tuple(cast("list[int]", ids)))
    except PlanError as error:
        raise PlanError(f"{where}: {error}", constraint=error.constraint) from None


def _entries(
    loader: yaml.SafeLoader, node: Any, name: str, what: str = "a plan: mesh, groups, preset, shard, offload"
) -> list[tuple[str, Any, int]]:
    """Key, value node and line of a mapping; duplicates are refused."""
    if node is None:
        raise PlanError(f"{name}: expected {what}, but the file is empty")
    if not isinstance(node, yaml.MappingNode):
        raise PlanError(f"{name}:{node.start_mark.line + 1}: expected {what}, but got {_kind(node)}")
    seen: dict[str, int] = {}
    entries: list[tuple[str, Any, int]] = []
    for key_node, value_node in cast("list[tuple[Any, Any]]", node.value):
        line = int(key_node.start_mark.line) + 1
        key = str(_value(loader, key_node))
        if key in seen:
            raise PlanError(f"{name}:{line}: {key!r} is written twice (first on line {seen[key]})")
        seen[key] = line
        entries.append((key, value_node, line))
    return entries


def _refuse_twice(node: Any, name: str) -> None:
    """Refuse a mapping, however deep, of which a key is written twice: YAML would keep the last one alone."""
    if isinstance(node, yaml.SequenceNode):
        for one in cast("list[Any]", node.value):
            _refuse_twice(one, name)
    if not isinstance(node, yaml.MappingNode):
        return
    seen: dict[str, int] = {}
    for key, value in cast("list[tuple[Any, Any]]", node.value):
        if isinstance(key, yaml.ScalarNode):
            line = int(key.start_mark.line) + 1
            if key.value in seen:
                raise PlanError(f"{name}:{line}: {key.value!r} is written twice (first on line {seen[key.value]})")
            seen[key.value] = line
        _refuse_twice(value, name)


def _value(loader: yaml.SafeLoader, node: Any) -> Any:
    construct: Any = loader.construct_object  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return construct(node, deep=True)


def _kind(node: Any) -> str:
    return "a list" if isinstance(node, yaml.SequenceNode) else f"{node.value!r}"


def _line_of(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return f":{mark.line + 1}" if mark is not None else ""


def _problem(error: yaml.YAMLError) -> str:
    parts = [getattr(error, "context", None), getattr(error, "problem", None)]
    text = ", ".join(str(part) for part in parts if part)
    return text or str(error).splitlines()[0]
