# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A machine of more, or fewer, of the same: what a vendor sells in several sizes."""

from __future__ import annotations

import dataclasses

from hyperparallel.machines.description import Machine


def resized(machine: Machine, devices: int) -> Machine:
    """The machine with another number of units of its outermost level.

    What each device and each inner unit has stays; what exists once in the outermost level (a pool of memory, a
    segment) grows or shrinks with it, as each unit brings its part.

    Args:
        machine: One group of devices and at least one level.
        devices: As many as wanted; a multiple of those of an outermost unit.

    Raises:
        ValueError: It cannot have that many; the message says what it can have.

    Example:
        >>> from hyperparallel import machines
        >>> large = resized(machines.load("cloudmatrix384"), 1024)
        >>> large.name, large.num_devices, large.levels[-1].size, large.tier("pool").capacity
        ('cloudmatrix384@1024', 1024, 64, 96000000000000.0)
    """
    if devices == machine.num_devices:
        return machine
    if len(machine.groups) != 1 or not machine.levels:
        raise ValueError(f"expected a machine of one group and at least one level to resize but {machine.name} is none")
    outermost = machine.levels[-1]
    unit = machine.num_devices // outermost.size
    if devices < 1 or devices % unit:
        raise ValueError(
            f"expected a multiple of {unit} devices, which is what a unit of `{outermost.name}` of {machine.name} has, "
            f"but got {devices}"
        )
    factor = devices / machine.num_devices

    def scaled(scope: str, value: float) -> float:
        return value * factor if scope == outermost.name else value

    return dataclasses.replace(
        machine,
        name=f"{machine.name}@{devices}",
        groups=(dataclasses.replace(machine.groups[0], count=devices),),
        levels=(*machine.levels[:-1], dataclasses.replace(outermost, size=devices // unit)),
        tiers=tuple(
            dataclasses.replace(
                tier, capacity=scaled(tier.scope, tier.capacity), bandwidth=scaled(tier.scope, tier.bandwidth)
            )
            for tier in machine.tiers
        ),
        segments=tuple(
            dataclasses.replace(segment, bandwidth=scaled(segment.scope, segment.bandwidth))
            for segment in machine.segments
        ),
    )


__all__ = ["resized"]
