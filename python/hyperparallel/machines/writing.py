# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machines as text: the dialect's attribute, and YAML with units."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from hyperparallel.machines import units
from hyperparallel.machines.description import Cores, DeviceGroup, Level, Link, Machine, Segment, Tier

# ----------------------------------------------------------------------------------------------------------------------
# The attribute
# ----------------------------------------------------------------------------------------------------------------------


def _number(value: float) -> str:
    """The shortest spelling that MLIR reads as the same number: an exponent comes only after a fraction."""
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    short = next(text for digits in range(18) if float(text := f"{value:.{digits}e}") == value)
    mantissa, _, exponent = short.partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{int(exponent)}"


def _quoted(name: str) -> str:
    """A name as MLIR reads it."""
    escaped = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in name.encode())
    return f'"{escaped}"'


def _part(head: str, *fields: str) -> str:
    return f"<{', '.join([head, *filter(None, fields)])}>"


def _field(key: str, value: float) -> str:
    return f"{key} = {_number(value)}"


def _shared(names: Iterable[str]) -> str:
    listed = ", ".join(map(_quoted, names))
    return listed and f"shared = [{listed}]"


def _cores(cores: Cores) -> str:
    return _part(str(cores.count), _field("gain", cores.gain), _field("cut", cores.cut), _field("wake", cores.wake))


def _group(group: DeviceGroup) -> str:
    return _part(
        f"{_quoted(group.name)} = {group.count}",
        f"memory = {_quoted(group.memory)}",
        _field("launch", group.launch),
        _field("vector", group.vector),
        _field("efficiency", group.efficiency) if group.efficiency != 1 else "",
        _field("packing", group.packing) if group.packing else "",
        f"cache = {_quoted(group.cache)}" if group.cache is not None else "",
        f"cores = {_cores(group.cores)}" if group.cores is not None else "",
        f"rates = [{', '.join(_field(element, rate) for element, rate in group.rates.items())}]",
    )


def _level(level: Level) -> str:
    return _part(
        f"{_quoted(level.name)} = {level.size}",
        _field("latency", level.latency),
        _field("bandwidth", level.bandwidth),
        f"algorithms = [{', '.join(level.algorithms)}]" if level.algorithms else "",
        _shared(level.shared),
    )


def _tier(tier: Tier) -> str:
    return _part(
        f"{_quoted(tier.name)} in {_quoted(tier.scope)}",
        _field("capacity", tier.capacity),
        _field("bandwidth", tier.bandwidth),
        _shared(tier.shared),
    )


def _segment(segment: Segment) -> str:
    return _part(
        f"{_quoted(segment.name)} in {_quoted(segment.scope)}",
        _field("bandwidth", segment.bandwidth),
        f"within = {_quoted(segment.within)}" if segment.within is not None else "",
    )


def _link(link: Link) -> str:
    return _part(
        f"{_quoted(link.source)} -> {_quoted(link.target)}",
        _field("latency", link.latency),
        _field("bandwidth", link.bandwidth),
        _field("staging", link.staging) if link.staging else "",
        _shared(link.shared),
    )


def attribute_text(machine: Machine) -> str:
    """The machine as ``#supernode.machine<...>``, spelled in full.

    Example:
        >>> from hyperparallel import machines
        >>> attribute_text(machines.load("a3-node")).splitlines()[0]
        '#supernode.machine<"a3-node",'
    """
    parts = {
        "groups": map(_group, machine.groups),
        "levels": map(_level, machine.levels),
        "tiers": map(_tier, machine.tiers),
        "segments": map(_segment, machine.segments),
        "links": map(_link, machine.links),
    }
    lines = [f"#supernode.machine<{_quoted(machine.name)}"]
    for key, entries in parts.items():
        listed = ",\n    ".join(entries)
        if listed or key in ("groups", "tiers"):
            lines.append(f"  {key} = [{listed}]")
    return ",\n".join(lines) + ">"


# ----------------------------------------------------------------------------------------------------------------------
# YAML
# ----------------------------------------------------------------------------------------------------------------------

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*( -> [A-Za-z_][A-Za-z0-9_.-]*)?")
_YAML_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


def _yaml_name(name: str) -> str:
    """A name that YAML reads as text; JSON's quoting is also YAML's."""
    return name if _PLAIN.fullmatch(name) and name.lower() not in _YAML_WORDS else json.dumps(name)


def _yaml_names(names: Iterable[str]) -> str:
    listed = ", ".join(map(_yaml_name, names))
    return listed and f"[{listed}]"


def _yaml_lines(entries: Mapping[str, object], indent: str = "") -> list[str]:
    """A mapping of mappings and finished scalars; empty entries are left out."""
    lines: list[str] = []
    for key, value in entries.items():
        if isinstance(value, Mapping):
            if value:
                lines += [f"{indent}{_yaml_name(key)}:", *_yaml_lines(value, indent + "  ")]
        elif value:
            lines.append(f"{indent}{_yaml_name(key)}: {value}")
    return lines


def _yaml_cores(cores: Cores) -> dict[str, object]:
    return {
        "count": str(cores.count),
        "gain": repr(cores.gain),
        "cut": units.spell(cores.cut, units.SECONDS),
        "wake": units.spell(cores.wake, units.SECONDS),
    }


def yaml_text(machine: Machine) -> str:
    """The machine as YAML with units; reads back as the same machine."""
    rate = units.OPERATIONS_PER_SECOND
    tree: dict[str, object] = {
        "name": _yaml_name(machine.name),
        "groups": {
            group.name: {
                "count": str(group.count),
                "memory": _yaml_name(group.memory),
                "launch": units.spell(group.launch, units.SECONDS),
                "vector": units.spell(group.vector, rate),
                "efficiency": repr(group.efficiency),
                "packing": units.spell(group.packing, units.BYTES_PER_SECOND) if group.packing else "",
                "cache": _yaml_name(group.cache) if group.cache is not None else "",
                "cores": _yaml_cores(group.cores) if group.cores is not None else {},
                "rates": {element: units.spell(value, rate) for element, value in group.rates.items()},
            }
            for group in machine.groups
        },
        "levels": {
            level.name: {
                "size": str(level.size),
                "latency": units.spell(level.latency, units.SECONDS),
                "bandwidth": units.spell(level.bandwidth, units.BYTES_PER_SECOND),
                "algorithms": _yaml_names(level.algorithms),
                "shared": _yaml_names(level.shared),
            }
            for level in machine.levels
        },
        "tiers": {
            tier.name: {
                "scope": _yaml_name(tier.scope),
                "capacity": units.spell(tier.capacity, units.BYTES),
                "bandwidth": units.spell(tier.bandwidth, units.BYTES_PER_SECOND),
                "shared": _yaml_names(tier.shared),
            }
            for tier in machine.tiers
        },
        "segments": {
            segment.name: {
                "scope": _yaml_name(segment.scope),
                "bandwidth": units.spell(segment.bandwidth, units.BYTES_PER_SECOND),
                "within": _yaml_name(segment.within) if segment.within is not None else "",
            }
            for segment in machine.segments
        },
        "links": {
            f"{link.source} -> {link.target}": {
                "latency": units.spell(link.latency, units.SECONDS),
                "bandwidth": units.spell(link.bandwidth, units.BYTES_PER_SECOND),
                "staging": units.spell(link.staging, units.BYTES) if link.staging else "",
                "shared": _yaml_names(link.shared),
            }
            for link in machine.links
        },
    }
    return "\n".join(_yaml_lines(tree)) + "\n"


__all__ = ["attribute_text", "yaml_text"]
