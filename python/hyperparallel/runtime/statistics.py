# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a run did and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

from hyperparallel.runtime.vocabulary import Collective, Tier


@dataclass(frozen=True, slots=True)
class TierUsage:
    """The books of one memory tier of one device, in bytes.

    Attributes:
        limit: The most that may be in use, or None if there is no limit.
        used: What is in use now.
        peak: The most that was in use since the last reset.
    """

    limit: int | None
    used: int
    peak: int


@dataclass(frozen=True, slots=True)
class DeviceStatistics:
    """One device's part of a run.

    Attributes:
        device: Ordinal of the device in its runtime.
        group: The mesh that the device belonged to.
        rank: The device's linear id in that mesh.
        wall_seconds: From entering to leaving the program.
        wait_seconds: Of it, time spent waiting for other devices.
        peak_bytes: Most bytes in use in each tier, arguments and results included.
        leaked_bytes: Bytes of each tier that the program allocated and never freed.
        allocations: Number of allocations that the program made.
        collectives: Calls by kind, in groups of two devices or more.
        moved_bytes: Bytes received from other devices, by kind.
        matmuls: Number of matrix products outside of parallel loops.
        matmul_seconds: Time spent in them.
        matmul_flops: Floating-point operations done in them.
        prefetches: Copies between tiers to the device that the program started.
        prefetched_bytes: Bytes of them.
        stores: Copies from the device to another tier.
        stored_bytes: Bytes of them.
        copy_wait_seconds: Of the wall time, time spent waiting for such copies.
    """

    device: int
    group: int
    rank: int
    wall_seconds: float
    wait_seconds: float
    peak_bytes: Mapping[Tier, int]
    leaked_bytes: Mapping[Tier, int]
    allocations: int
    collectives: Mapping[Collective, int]
    moved_bytes: Mapping[Collective, int]
    matmuls: int
    matmul_seconds: float
    matmul_flops: float
    prefetches: int
    prefetched_bytes: int
    stores: int
    stored_bytes: int
    copy_wait_seconds: float


@dataclass(frozen=True, slots=True)
class RunStatistics:
    """A run over all its devices.

    Attributes:
        wall_seconds: From the start of the first device to the end of the last.
        devices: One entry for each launch, in launch order.
        replayed: On how many devices the step was a graph that had been captured before, and was only launched.
        not_captured: Why that was not so on one of the others; None where there is nothing to capture.
    """

    wall_seconds: float
    devices: tuple[DeviceStatistics, ...]
    replayed: int = 0
    not_captured: str | None = None

    @property
    def collectives(self) -> dict[Collective, int]:
        """Calls by kind on the device that made the most of them; kinds never called are left out."""
        counts = {kind: max(device.collectives[kind] for device in self.devices) for kind in Collective}
        return {kind: count for kind, count in counts.items() if count}

    @property
    def moved_bytes(self) -> dict[Collective, int]:
        """Bytes received from other devices by kind, over all devices; kinds that moved nothing are left out."""
        totals = {kind: sum(device.moved_bytes[kind] for device in self.devices) for kind in Collective}
        return {kind: total for kind, total in totals.items() if total}

    @property
    def total_moved_bytes(self) -> int:
        """Bytes received from other devices, over all kinds and devices."""
        return sum(self.moved_bytes.values())

    @property
    def bytes_moved(self) -> int:
        """Bytes received by the device that received most."""
        return max(sum(device.moved_bytes.values()) for device in self.devices)

    @property
    def peak_bytes(self) -> dict[Tier, int]:
        """The highest peak that any one device had, by tier; tiers never used are left out."""
        peaks = {tier: max(device.peak_bytes[tier] for device in self.devices) for tier in Tier}
        return {tier: peak for tier, peak in peaks.items() if peak}

    @property
    def leaked_bytes(self) -> int:
        """Bytes that programs allocated and never freed, over all tiers and devices."""
        return sum(sum(device.leaked_bytes.values()) for device in self.devices)

    def to_json(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dictionaries, ready for ``json.dumps``."""
        return {
            "wall_seconds": self.wall_seconds,
            "collectives": {str(kind): count for kind, count in self.collectives.items()},
            "bytes_moved": self.bytes_moved,
            "moved_bytes": {str(kind): total for kind, total in self.moved_bytes.items()},
            "peak_bytes": {str(tier): peak for tier, peak in self.peak_bytes.items()},
            "leaked_bytes": self.leaked_bytes,
            "graphs": {"replayed": self.replayed, "not_captured": self.not_captured},
            "devices": [_plain(asdict(device)) for device in self.devices],
        }


def _plain(values: Mapping[Any, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for key, value in values.items():
        plain[str(key)] = _plain(cast("Mapping[Any, Any]", value)) if isinstance(value, Mapping) else value
    return plain
