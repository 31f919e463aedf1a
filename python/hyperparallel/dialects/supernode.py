# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Supernode: what the machine is, and tasks that are known by their time only.

``machine_attr`` turns a description (``hyperparallel.machines``) into the attribute, ``machine`` turns it back, and
``set_machine`` and ``machine_of`` put it on a module, where the compiler looks for it, and read it there. The attribute
classes are for whoever builds machines by hand. ``task`` builds an opaque task.

>>> from mlir import ir
>>> with ir.Context(), ir.Location.unknown():
...     module = ir.Module.create()
...     set_machine(module, "a3-node")
...     print(module.operation.attributes[MACHINE], machine_of(module).num_devices)
#supernode.machine<preset = "a3-node"> 16
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from mlir import ir

from hyperparallel import machines
from hyperparallel._hyperparallel import (
    CoresAttr,
    DeviceGroupAttr,
    LevelAttr,
    LinkAttr,
    MachineAttr,
    RateAttr,
    SegmentAttr,
    TierAttr,
)
from hyperparallel.dialects import _supernode_ops_gen as ops

MACHINE = "supernode.machine"
"""The name under which a machine hangs on a module."""


def _cores_attr(cores: machines.Cores | None) -> CoresAttr | None:
    return None if cores is None else CoresAttr.get(cores.count, cores.gain, cores.cut, cores.wake)


def _cores(attribute: ir.Attribute | None) -> machines.Cores | None:
    if attribute is None:
        return None
    attr = CoresAttr(attribute)
    return machines.Cores(attr.count, attr.gain, attr.cut, attr.wake)


def machine_attr(machine: machines.Machine, context: ir.Context | None = None) -> MachineAttr:
    """The attribute that describes a machine.

    Raises:
        ValueError: The parts do not make a machine, or there is no context; the message says why.
    """
    context = context if context is not None else ir.Context.current
    if context is None:
        raise ValueError("expected an ir.Context, given or entered")
    with context:
        return MachineAttr.get(
            machine.name,
            [
                DeviceGroupAttr.get(
                    group.name,
                    group.count,
                    group.memory,
                    group.launch,
                    group.vector,
                    group.efficiency,
                    [RateAttr.get(ir.Type.parse(element), rate) for element, rate in group.rates.items()],
                    group.packing,
                    group.cache,
                    _cores_attr(group.cores),
                )
                for group in machine.groups
            ],
            [
                LevelAttr.get(
                    level.name,
                    level.size,
                    level.latency,
                    level.bandwidth,
                    [str(algorithm) for algorithm in level.algorithms],
                    list(level.shared),
                )
                for level in machine.levels
            ],
            [
                TierAttr.get(tier.name, tier.scope, tier.capacity, tier.bandwidth, list(tier.shared))
                for tier in machine.tiers
            ],
            [
                SegmentAttr.get(segment.name, segment.scope, segment.bandwidth, segment.within)
                for segment in machine.segments
            ],
            [
                LinkAttr.get(
                    link.source,
                    link.target,
                    link.latency,
                    link.bandwidth,
                    list(link.shared),
                    staging=link.staging,
                )
                for link in machine.links
            ],
        )


def _group(attribute: ir.Attribute) -> machines.DeviceGroup:
    attr = DeviceGroupAttr(attribute)
    rates = [RateAttr(rate) for rate in attr.rates]
    return machines.DeviceGroup(
        name=attr.name,
        count=attr.count,
        memory=attr.memory,
        launch=attr.launch,
        vector=attr.vector,
        rates={str(rate.element_type): rate.rate for rate in rates},
        efficiency=attr.efficiency,
        packing=attr.packing,
        cache=attr.cache,
        cores=_cores(attr.cores),
    )


def _level(attribute: ir.Attribute) -> machines.Level:
    attr = LevelAttr(attribute)
    algorithms = tuple(machines.Algorithm(algorithm) for algorithm in attr.algorithms)
    return machines.Level(attr.name, attr.size, attr.latency, attr.bandwidth, algorithms, tuple(attr.shared))


def _tier(attribute: ir.Attribute) -> machines.Tier:
    attr = TierAttr(attribute)
    return machines.Tier(attr.name, attr.scope, attr.capacity, attr.bandwidth, tuple(attr.shared))


def _segment(attribute: ir.Attribute) -> machines.Segment:
    attr = SegmentAttr(attribute)
    return machines.Segment(attr.name, attr.scope, attr.bandwidth, attr.within)


def _link(attribute: ir.Attribute) -> machines.Link:
    attr = LinkAttr(attribute)
    return machines.Link(attr.source, attr.target, attr.latency, attr.bandwidth, tuple(attr.shared), attr.staging)


def machine(attribute: ir.Attribute) -> machines.Machine:
    """The machine that a ``#supernode.machine`` describes."""
    attr = MachineAttr(attribute)
    return machines.Machine(
        name=attr.name,
        groups=tuple(map(_group, attr.groups)),
        levels=tuple(map(_level, attr.levels)),
        tiers=tuple(map(_tier, attr.tiers)),
        segments=tuple(map(_segment, attr.segments)),
        links=tuple(map(_link, attr.links)),
    )


def set_machine(module: ir.Module, machine: machines.Machine | str) -> None:
    """Says for which machine a module is compiled: a description, the name of a preset, or a YAML file.

    Raises:
        MachineError: There is no such preset or file, or the file is no machine.
        ValueError: The dialect refuses the machine.
    """
    if isinstance(machine, str):
        machine = machines.load(machine)
    module.operation.attributes[MACHINE] = machine_attr(machine, module.context)


@contextmanager
def machine_set(module: ir.Module, machine: machines.Machine | str | None) -> Generator[None]:
    """Gives a module another machine for a while; None leaves it the one that it has.

    Raises:
        MachineError: As ``set_machine``.
        ValueError: As ``set_machine``.
    """
    attributes = module.operation.attributes
    kept = attributes[MACHINE] if MACHINE in attributes else None  # noqa: SIM401 (there is no get)
    if machine is not None:
        set_machine(module, machine)
    try:
        yield
    finally:
        if kept is not None:
            attributes[MACHINE] = kept
        elif machine is not None:
            del attributes[MACHINE]


def machine_of(module: ir.Module) -> machines.Machine | None:
    """The machine for which a module is compiled, if it says."""
    if MACHINE not in module.operation.attributes:
        return None
    return machine(module.operation.attributes[MACHINE])


def task(
    label: str,
    seconds: float,
    inputs: Sequence[ir.Value] = (),
    outputs: Sequence[ir.Value] = (),
    *,
    flops: float | None = None,
    bytes: float | None = None,
) -> ops.TaskOp:
    """Something that takes that long, reads ``inputs`` and writes over ``outputs``.

    Args:
        label: What to call it.
        seconds: What it takes.
        inputs: Tensors that it reads.
        outputs: Tensors that its results are written over, one for each.
        flops: Operations, where they are known.
        bytes: To and from the device's memory while it runs, where that is known.
    """
    return ops.TaskOp(label, inputs, outputs, seconds, flops=flops, bytes=bytes)


__all__ = [
    "MACHINE",
    "CoresAttr",
    "DeviceGroupAttr",
    "LevelAttr",
    "LinkAttr",
    "MachineAttr",
    "RateAttr",
    "SegmentAttr",
    "TierAttr",
    "machine",
    "machine_attr",
    "machine_of",
    "machine_set",
    "set_machine",
    "task",
]
