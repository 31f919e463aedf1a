# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A plan meets a program and a mesh: which rule holds for which tensor, and what that comes to."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

from hyperparallel.errors import PlanError
from hyperparallel.plan.layouts import TensorLayout
from hyperparallel.plan.mesh import Mesh
from hyperparallel.plan.program import STORED_KINDS, Program, ProgramTensor, TensorKind, element_bytes
from hyperparallel.plan.rules import Rule


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedTensor:
    """A tensor and the rule that holds for it.

    Attributes:
        tensor: The tensor.
        rule: The last rule that matches it.
        store: Its layout at the boundary of the program (for a block's result: where it leaves the block).
        use: Its layout where it is computed with.
    """

    tensor: ProgramTensor
    rule: Rule
    store: TensorLayout
    use: TensorLayout

    def bytes_per_device(self, mesh: Mesh) -> int:
        """Bytes that one device keeps, padding included."""
        local = self.store.local_shape(self.tensor.shape, mesh)
        return math.prod(local) * element_bytes(self.tensor.dtype)


@dataclasses.dataclass(frozen=True, slots=True)
class RuleUse:
    """A rule and what became of it: what it matched, and where a later rule holds instead."""

    rule: Rule
    matched: tuple[ProgramTensor, ...]
    overridden: tuple[ProgramTensor, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class ResolvedPlan:
    """A plan for one program on one mesh.

    Attributes:
        program: The program.
        mesh: The mesh.
        tensors: What is planned, in the order of the program.
        rules: Every rule, in order, and its use.
        unmatched: Tensors that no rule speaks of: propagation decides.
        placements: The tier in which a parameter is to live between steps, by name; None to keep it on the device.
    """

    program: Program
    mesh: Mesh
    tensors: tuple[PlannedTensor, ...]
    rules: tuple[RuleUse, ...]
    unmatched: tuple[ProgramTensor, ...]
    placements: Mapping[str, str | None] = dataclasses.field(default_factory=dict[str, "str | None"])

    def to_json(self) -> dict[str, Any]:
        """What ``hypershard-apply-plan`` reads."""
        arguments: dict[str, Any] = {}
        results: dict[str, Any] = {}
        blocks: dict[str, Any] = {}
        for planned in self.tensors:
            name, kind = planned.tensor.name, planned.tensor.kind
            if kind in STORED_KINDS:
                arguments[name] = {"store": str(planned.store)}
                if planned.use != planned.store:
                    arguments[name]["use"] = str(planned.use)
            elif kind == TensorKind.OUTPUT:
                results[name] = str(planned.store)
            else:
                path, _, index = name.partition("#")
                blocks.setdefault(path, {})[index or "0"] = str(planned.store)
        mesh: dict[str, Any] = {"name": "mesh", "axes": [[name, size] for name, size in self.mesh.axes]}
        if self.mesh.device_ids:
            mesh["device_ids"] = list(self.mesh.device_ids)
        return {"mesh": mesh, "arguments": arguments, "results": results, "blocks": blocks}

    def to_json_text(self) -> str:
        """The same as text, one line for each tensor; equal plans make equal text."""
        return json.dumps(self.to_json(), indent=1) + "\n"


def resolve_rules(rules: tuple[Rule, ...], program: Program, mesh: Mesh) -> ResolvedPlan:
    """Find the rule that holds for each tensor (the last that matches) and fit its layouts.

    Raises:
        PlanError: If a required rule matches nothing, or a layout does not fit a tensor or the mesh.
    """
    by_rule: list[list[ProgramTensor]] = [[] for _ in rules]
    holding: dict[int, int] = {}
    for position, tensor in enumerate(program.tensors):
        for index, rule in enumerate(rules):
            if rule.matches(tensor):
                by_rule[index].append(tensor)
                holding[position] = index
    for index, rule in enumerate(rules):
        if rule.required and not by_rule[index]:
            raise PlanError(f"{rule.where} matches nothing in {program.name}{_hint(rule, program)}")
    planned: list[PlannedTensor] = []
    lost = [set(matched) for matched in by_rule]
    for position, index in holding.items():
        tensor, rule = program.tensors[position], rules[index]
        lost[index].discard(tensor)
        planned.append(_fit(tensor, rule, mesh))
    planned.extend(_optimizer_state(program, planned))
    uses = tuple(
        RuleUse(rule, tuple(matched), tuple(tensor for tensor in matched if tensor in lost[index]))
        for index, (rule, matched) in enumerate(zip(rules, by_rule, strict=True))
    )
    known = {entry.tensor for entry in planned}
    unmatched = tuple(tensor for tensor in program.tensors if tensor not in known)
    return ResolvedPlan(program, mesh, tuple(planned), uses, unmatched)


def _optimizer_state(program: Program, planned: list[PlannedTensor]) -> list[PlannedTensor]:
    """State of an optimizer that no rule speaks of is kept as its parameter is: ``fc.weight.exp_avg`` as ``fc.weight``."""
    spoken_of = {entry.tensor for entry in planned}
    parameters = {entry.tensor.name: entry for entry in planned if entry.tensor.kind == TensorKind.PARAMETER}
    found: list[PlannedTensor] = []
    for tensor in program.of_kind(TensorKind.OPTIMIZER):
        parameter = parameters.get(tensor.name.rpartition(".")[0])
        if tensor not in spoken_of and parameter is not None and parameter.tensor.shape == tensor.shape:
            found.append(PlannedTensor(tensor, parameter.rule, parameter.store, parameter.store))
    return found


def _fit(tensor: ProgramTensor, rule: Rule, mesh: Mesh) -> PlannedTensor:
    where = f"{rule.where} for {tensor.name}"
    if rule.use is not None and tensor.kind not in STORED_KINDS:
        raise PlanError(f"{where}: store and use are for arguments of the program; this is {_article(tensor.kind)}")
    store = rule.store.resolve(mesh, tensor.shape, where)
    use = rule.use.resolve(mesh, tensor.shape, where) if rule.use is not None else store
    return PlannedTensor(tensor, rule, store, use)


def _article(kind: TensorKind) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _hint(rule: Rule, program: Program) -> str:
    """A way out for a rule that matches nothing."""
    if "*" in rule.glob and "**" not in rule.glob:
        for wider in (
            rule.glob.replace("*", "**", 1) if rule.glob.startswith("*.") else "",
            rule.glob.replace("*", "**"),
        ):
            tried = dataclasses.replace(rule, pattern=wider)
            found = [tensor.name for tensor in program.tensors if wider and tried.matches(tensor)]
            if found:
                return f"; * stays within one component of a name: {wider!r} would match {found[0]}"
    close = _closest(rule.glob, [tensor.name for tensor in program.tensors])
    return f"; the nearest name is {close}" if close else ""


def _closest(glob: str, names: list[str]) -> str | None:
    import difflib

    found = difflib.get_close_matches(glob, names, n=1, cutoff=0.5)
    return found[0] if found else None


def implied_mesh(rules: tuple[Rule, ...]) -> Mesh | None:
    """The mesh that MindSpore layouts among the rules carry; two different ones are an error."""
    found: Mesh | None = None
    blame = ""
    for rule in rules:
        for spec in (rule.store, rule.use):
            mesh = spec.implied_mesh() if spec is not None else None
            if mesh is not None and found is not None and mesh != found:
                raise PlanError(f"{rule.where}: its Layout is for the mesh {mesh} but that of {blame} is for {found}")
            if mesh is not None:
                found, blame = mesh, rule.where
    return found


def summary(plan: ResolvedPlan) -> Mapping[str, int]:
    """Bytes per device by kind, of what is planned."""
    totals: dict[str, int] = {}
    for planned in plan.tensors:
        if planned.tensor.kind in STORED_KINDS:
            kind = str(planned.tensor.kind)
            totals[kind] = totals.get(kind, 0) + planned.bytes_per_device(plan.mesh)
    return totals
