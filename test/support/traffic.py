# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What kernels move, as the fake driver counts it (``test/Runtime/fakes/PtxTraffic.h``)."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

VARIABLE = "HP_FAKE_CUDA_TRAFFIC"
"""Names the file that launches are told to."""


@dataclasses.dataclass(frozen=True, slots=True)
class Traffic:
    """Sums over all launches of a kernel.

    Attributes:
        kernel: Its name.
        launches: How many there were.
        sectors: Of 32 bytes, that the requests of warps moved.
        needed: That they would have moved if the bytes of each were neighbours.
        of_blocks: Sectors that blocks touched, each once for a block.
        distinct: Sectors that launches touched, each once for a launch.
        shared_passes: Of the banks of shared memory.
        needed_shared_passes: That there would be without conflicts.
    """

    kernel: str
    launches: int = 0
    sectors: int = 0
    needed: int = 0
    of_blocks: int = 0
    distinct: int = 0
    shared_passes: int = 0
    needed_shared_passes: int = 0

    @property
    def excess(self) -> float:
        """Sectors that move for each that the bytes need: 1 if all is coalesced."""
        return self.sectors / max(self.needed, 1)

    @property
    def again(self) -> float:
        """How often a block moves a sector: 1 if it passes over memory once."""
        return self.sectors / max(self.of_blocks, 1)

    @property
    def conflicts(self) -> float:
        """Passes of shared memory for each that is needed."""
        return self.shared_passes / max(self.needed_shared_passes, 1)


def read_traffic(path: Path) -> dict[str, Traffic]:
    """Traffic by kernel.

    Args:
        path: What ``HP_FAKE_CUDA_TRAFFIC`` named.
    """
    found: dict[str, Traffic] = {}
    for line in path.read_text().splitlines():
        told = json.loads(line)
        one = found.setdefault(told["kernel"], Traffic(told["kernel"]))
        found[told["kernel"]] = Traffic(
            one.kernel,
            one.launches + 1,
            one.sectors + told["sectors"],
            one.needed + told["needed_sectors"],
            one.of_blocks + told["block_sectors"],
            one.distinct + told["distinct_sectors"],
            one.shared_passes + told["shared_passes"],
            one.needed_shared_passes + told["needed_shared_passes"],
        )
    return found


__all__ = ["VARIABLE", "Traffic", "read_traffic"]
