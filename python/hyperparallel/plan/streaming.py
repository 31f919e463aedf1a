# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""When fetching a weight from a memory tier costs nothing.

A matrix of E elements of b bytes takes E b / bandwidth to fetch, and 2 E operations for each token that it serves. The
fetch hides behind the matrix's own work if it serves at least (FLOP/s) b / (2 bandwidth) tokens: FLOP/s over bandwidth, at
two bytes an element. What fewer tokens leave is exposed, unless the work of others hides it.

The same holds for a cache, of which each element is read once for each token that a sequence takes in a step; it is stored
again, too, since a step changes it.
"""

from __future__ import annotations

import dataclasses
import math

from hyperparallel.errors import PlanError
from hyperparallel.machines import Machine
from hyperparallel.plan.program import TensorKind, element_bytes
from hyperparallel.plan.resolve import ResolvedPlan


@dataclasses.dataclass(frozen=True, slots=True)
class Streaming:
    """A placed argument on a machine.

    Attributes:
        name: The argument.
        tier: Where it lives.
        local_bytes: What one device fetches.
        fetch_seconds: What that takes on the link, with nothing else on it.
        store_seconds: What it takes to bring the next value back; zero for what a step does not change.
        hidden_tokens: Tokens that one fetch has to serve for its own work to hide it; None for what is no matrix.
        exposed_seconds_per_fetch: What one token leaves exposed, of the store too, if nothing else hides it.
    """

    name: str
    tier: str
    local_bytes: int
    fetch_seconds: float
    store_seconds: float
    hidden_tokens: int | None
    exposed_seconds_per_fetch: float


_CHANGED = frozenset({TensorKind.CACHE, TensorKind.OPTIMIZER})


def streaming_of(plan: ResolvedPlan, machine: Machine) -> tuple[Streaming, ...]:
    """Each argument that the plan places in a tier.

    Raises:
        PlanError: If no link of the machine goes from the tier to the device's memory.
    """
    group = machine.groups[0]
    placed = {name: tier for name, tier in plan.placements.items() if tier is not None}
    local = {planned.tensor.name: planned.bytes_per_device(plan.mesh) for planned in plan.tensors}
    found: list[Streaming] = []
    for tensor in plan.program.tensors:
        tier = placed.get(tensor.name)
        if tier is None:
            continue
        try:
            link = machine.link(tier, group.memory)
            back = machine.link(group.memory, tier) if tensor.kind in _CHANGED else None
        except KeyError:
            names = ", ".join(source.source for source in machine.links if source.target == group.memory)
            raise PlanError(
                f"{tensor.name} is placed in {tier}, which no link of {machine.name} leads from to {group.memory}; "
                f"place it in one of {names}"
            ) from None
        size = local.get(tensor.name, tensor.bytes)
        width = element_bytes(tensor.dtype)
        rate = (group.rates.get(tensor.dtype) or max(group.rates.values())) * group.efficiency
        seconds = link.seconds(size)
        stored = 0.0 if back is None else back.seconds(size)
        is_matrix = len(tensor.shape) >= 2
        work = 2.0 * size / width / rate if is_matrix else 0.0
        found.append(
            Streaming(
                tensor.name,
                tier,
                size,
                seconds,
                stored,
                math.ceil(rate * width / (2 * link.bandwidth)) if is_matrix else None,
                max(0.0, seconds + stored - work),
            )
        )
    return tuple(found)


__all__ = ["Streaming", "streaming_of"]
