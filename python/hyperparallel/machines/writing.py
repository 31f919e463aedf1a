# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machines as text: the dialect's attribute, YAML, and a table for people."""

from __future__ import annotations

import json
from collections.abc import Iterable

from hyperparallel.machines import units
from hyperparallel.machines.description import Machine


def _number(value: float) -> str:
    """The shortest spelling that MLIR reads as the same number."""
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    mantissa, _, exponent = repr(value).partition("e")
    if not exponent:
        mantissa, _, exponent = f"{value:.17e}".partition("e")
        for digits in range(17):
            short = f"{value:.{digits}e}"
            if float(short) == value:
                mantissa, _, exponent = short.partition("e")
                break
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}e{int(exponent)}"


def _names(key: str, names: Iterable[str], *, quoted: bool = True) -> str:
    listed = ", ".join(f'"{name}"' if quoted else name for name in names)
    return f", {key} = [{listed}]" if listed else ""


def attribute_text(machine: Machine) -> str:
    """The machine as ``#supernode.machine<...>``, spelled in full.

    Example:
        >>> from hyperparallel import machines
        >>> attribute_text(machines.load("a3-node")).splitlines()[0]
        '#supernode.machine<"a3-node",'
    """
    groups = [
        f'<"{group.name}" = {group.count}, memory = "{group.memory}", launch = {_number(group.launch)}, '
        f"vector = {_number(group.vector)}"
        + (f", efficiency = {_number(group.efficiency)}" if group.efficiency != 1 else "")
        + f", rates = [{', '.join(f'{element} = {_number(rate)}' for element, rate in group.rates.items())}]>"
        for group in machine.groups
    ]
    levels = [
        f'<"{level.name}" = {level.size}, latency = {_number(level.latency)}, bandwidth = {_number(level.bandwidth)}'
        + _names("algorithms", level.algorithms, quoted=False)
        + _names("shared", level.shared)
        + ">"
        for level in machine.levels
    ]
    tiers = [
        f'<"{tier.name}" in "{tier.scope}", capacity = {_number(tier.capacity)}, bandwidth = {_number(tier.bandwidth)}>'
        for tier in machine.tiers
    ]
    segments = [
        f'<"{segment.name}" in "{segment.scope}", bandwidth = {_number(segment.bandwidth)}'
        + (f', within = "{segment.within}"' if segment.within is not None else "")
        + ">"
        for segment in machine.segments
    ]
    links = [
        f'<"{link.source}" -> "{link.target}", latency = {_number(link.latency)}, bandwidth = {_number(link.bandwidth)}'
        + _names("shared", link.shared)
        + ">"
        for link in machine.links
    ]
    parts = {"groups": groups, "levels": levels, "tiers": tiers, "segments": segments, "links": links}
    lines = [f'#supernode.machine<"{machine.name}"']
    lines += [f"  {key} = [{(',' + chr(10) + '    ').join(entries)}]" for key, entries in parts.items() if entries]
    return ",\n".join(lines) + ">"


def _yaml_name(name: str) -> str:
    plain = name.replace(" -> ", "").replace("-", "").replace("_", "").replace(".", "")
    return name if plain.isalnum() and not plain[0].isdigit() and name.lower() not in _YAML_WORDS else json.dumps(name)


_YAML_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


def yaml_text(machine: Machine) -> str:
    """The machine as YAML with units; reads back as the same machine."""
    lines = [f"name: {_yaml_name(machine.name)}", "groups:"]
    for group in machine.groups:
        lines += [
            f"  {_yaml_name(group.name)}:",
            f"    count: {group.count}",
            f"    memory: {_yaml_name(group.memory)}",
            f"    launch: {units.spell(group.launch, units.SECONDS)}",
            f"    vector: {units.spell(group.vector, units.OPERATIONS_PER_SECOND)}",
            f"    efficiency: {group.efficiency!r}",
            "    rates:",
            *(f"      {element}: {units.spell(rate, units.OPERATIONS_PER_SECOND)}" for element, rate in group.rates.items()),
        ]
    if machine.levels:
        lines.append("levels:")
    for level in machine.levels:
        lines += [
            f"  {_yaml_name(level.name)}:",
            f"    size: {level.size}",
            f"    latency: {units.spell(level.latency, units.SECONDS)}",
            f"    bandwidth: {units.spell(level.bandwidth, units.BYTES_PER_SECOND)}",
        ]
        if level.algorithms:
            lines.append(f"    algorithms: [{', '.join(level.algorithms)}]")
        if level.shared:
            lines.append(f"    shared: [{', '.join(map(_yaml_name, level.shared))}]")
    lines.append("tiers:")
    for tier in machine.tiers:
        lines += [
            f"  {_yaml_name(tier.name)}:",
            f"    scope: {_yaml_name(tier.scope)}",
            f"    capacity: {units.spell(tier.capacity, units.BYTES)}",
            f"    bandwidth: {units.spell(tier.bandwidth, units.BYTES_PER_SECOND)}",
        ]
    if machine.segments:
        lines.append("segments:")
    for segment in machine.segments:
        lines += [
            f"  {_yaml_name(segment.name)}:",
            f"    scope: {_yaml_name(segment.scope)}",
            f"    bandwidth: {units.spell(segment.bandwidth, units.BYTES_PER_SECOND)}",
        ]
        if segment.within is not None:
            lines.append(f"    within: {_yaml_name(segment.within)}")
    if machine.links:
        lines.append("links:")
    for link in machine.links:
        lines += [
            f"  {_yaml_name(f'{link.source} -> {link.target}')}:",
            f"    latency: {units.spell(link.latency, units.SECONDS)}",
            f"    bandwidth: {units.spell(link.bandwidth, units.BYTES_PER_SECOND)}",
        ]
        if link.shared:
            lines.append(f"    shared: [{', '.join(map(_yaml_name, link.shared))}]")
    return "\n".join(lines) + "\n"


__all__ = ["attribute_text", "yaml_text"]
