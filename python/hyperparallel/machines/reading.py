# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machine files: YAML in, a checked :class:`Machine` out, every error with its line.

The file is read as a tree of nodes, so that each value knows its line. Parts are checked as they are read; the
constraints between parts (C1 to C6 of ``#supernode.machine``) follow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import yaml

from hyperparallel.machines import units
from hyperparallel.machines.description import (
    DEVICE,
    Algorithm,
    Cores,
    DeviceGroup,
    Level,
    Link,
    Machine,
    Segment,
    Tier,
)
from hyperparallel.machines.errors import MachineError

_T = TypeVar("_T")
_ELEMENT_TYPE = re.compile(r"(bf16|tf32|f16|f32|f64|f80|f128|f[468]E\d+M\d+[A-Z0-9]*|[su]?i\d+)")
_MOST_DEVICES = 1 << 32


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


@dataclass(frozen=True, slots=True)
class _Value:
    """A value of the file with its place."""

    path: str
    node: yaml.Node

    @property
    def line(self) -> int:
        return self.node.start_mark.line + 1

    def error(self, message: str) -> MachineError:
        return MachineError(message, path=self.path, line=self.line)

    def text(self, what: str) -> str:
        if not isinstance(self.node, yaml.ScalarNode) or not self.node.value:
            raise self.error(f"expected {what}")
        return str(self.node.value)

    def entries(self, what: str) -> dict[str, _Value]:
        """The entries of a mapping; a key given twice is an error."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.error(f"expected {what}")
        result: dict[str, _Value] = {}
        for key_node, value_node in self.node.value:
            key = _Value(self.path, key_node)
            name = key.text("a name as key")
            if name in result:
                raise key.error(f"expected `{name}` once but got it twice")
            result[name] = _Value(self.path, value_node)
        return result

    def items(self, what: str) -> list[_Value]:
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.error(f"expected {what}")
        return [_Value(self.path, node) for node in self.node.value]


class _Fields:
    """The entries of one part, taken one by one; what is not taken is unknown."""

    def __init__(self, what: str, value: _Value, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> None:
        self.what = what
        self.value = value
        self.entries = value.entries(f"{what} to be a mapping with {_listed(required)}")
        known = required + optional
        for key_node, _ in value.node.value:
            if key_node.value not in known:
                raise _Value(value.path, key_node).error(
                    f"unknown key `{key_node.value}` of {what}; expected one of {_listed(known)}"
                )
        missing = [key for key in required if key not in self.entries]
        if missing:
            raise value.error(f"expected {what} to have {_listed(missing)}")

    def __contains__(self, key: str) -> bool:
        return key in self.entries

    def text(self, key: str) -> str:
        return self.entries[key].text(f"`{key}` of {self.what} to be a name")

    def count(self, key: str) -> int:
        value = self.entries[key]
        text = value.text(f"`{key}` of {self.what} to be a whole number")
        if not re.fullmatch(r"[+-]?[0-9]+", text):
            raise value.error(f"expected `{key}` of {self.what} to be a whole number but got `{text}`")
        if int(text) < 1:
            raise value.error(f"expected `{key}` of {self.what} to be at least 1 but got {text}")
        return int(text)

    def quantity(self, key: str, unit: units.Unit, *, zero: bool = False) -> float:
        return _quantity(self.entries[key], f"`{key}` of {self.what}", unit, zero=zero)

    def fraction(self, key: str) -> float:
        value = self.entries[key]
        text = value.text(f"`{key}` of {self.what} to be a number in (0, 1]")
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not 0 < number <= 1:
            raise value.error(f"expected `{key}` of {self.what} to be a number in (0, 1] but got `{text}`")
        return number

    def names(self, key: str) -> tuple[str, ...]:
        if key not in self.entries:
            return ()
        names: list[str] = []
        for item in self.entries[key].items(f"`{key}` of {self.what} to be a list of names"):
            name = item.text(f"a name in `{key}` of {self.what}")
            if name in names:
                raise item.error(f"expected `{key}` of {self.what} to name `{name}` once but got it twice")
            names.append(name)
        return tuple(names)


def _quantity(value: _Value, what: str, unit: units.Unit, *, zero: bool = False) -> float:
    text = value.text(f"{what} to be {unit.what} such as `{unit.example}`")
    try:
        number = units.parse(text, unit)
    except ValueError as error:
        raise value.error(f"{what}: {error}") from None
    if number < 0 or (number == 0 and not zero) or number == float("inf"):
        least = "at least 0" if zero else "positive"
        raise value.error(f"expected {what} to be {least} but got `{text}`")
    return number


def _cores(what: str, value: _Value) -> Cores:
    fields = _Fields(f"the cores of {what}", value, ("count",), ("gain", "cut", "wake"))
    return Cores(
        count=fields.count("count"),
        gain=fields.fraction("gain") if "gain" in fields else 1.0,
        cut=fields.quantity("cut", units.SECONDS, zero=True) if "cut" in fields else 0.0,
        wake=fields.quantity("wake", units.SECONDS, zero=True) if "wake" in fields else 0.0,
    )


def _group(name: str, value: _Value) -> DeviceGroup:
    what = f"group `{name}`"
    required = ("count", "memory", "launch", "vector", "rates")
    fields = _Fields(what, value, required, ("efficiency", "packing", "cache", "cores"))
    rates: dict[str, float] = {}
    for element, rate in (
        fields.entries["rates"].entries(f"`rates` of {what} to be a mapping of types to rates").items()
    ):
        if not _ELEMENT_TYPE.fullmatch(element):
            raise rate.error(f"expected `rates` of {what} to be by element type such as `bf16` but got `{element}`")
        rates[element] = _quantity(rate, f"rate `{element}` of {what}", units.OPERATIONS_PER_SECOND)
    if not rates:
        raise fields.entries["rates"].error(f"expected {what} to have at least one rate")
    return DeviceGroup(
        name=name,
        count=fields.count("count"),
        memory=fields.text("memory"),
        launch=fields.quantity("launch", units.SECONDS, zero=True),
        vector=fields.quantity("vector", units.OPERATIONS_PER_SECOND),
        rates=rates,
        efficiency=fields.fraction("efficiency") if "efficiency" in fields else 1.0,
        packing=fields.quantity("packing", units.BYTES_PER_SECOND) if "packing" in fields else 0.0,
        cache=fields.text("cache") if "cache" in fields else None,
        cores=_cores(what, fields.entries["cores"]) if "cores" in fields else None,
    )


def _level(name: str, value: _Value) -> Level:
    what = f"level `{name}`"
    fields = _Fields(what, value, ("size", "latency", "bandwidth"), ("algorithms", "shared"))
    algorithms: list[Algorithm] = []
    for algorithm in fields.names("algorithms"):
        if algorithm not in list(Algorithm):
            raise fields.entries["algorithms"].error(
                f"expected `algorithms` of {what} to be of {_listed(Algorithm)} but got `{algorithm}`"
            )
        algorithms.append(Algorithm(algorithm))
    return Level(
        name=name,
        size=fields.count("size"),
        latency=fields.quantity("latency", units.SECONDS, zero=True),
        bandwidth=fields.quantity("bandwidth", units.BYTES_PER_SECOND),
        algorithms=tuple(algorithms),
        shared=fields.names("shared"),
    )


def _tier(name: str, value: _Value) -> Tier:
    fields = _Fields(f"tier `{name}`", value, ("scope", "capacity", "bandwidth"), ("shared",))
    return Tier(
        name=name,
        scope=fields.text("scope"),
        capacity=fields.quantity("capacity", units.BYTES),
        bandwidth=fields.quantity("bandwidth", units.BYTES_PER_SECOND),
        shared=fields.names("shared"),
    )


def _segment(name: str, value: _Value) -> Segment:
    fields = _Fields(f"segment `{name}`", value, ("scope", "bandwidth"), ("within",))
    return Segment(
        name=name,
        scope=fields.text("scope"),
        bandwidth=fields.quantity("bandwidth", units.BYTES_PER_SECOND),
        within=fields.text("within") if "within" in fields else None,
    )


def _link(name: str, value: _Value) -> Link:
    ends = [end.strip() for end in name.split("->")]
    if len(ends) != 2 or not all(ends):
        raise value.error(f"expected a link to be called `tier -> tier` but got `{name}`")
    fields = _Fields(f"link `{name}`", value, ("latency", "bandwidth"), ("staging", "shared"))
    return Link(
        source=ends[0],
        target=ends[1],
        latency=fields.quantity("latency", units.SECONDS, zero=True),
        bandwidth=fields.quantity("bandwidth", units.BYTES_PER_SECOND),
        shared=fields.names("shared"),
        staging=fields.quantity("staging", units.BYTES) if "staging" in fields else 0.0,
    )


def _parts(fields: _Fields, key: str, read: Callable[[str, _Value], _T]) -> dict[str, tuple[_Value, _T]]:
    if key not in fields:
        return {}
    entries = fields.entries[key].entries(f"`{key}` to be a mapping of names to their parts")
    return {name: (value, read(name, value)) for name, value in entries.items()}


@dataclass(frozen=True, slots=True)
class _Checks:
    """The constraints between parts."""

    root: _Fields
    levels: Mapping[str, tuple[_Value, Level]]
    tiers: Mapping[str, tuple[_Value, Tier]]
    segments: Mapping[str, tuple[_Value, Segment]]

    def scopes(self) -> None:
        scopes = [DEVICE, *self.levels]
        for value, part in [*self.tiers.values(), *self.segments.values()]:
            if part.scope not in scopes:
                kind = "tier" if isinstance(part, Tier) else "segment"
                raise value.entries("")["scope"].error(
                    f"expected the scope of {kind} `{part.name}` to be one of {_listed(scopes)} but got `{part.scope}`"
                )

    def shared(self, value: _Value, what: str, names: tuple[str, ...]) -> None:
        for name in names:
            if name not in self.segments:
                raise value.entries("")["shared"].error(
                    f"expected {what} to share one of the segments {_listed(self.segments)} but got `{name}`"
                )

    def nesting(self) -> None:
        for name, (value, segment) in self.segments.items():
            seen = [name]
            outer = segment.within
            while outer is not None:
                if outer not in self.segments:
                    within = self.segments[seen[-1]][0].entries("")["within"]
                    raise within.error(
                        f"expected segment `{seen[-1]}` to lie within one of {_listed(self.segments)} but got `{outer}`"
                    )
                if outer in seen:
                    raise value.entries("")["within"].error(
                        f"expected segments not to lie within themselves but got {' -> '.join([*seen, outer])}"
                    )
                seen.append(outer)
                outer = self.segments[outer][1].within

    def devices(self, groups: Iterable[DeviceGroup]) -> None:
        count = sum(group.count for group in groups)
        product = 1
        for _, level in self.levels.values():
            product *= level.size
        where = self.root.entries["levels"] if "levels" in self.root else self.root.entries["groups"]
        if max(count, product) > _MOST_DEVICES:
            raise where.error("expected a machine of at most 2^32 devices")
        if count != product:
            raise where.error(
                f"expected the sizes of the levels to multiply to the {count} devices of the groups but got {product}"
            )


def _checked(fields: _Fields) -> Machine:
    groups = _parts(fields, "groups", _group)
    levels = _parts(fields, "levels", _level)
    tiers = _parts(fields, "tiers", _tier)
    segments = _parts(fields, "segments", _segment)
    links = _parts(fields, "links", _link)
    if not groups:
        raise fields.entries["groups"].error("expected at least one group of devices")
    if DEVICE in levels:
        raise levels[DEVICE][0].error("expected no level to be called `device`, which is the scope of one device")
    checks = _Checks(fields, levels, tiers, segments)
    checks.devices(group for _, group in groups.values())
    checks.scopes()
    checks.nesting()
    for value, group in groups.values():
        if group.memory not in tiers or tiers[group.memory][1].scope != DEVICE:
            raise value.entries("")["memory"].error(
                f"expected the memory of group `{group.name}` to be a tier of scope `device` but got `{group.memory}`"
            )
        if group.cache is not None and group.cache not in tiers:
            raise value.entries("")["cache"].error(
                f"expected the cache of group `{group.name}` to be one of the tiers {_listed(tiers)} "
                f"but got `{group.cache}`"
            )
    for name, (value, tier) in tiers.items():
        checks.shared(value, f"tier `{name}`", tier.shared)
    for name, (value, level) in levels.items():
        checks.shared(value, f"level `{name}`", level.shared)
    seen: set[tuple[str, str]] = set()
    for name, (value, link) in links.items():
        for end in (link.source, link.target):
            if end not in tiers:
                raise value.error(f"expected link `{name}` to join tiers of {_listed(tiers)} but got `{end}`")
        if (link.source, link.target) in seen:
            raise value.error(f"expected link `{link.source} -> {link.target}` once but got it twice")
        seen.add((link.source, link.target))
        checks.shared(value, f"link `{name}`", link.shared)
    return Machine(
        name=fields.text("name"),
        groups=tuple(group for _, group in groups.values()),
        levels=tuple(level for _, level in levels.values()),
        tiers=tuple(tier for _, tier in tiers.values()),
        segments=tuple(segment for _, segment in segments.values()),
        links=tuple(link for _, link in links.values()),
    )


def parse_yaml(text: str, *, path: str = "<text>") -> Machine:
    """Reads a machine from YAML text.

    Args:
        text: The YAML text.
        path: The name to call it by in errors.

    Raises:
        MachineError: The text is no machine; the message has the line and what was expected there.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except RecursionError:
        raise MachineError("expected a machine but got YAML that is nested too deeply", path=path) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        line = mark.line + 1 if mark is not None else None
        raise MachineError(f"expected YAML but got {problem}", path=path, line=line) from None
    if root is None:
        raise MachineError("expected a machine but got an empty file", path=path)
    value = _Value(path, root)
    return _checked(_Fields("the machine", value, ("name", "groups", "tiers"), ("levels", "segments", "links")))


__all__ = ["parse_yaml"]
