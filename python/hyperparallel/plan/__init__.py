# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans: how the tensors of a program are laid out over a mesh, by rules.

>>> from hyperparallel.plan import Plan
>>> plan = Plan(mesh={"dp": 2, "tp": 2}, shard={"**.fc1.weight": "Shard(0)@tp"})
>>> plan.mesh.num_devices
4

Layouts are spelled as PyTorch placements, as MindSpore's ``Layout`` or as axis lists: see
``hyperparallel.plan.spelling``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hyperparallel.errors import PlanError
from hyperparallel.plan.document import read_document, read_rule, read_text
from hyperparallel.plan.explain import explain, explain_groups, explain_groups_json, explain_json, format_bytes
from hyperparallel.plan.groups import Group, GroupedPlan, Groups, Schedule, grouped_mesh, read_groups, resolve_groups
from hyperparallel.plan.layouts import AxisRef, DimLayout, TensorLayout
from hyperparallel.plan.mesh import Mesh
from hyperparallel.plan.placement import Placement, read_placements, resolve_placements
from hyperparallel.plan.presets import Preset, PresetName, read_preset
from hyperparallel.plan.program import Program, ProgramTensor, TensorKind, make_program
from hyperparallel.plan.resolve import PlannedTensor, ResolvedPlan, implied_mesh, resolve_rules
from hyperparallel.plan.rules import Rule
from hyperparallel.plan.specs import Layout, Replicate, Shard

MeshLike = Mesh | str | Mapping[str, int] | Sequence[tuple[str, int]]


@dataclasses.dataclass(frozen=True, slots=True, init=False)
class Plan:
    """Rules for a program: a preset's first, then a person's own; the last that matches a tensor holds.

    Attributes:
        mesh: The mesh, if the plan names one.
        preset: The preset, if any.
        rules: The plan's own rules.
        placements: Where parameters are to live between steps.
        groups: Groups of devices that run different parts; None if all devices run the same program.
    """

    mesh: Mesh | None
    preset: Preset | None
    rules: tuple[Rule, ...]
    placements: tuple[Placement, ...]
    groups: Groups | None

    def __init__(
        self,
        mesh: MeshLike | None = None,
        shard: Mapping[str, Any] | Sequence[Rule] = (),
        preset: Preset | str | Mapping[str, Any] | None = None,
        offload: Mapping[str, Any] | Sequence[Placement] = (),
        groups: Groups | Mapping[str, Any] | None = None,
        stages: int | Mapping[str, Any] | Sequence[Any] | None = None,
        schedule: str | Mapping[str, Any] | None = None,
        microbatches: int | None = None,
    ) -> None:
        """Make a plan.

        Args:
            mesh: The mesh in any spelling: ``"dp=2,tp=2"``, ``{"dp": 2, "tp": 2}``.
            shard: Pattern and layout, or ``{"store": layout, "use": layout}``, of each rule.
            preset: ``"megatron"``, ``"fsdp"``, ``"data_parallel"``, or one with options.
            offload: ``{"place": {pattern: tier}, "keep": [pattern]}``.
            groups: Groups of devices with their meshes: ``{"g0": "tp=2", "g1": "tp=2"}``.
            stages: How many stages of equal cost, or groups with the paths of their blocks.
            schedule: ``"gpipe"``, ``"1f1b"``, ``"interleaved_1f1b"``, ``"zero_bubble_h1"`` or ``"auto"``; or one with
                options: ``{"name": "auto", "memory": "2GiB", "before": ["F0.3 < B1.0"]}``.
            microbatches: Parts of the batch.

        Raises:
            PlanError: If a part is malformed.
        """
        if isinstance(shard, Mapping):
            rules = tuple(read_rule(pattern, layout, "plan") for pattern, layout in shard.items())
        else:
            rules = tuple(shard)
        object.__setattr__(self, "mesh", None if mesh is None else Mesh.of(mesh))
        object.__setattr__(self, "preset", None if preset is None else read_preset(preset, "plan"))
        object.__setattr__(self, "rules", rules)
        placements = read_placements(offload, "plan") if isinstance(offload, Mapping) else tuple(offload)
        object.__setattr__(self, "placements", placements)
        if not isinstance(groups, Groups):
            given = {"groups": groups, "stages": stages, "schedule": schedule, "microbatches": microbatches}
            said = {key: value for key, value in given.items() if value is not None}
            groups = read_groups(said, self.mesh, "plan")
        object.__setattr__(self, "groups", groups)

    @staticmethod
    def load(path: str | Path) -> Plan:
        """Read a plan file; ``PlanError`` names file and line."""
        return Plan._of(*read_document(path))

    @staticmethod
    def parse(text: str, name: str = "plan") -> Plan:
        """Read a plan's text; ``name`` stands for the file in messages."""
        return Plan._of(*read_text(text, name))

    @staticmethod
    def _of(
        mesh: Mesh | None,
        preset: Preset | None,
        rules: tuple[Rule, ...],
        placements: tuple[Placement, ...],
        groups: Groups | None,
    ) -> Plan:
        return Plan(mesh, rules, preset, placements, groups)

    def fit(
        self, program: Program, mesh: MeshLike | None = None, devices: int | None = None
    ) -> ResolvedPlan | GroupedPlan:
        """Fit the plan to a program: for one mesh, or for groups of devices if the plan, or the mesh, has them.

        Args:
            program: What the rules are matched against.
            mesh: Used instead of the plan's own; an axis ``pp`` makes groups.
            devices: How many devices must be used, if that is asked for.

        Raises:
            PlanError: If the plan does not fit.
        """
        groups = grouped_mesh(self.groups, mesh)
        if groups is None:
            return self.resolve(program, mesh, devices)
        return resolve_groups(groups, program, self.preset, self.rules, self.placements, devices)

    def resolve(self, program: Program, mesh: MeshLike | None = None, devices: int | None = None) -> ResolvedPlan:
        """Fit a plan for one mesh to a program.

        Args:
            program: What the rules are matched against.
            mesh: Used instead of the plan's own.
            devices: How many devices the mesh must use, if that is asked for.

        Raises:
            PlanError: If there is no mesh, a rule matches nothing, or a layout does not fit.
        """
        chosen = Mesh.of(mesh) if mesh is not None else self.mesh or implied_mesh(self.rules)
        if chosen is None:
            raise PlanError("the plan names no mesh; give one, such as --mesh dp=2,tp=2")
        if devices is not None:
            chosen.check_devices(devices)
        preset_rules = self.preset.rules(program, chosen) if self.preset is not None else ()
        resolved = resolve_rules((*preset_rules, *self.rules), program, chosen)
        return dataclasses.replace(resolved, placements=resolve_placements(self.placements, program))


__all__ = [
    "AxisRef",
    "DimLayout",
    "Group",
    "GroupedPlan",
    "Groups",
    "Layout",
    "Mesh",
    "Placement",
    "Plan",
    "PlannedTensor",
    "Preset",
    "PresetName",
    "Program",
    "ProgramTensor",
    "Replicate",
    "ResolvedPlan",
    "Rule",
    "Schedule",
    "Shard",
    "TensorKind",
    "TensorLayout",
    "explain",
    "explain_groups",
    "explain_groups_json",
    "explain_json",
    "format_bytes",
    "grouped_mesh",
    "make_program",
]
