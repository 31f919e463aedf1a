# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a person wants parameters to live between steps: in a memory tier, or on the device.

``offload: {place: {"**.mlp.*.weight": pool}, keep: ["**.ln_*.*"]}`` in a plan file; patterns as in ``shard``, the last that
matches holds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

from hyperparallel.errors import PlanError
from hyperparallel.plan.program import STORED_KINDS, Program, TensorKind
from hyperparallel.plan.rules import Rule
from hyperparallel.plan.spelling import read_layout

_KINDS = STORED_KINDS - {TensorKind.INPUT}


@dataclasses.dataclass(frozen=True, slots=True)
class Placement:
    """A tier and the tensors that are to live there.

    Attributes:
        pattern: As it was written.
        tier: The tier's name on the machine; None to keep them on the device.
        origin: Where it was written.
    """

    pattern: str
    tier: str | None
    origin: str = "plan"

    @property
    def rule(self) -> Rule:
        """Its pattern, as rules match it."""
        return Rule(self.pattern, read_layout("Replicate()", self.origin), origin=self.origin)


def read_placements(value: Any, origin: str) -> tuple[Placement, ...]:
    """The section ``offload`` of a plan.

    Raises:
        PlanError: If it is malformed.
    """
    what = f"{origin}: offload"
    if not isinstance(value, Mapping):
        raise PlanError(f"{what}: expected place: patterns with tiers, or keep: a list of patterns, but got {value!r}")
    section = cast("Mapping[Any, Any]", value)
    for key in section:
        if key not in ("place", "keep"):
            raise PlanError(f"{what}: unknown key {key!r}; expected place or keep")
    place, keep = section.get("place", {}), section.get("keep", [])
    if not isinstance(place, Mapping):
        raise PlanError(f"{what}: expected place to be patterns with tiers but got {place!r}")
    if not isinstance(keep, list):
        raise PlanError(f"{what}: expected keep to be a list of patterns but got {keep!r}")
    placements: list[Placement] = []
    for pattern, tier in cast("Mapping[Any, Any]", place).items():
        if not isinstance(tier, str) or not tier:
            raise PlanError(f"{what}: expected the name of a tier for {pattern!r} but got {tier!r}")
        placements.append(Placement(str(pattern), tier, origin))
    placements += [Placement(str(pattern), None, origin) for pattern in cast("list[Any]", keep)]
    return tuple(placements)


def resolve_placements(placements: tuple[Placement, ...], program: Program) -> dict[str, str | None]:
    """The tier of each parameter, buffer, cache or optimizer state that a placement speaks of; None to keep it on the device.

    Raises:
        PlanError: If a pattern matches no parameter, or a tensor is both placed and kept.
    """
    holding: dict[str, Placement] = {}
    for placement in placements:
        rule = placement.rule
        matched = [tensor for tensor in program.tensors if tensor.kind in _KINDS and rule.matches(tensor)]
        if not matched:
            raise PlanError(f"{rule.where} matches no parameter of {program.name}")
        for tensor in matched:
            before = holding.get(tensor.name)
            if before is not None and (before.tier is None) != (placement.tier is None):
                raise PlanError(
                    f"{placement.origin}: {tensor.name} is both placed in a tier ({before.pattern!r}) and kept on the "
                    f"device ({placement.pattern!r}); leave one out"
                    if before.tier is not None
                    else f"{placement.origin}: {tensor.name} is both kept on the device ({before.pattern!r}) and placed "
                    f"in a tier ({placement.pattern!r}); leave one out"
                )
            holding[tensor.name] = placement
    return {name: placement.tier for name, placement in holding.items()}


__all__ = ["Placement", "read_placements", "resolve_placements"]
