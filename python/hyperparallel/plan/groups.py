# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Device groups: which group of devices runs which part of a program.

    groups: {enc: tp=1, dec: "dp=1,tp=3"}   # in the order of their devices; or mesh: {pp: 2, tp: 2} for two of tp=2
                                            # or {enc: {mesh: tp=1, memory: 2GiB}, ...}: what each device of it has
    stages: {enc: "vision.**", dec: "text.**"}   # paths of blocks; or a number: stages of equal cost, the default
    schedule: 1f1b   # or {name: auto, memory: 2GiB, before: ["F0.3 < B1.0"]}
    microbatches: 4

``memory`` is what each device may hold of activations that forward fragments save for backward ones. A rule of ``before``
says that one task begins before another: F is forward, B backward, W gradients of weights (where backward is split), with
the number of the stage and of the microbatch.

``mesh: {pp: 2, tp: 2}`` stands for ``groups: {stage0: tp=2, stage1: tp=2}``. A number of stages that is a multiple of the
groups deals them out in turns (interleaved).
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from hyperparallel.enums import StrEnum
from hyperparallel.errors import PlanError
from hyperparallel.machines import units
from hyperparallel.plan.mesh import Mesh
from hyperparallel.plan.placement import Placement, resolve_placements
from hyperparallel.plan.presets import Preset
from hyperparallel.plan.program import Program, TensorKind
from hyperparallel.plan.resolve import ResolvedPlan, resolve_rules
from hyperparallel.plan.rules import Rule, glob_regex

if TYPE_CHECKING:
    from hyperparallel.plan import MeshLike

PIPELINE_AXIS = "pp"
"""The axis of a mesh that stands for as many groups."""

KEYS = ("groups", "stages", "schedule", "microbatches")
"""The keys of a plan that this module reads."""


class Schedule(StrEnum):
    """In which order a group does the microbatches of its stages."""

    GPIPE = "gpipe"
    ONE_F_ONE_B = "1f1b"
    INTERLEAVED = "interleaved_1f1b"
    ZERO_BUBBLE_H1 = "zero_bubble_h1"
    AUTO = "auto"


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """A group of devices.

    Attributes:
        name: Its name.
        mesh: Its own mesh.
        memory: Bytes that the program may use on each of its devices; None if the plan does not say.
    """

    name: str
    mesh: Mesh
    memory: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Stage:
    """A part of the program.

    Attributes:
        group: The group that runs it.
        patterns: Paths of its blocks; empty if the compiler cuts the program by cost.
    """

    group: str
    patterns: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Groups:
    """What a plan says about groups.

    Attributes:
        groups: In the order of their devices.
        stages: In order.
        schedule: In which order microbatches are done; None to leave the program's order.
        microbatches: Parts of the batch; None if the plan does not say.
        origin: Where it was written.
        memory: Bytes of saved activations that a device may hold; None for any number.
        before: Rules of one's own for the order, beside those of the schedule.
    """

    groups: tuple[Group, ...]
    stages: tuple[Stage, ...]
    schedule: Schedule | None = None
    microbatches: int | None = None
    origin: str = "plan"
    memory: int | None = None
    before: tuple[str, ...] = ()

    @property
    def patterns(self) -> tuple[str, ...]:
        """The paths of blocks that the stages name."""
        return tuple(pattern for stage in self.stages for pattern in stage.patterns)

    @property
    def num_devices(self) -> int:
        """All devices."""
        return sum(group.mesh.num_devices for group in self.groups)

    def mesh_of(self, name: str) -> Mesh:
        """The mesh of a group that exists."""
        return next(group.mesh for group in self.groups if group.name == name)

    def first_device(self, name: str) -> int:
        """The first of a group's devices."""
        first = 0
        for group in self.groups:
            if group.name == name:
                break
            first += group.mesh.num_devices
        return first

    def memory_of(self, device_memory: int | None) -> dict[str, int]:
        """Bytes that the program may use on each device, by group, where there is a limit.

        Args:
            device_memory: The limit of groups for which the plan names none.
        """
        limits = {group.name: device_memory if group.memory is None else group.memory for group in self.groups}
        return {name: limit for name, limit in limits.items() if limit is not None}

    def check_devices(self, devices: int) -> None:
        """Refuse groups that do not use exactly so many devices."""
        if self.num_devices != devices:
            raise PlanError(
                f"{self} are {self.num_devices} devices but {devices} were asked for; change the groups or the number "
                "of devices",
                constraint=f"{self.num_devices} = {devices}",
            )

    def __str__(self) -> str:
        return "groups " + ", ".join(f"{group.name} ({group.mesh})" for group in self.groups)


def read_groups(sections: Mapping[str, Any], mesh: Mesh | None, origin: str) -> Groups | None:
    """The groups of a plan, or None if it is for one mesh.

    Args:
        sections: The values of the keys ``groups``, ``stages``, ``schedule`` and ``microbatches`` that the plan has.
        mesh: The plan's mesh, if it has one; its axis ``pp`` is taken apart.
        origin: Where it was written, for messages.

    Raises:
        PlanError: If they are malformed.
    """
    if "groups" in sections:
        if mesh is not None:
            raise PlanError(f"{origin}: groups have meshes of their own; leave out mesh")
        groups = _read_groups(sections["groups"], origin)
    elif mesh is not None and PIPELINE_AXIS in mesh.names:
        groups = _pipeline_groups(mesh)
    else:
        left = next((key for key in KEYS if key in sections), None)
        if left is None:
            return None
        raise PlanError(
            f"{origin}: {left} needs groups of devices: a mesh with an axis {PIPELINE_AXIS}, such as "
            f"{{{PIPELINE_AXIS}: 2, tp: 2}}, or groups, such as {{g0: tp=2, g1: tp=2}}"
        )
    schedule, memory, before = _read_schedule(sections.get("schedule"), origin)
    if schedule is not None and schedule not in [str(one) for one in Schedule]:
        raise PlanError(f"{origin}: unknown schedule {schedule!r}; there are {', '.join(str(one) for one in Schedule)}")
    microbatches = sections.get("microbatches")
    if microbatches is not None and (type(microbatches) is not int or microbatches < 1):
        raise PlanError(f"{origin}: expected a number of microbatches of at least 1 but got {microbatches!r}")
    stages = _read_stages(sections.get("stages"), groups, origin)
    busy = {stage.group for stage in stages}
    idle = next((group.name for group in groups if group.name not in busy), None)
    if idle is not None:
        raise PlanError(f"{origin}: stages: the group {idle!r} has no stage; give it one, or leave the group out")
    return Groups(
        groups,
        stages,
        None if schedule is None else Schedule(schedule),
        microbatches,
        origin,
        memory,
        before,
    )


#: Groups are names of folders and of functions, where these are something else.
_NAME, _TAKEN = re.compile(r"[A-Za-z_][\w-]*"), ("main", "ir")
_RULE = re.compile(r"\s*[FBW]\d+\.\d+\s*<\s*[FBW]\d+\.\d+\s*")


def _read_schedule(value: Any, origin: str) -> tuple[Any, int | None, tuple[str, ...]]:
    """The schedule's name, the limit of saved bytes, and the rules of one's own."""
    if not isinstance(value, Mapping):
        return value, None, ()
    options = dict(cast("Mapping[Any, Any]", value))
    unknown = next((key for key in options if key not in ("name", "memory", "before")), None)
    if unknown is not None:
        raise PlanError(f"{origin}: schedule: unknown key {unknown!r}; expected name, memory or before")
    memory = _read_size(options.get("memory"), f"{origin}: schedule: memory")
    before = options.get("before", [])
    if not isinstance(before, Sequence) or isinstance(before, str):
        raise PlanError(
            f'{origin}: schedule: before: expected a list of rules, such as ["F0.3 < B1.0"], but got {before!r}'
        )
    rules = cast("Sequence[Any]", before)
    wrong = next((rule for rule in rules if not isinstance(rule, str) or _RULE.fullmatch(rule) is None), None)
    if wrong is not None:
        raise PlanError(
            f"{origin}: schedule: before: expected a rule such as F0.3 < B1.0 (forward of microbatch 3 on stage 0 before "
            f"backward of microbatch 0 on stage 1) but got {wrong!r}"
        )
    return options.get("name", str(Schedule.AUTO)), memory, tuple("".join(rule.split()) for rule in rules)


def _read_size(value: Any, where: str) -> int | None:
    """Bytes, or a size such as 2GiB; None if there is none."""
    if isinstance(value, str):
        try:
            value = int(units.parse(value, units.BYTES))
        except ValueError as error:
            raise PlanError(f"{where}: {error}") from None
    if value is not None and (type(value) is not int or value < 1):
        raise PlanError(f"{where}: expected a size, such as 2GiB, but got {value!r}")
    return value


def _pipeline_groups(mesh: Mesh) -> tuple[Group, ...]:
    inner = tuple(axis for axis in mesh.axes if axis[0] != PIPELINE_AXIS) or (("dp", 1),)
    return tuple(Group(f"stage{index}", Mesh(inner)) for index in range(mesh.size(PIPELINE_AXIS)))


def _read_groups(value: Any, origin: str) -> tuple[Group, ...]:
    if not isinstance(value, Mapping) or not value:
        raise PlanError(
            f"{origin}: expected groups with their meshes, such as {{g0: tp=2, g1: tp=2}}, but got {value!r}"
        )
    groups: list[Group] = []
    for name, mesh in cast("Mapping[Any, Any]", value).items():
        if not _NAME.fullmatch(str(name)) or str(name) in _TAKEN:
            raise PlanError(
                f"{origin}: expected a word of letters, digits, _ and - as the name of a group, other than "
                f"{' and '.join(_TAKEN)}, but got {name!r}"
            )
        inner, memory = mesh, None
        if isinstance(mesh, Mapping) and "mesh" in mesh:
            entries = dict(cast("Mapping[Any, Any]", mesh))
            inner = entries.pop("mesh")
            memory = _read_size(entries.pop("memory", None), f"{origin}: group {name}: memory")
            if entries:
                raise PlanError(f"{origin}: group {name}: unknown key {next(iter(entries))!r}; expected mesh or memory")
        if not isinstance(inner, (Mesh, str, Mapping)):
            raise PlanError(f"{origin}: group {name}: expected a mesh, such as tp=2, but got {inner!r}")
        try:
            groups.append(Group(str(name), Mesh.of(cast("Mesh | str | Mapping[str, int]", inner)), memory))
        except PlanError as error:
            raise PlanError(f"{origin}: group {name}: {error}") from None
    return tuple(groups)


def _read_stages(value: Any, groups: tuple[Group, ...], origin: str) -> tuple[Stage, ...]:
    names = [group.name for group in groups]
    if value is None:
        value = len(groups)
    if type(value) is int:
        if value < len(groups) or value % len(groups):
            raise PlanError(
                f"{origin}: expected a multiple of the {len(groups)} groups as the number of stages but got {value}"
            )
        return tuple(Stage(names[index % len(groups)]) for index in range(value))
    entries: list[tuple[Any, Any]] = []
    if isinstance(value, Mapping):
        entries = list(cast("Mapping[Any, Any]", value).items())
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for entry in cast("Sequence[Any]", value):
            if not isinstance(entry, Mapping) or len(cast("Mapping[Any, Any]", entry)) != 1:
                raise PlanError(f"{origin}: expected each stage as {{group: paths}} but got {entry!r}")
            entries += list(cast("Mapping[Any, Any]", entry).items())
    if not entries:
        raise PlanError(
            f"{origin}: expected a number of stages, or groups with the paths of their blocks, such as "
            f'{{{names[0]}: "h.0"}}, but got {value!r}'
        )
    stages: list[Stage] = []
    for name, patterns in entries:
        if name not in names:
            raise PlanError(f"{origin}: stages: there is no group {name!r}; there are {', '.join(names)}")
        listed = [patterns] if isinstance(patterns, str) else patterns
        if not isinstance(listed, list) or not all(isinstance(one, str) and one for one in cast("list[Any]", listed)):
            raise PlanError(f"{origin}: stages: {name}: expected paths of blocks but got {patterns!r}")
        stages.append(Stage(str(name), tuple(cast("list[str]", listed))))
    return tuple(stages)


@dataclasses.dataclass(frozen=True, slots=True)
class GroupedPlan:
    """A plan for several groups, fitted to a program; what each group's tensors are is known when it is split.

    Attributes:
        program: The whole program.
        groups: The groups and stages.
        preset: The preset, if any.
        rules: The plan's rules.
        placements: The tier in which a parameter is to live between steps, by name.
        stage_paths: The paths of the blocks of each stage; None if the compiler cuts by cost.
    """

    program: Program
    groups: Groups
    preset: Preset | None
    rules: tuple[Rule, ...]
    placements: Mapping[str, str | None]
    stage_paths: tuple[tuple[str, ...], ...] | None

    @property
    def mesh(self) -> Mesh:
        """All devices in one row, for what only counts them."""
        return Mesh((("devices", self.groups.num_devices),))

    def to_json(self) -> dict[str, Any]:
        """What ``hypermpmd-form-fragments`` reads."""
        groups: list[dict[str, Any]] = []
        for group in self.groups.groups:
            entry: dict[str, Any] = {"name": group.name, "axes": [list(axis) for axis in group.mesh.axes]}
            if group.mesh.device_ids:
                entry["device_ids"] = list(group.mesh.device_ids)
            groups.append(entry)
        stages: list[dict[str, Any]] = []
        for index, stage in enumerate(self.groups.stages):
            stages.append({"group": stage.group})
            if self.stage_paths is not None:
                stages[-1]["blocks"] = list(self.stage_paths[index])
        return {"groups": groups, "stages": stages}

    def to_json_text(self) -> str:
        """Everything that the compiled programs depend on; equal plans make equal text."""
        rules = [f"{rule.pattern}: {rule.layout_text()}" for rule in self.rules]
        groups = self.groups
        more: dict[str, Any] = {
            "preset": str(self.preset),
            "rules": rules,
            "schedule": groups.schedule,
            "split": groups.microbatches,
        }
        if groups.memory is not None or groups.before:
            more |= {"memory": groups.memory, "before": list(groups.before)}
        if any(group.memory is not None for group in groups.groups):
            more["device_memory"] = {group.name: group.memory for group in groups.groups}
        return json.dumps({**self.to_json(), **more}, indent=1) + "\n"

    def for_group(self, name: str, program: Program) -> ResolvedPlan:
        """The plan of one group's own program.

        Raises:
            PlanError: If a layout does not fit.
        """
        mesh = self.groups.mesh_of(name)
        preset_rules = self.preset.rules(program, mesh) if self.preset is not None else ()
        rules = tuple(dataclasses.replace(rule, required=False) for rule in self.rules)
        resolved = resolve_rules((*preset_rules, *rules), program, mesh)
        kept = {tensor.name for tensor in program.tensors}
        return dataclasses.replace(
            resolved, placements={key: tier for key, tier in self.placements.items() if key in kept}
        )


def resolve_groups(
    groups: Groups,
    program: Program,
    preset: Preset | None,
    rules: tuple[Rule, ...],
    placements: tuple[Placement, ...],
    devices: int | None = None,
) -> GroupedPlan:
    """Fit groups to a program: every pattern must match, no block may be in two stages.

    Raises:
        PlanError: If a pattern matches nothing, or a block is in two stages.
    """
    if devices is not None:
        groups.check_devices(devices)
    for rule in rules:
        if rule.required and not any(rule.matches(tensor) for tensor in program.tensors):
            raise PlanError(f"{rule.where} matches nothing in {program.name}")
    chosen: tuple[tuple[str, ...], ...] | None = None
    if any(stage.patterns for stage in groups.stages):
        paths = list(dict.fromkeys(tensor.name.partition("#")[0] for tensor in program.of_kind(TensorKind.BLOCK)))
        chosen = tuple(_paths_of(stage, paths, program.name, groups.origin) for stage in groups.stages)
        owner: dict[str, int] = {}
        for index, stage_paths in enumerate(chosen):
            for path in stage_paths:
                if owner.setdefault(path, index) != index:
                    raise PlanError(f"{groups.origin}: stages: block {path} is in two stages; leave it out of one")
    return GroupedPlan(program, groups, preset, rules, resolve_placements(placements, program), chosen)


def _paths_of(stage: Stage, paths: list[str], name: str, origin: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for pattern in stage.patterns:
        matched = [path for path in paths if glob_regex(pattern).fullmatch(path)]
        if not matched:
            shown = ", ".join(paths[:4]) + (", ..." if len(paths) > 4 else "")
            raise PlanError(
                f"{origin}: stages: {pattern!r} matches no block of {name}; "
                + (f"its blocks are {shown}" if paths else "it has no blocks: import it without --flat")
            )
        found.update(dict.fromkeys(matched))
    return tuple(found)


def grouped_mesh(groups: Groups | None, mesh: MeshLike | None) -> Groups | None:
    """The groups when a mesh is given instead of the plan's own: one with an axis ``pp`` makes groups."""
    if mesh is None:
        return groups
    chosen = Mesh.of(mesh)
    if PIPELINE_AXIS not in chosen.names:
        if groups is not None:
            raise PlanError(
                f"{groups.origin}: the plan is for {groups}; a mesh instead of them needs an axis {PIPELINE_AXIS}, but "
                f"got {chosen}"
            )
        return None
    made = _pipeline_groups(chosen)
    if groups is None:
        return Groups(made, _read_stages(None, made, "mesh"), origin="mesh")
    if len(made) != len(groups.groups):
        raise PlanError(
            f"{groups.origin}: the plan has {len(groups.groups)} groups but the mesh {chosen} makes {len(made)}; give "
            "one as large"
        )
    renamed = tuple(dataclasses.replace(new, name=old.name) for new, old in zip(made, groups.groups, strict=True))
    return dataclasses.replace(groups, groups=renamed)


__all__ = [
    "KEYS",
    "PIPELINE_AXIS",
    "Group",
    "GroupedPlan",
    "Groups",
    "Schedule",
    "Stage",
    "grouped_mesh",
    "read_groups",
    "resolve_groups",
]
