# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a machine is made of, in SI units without prefix: seconds, bytes, bytes and operations per second."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from hyperparallel.enums import StrEnum

#: The scope of what every device has for itself.
DEVICE = "device"


class Algorithm(StrEnum):
    """How the members of a group exchange data within a network level."""

    RING = "ring"
    TREE = "tree"
    HALVING = "halving"
    DIRECT = "direct"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Cores:
    """Cores of one host that virtual devices share; the numbers of their group are then those of one core.

    Attributes:
        count: Number of cores.
        gain: What each further core adds to the speed of a kernel that is cut over several: at most 1.
        cut: Seconds that cutting a kernel takes.
        wake: Seconds until a device that has waited runs again, where there are more devices than cores.
    """

    count: int
    gain: float = 1.0
    cut: float = 0.0
    wake: float = 0.0


@dataclass(frozen=True, slots=True)
class DeviceGroup:
    """Equal devices: how many, and how fast.

    Attributes:
        name: The group's name.
        count: Number of devices.
        memory: The tier that kernels work on.
        launch: The least time of a kernel, in seconds.
        vector: Operations per second of everything that is not a contraction.
        rates: Peak operations per second of contractions, by MLIR element type such as ``bf16``.
        efficiency: The part of the peak that large contractions reach.
        packing: Bytes per second at which contractions bring their operands into form; 0 if that hides behind products.
        cache: The tier whose bandwidth holds for kernels that fit into it.
        cores: The cores that the devices share, if they are threads of one host.
    """

    name: str
    count: int
    memory: str
    launch: float
    vector: float
    rates: Mapping[str, float]
    efficiency: float = 1.0
    packing: float = 0.0
    cache: str | None = None
    cores: Cores | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rates", MappingProxyType(dict(self.rates)))


@dataclass(frozen=True, slots=True)
class Level:
    """A level of the network: ``size`` units of the level before it (devices for the first).

    Attributes:
        name: The level's name.
        size: How many units of the level before make one of this.
        latency: Seconds for a message to another unit of the same level, one way.
        bandwidth: Bytes per second of one device, one way.
        algorithms: Those that collectives may use within the level.
        shared: Segments that this traffic takes from.
    """

    name: str
    size: int
    latency: float
    bandwidth: float
    algorithms: tuple[Algorithm, ...] = ()
    shared: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tier:
    """Memory of one kind, once per ``"device"`` or per unit of a level (bytes, bytes per second).

    Kernels that work on it take from the segments ``shared`` too.
    """

    name: str
    scope: str
    capacity: float
    bandwidth: float
    shared: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of wire that transfers share, once per ``"device"`` or per unit of a level (bytes per second)."""

    name: str
    scope: str
    bandwidth: float
    within: str | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """A one-way link between memory tiers.

    Attributes:
        source: The tier that is read.
        target: The tier that is written.
        latency: Seconds that a copy takes before bytes flow.
        bandwidth: Bytes per second of a copy that is alone.
        shared: Segments that other copies use too.
        staging: Bytes of the buffer, in the tier below, that copies go through in chunks, each with the latency; 0: none.
    """

    source: str
    target: str
    latency: float
    bandwidth: float
    shared: tuple[str, ...] = ()
    staging: float = 0.0

    def seconds(self, size: float) -> float:
        """What a copy of that many bytes takes when it is alone."""
        chunks = math.ceil(size / self.staging) if 0 < self.staging < size else 1
        return chunks * self.latency + size / self.bandwidth


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine: groups of devices, levels of network, memory tiers, shared segments, links.

    Example:
        >>> from hyperparallel import machines
        >>> machine = machines.load("a3-node")
        >>> machine.num_devices, machine.tier("hbm").capacity
        (16, 64000000000.0)
    """

    name: str
    groups: tuple[DeviceGroup, ...]
    tiers: tuple[Tier, ...]
    levels: tuple[Level, ...] = ()
    segments: tuple[Segment, ...] = ()
    links: tuple[Link, ...] = field(default=())

    @property
    def num_devices(self) -> int:
        """Devices of all groups."""
        return sum(group.count for group in self.groups)

    def tier(self, name: str) -> Tier:
        """The tier of that name; KeyError if there is none."""
        for tier in self.tiers:
            if tier.name == name:
                return tier
        raise KeyError(name)

    def link(self, source: str, target: str) -> Link:
        """The link between two tiers; KeyError if there is none."""
        for link in self.links:
            if (link.source, link.target) == (source, target):
                return link
        raise KeyError((source, target))


__all__ = ["DEVICE", "Algorithm", "Cores", "DeviceGroup", "Level", "Link", "Machine", "Segment", "Tier"]
