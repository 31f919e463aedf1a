# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Says in words (or JSON) what a plan does to a program: ``hp plan --explain``."""

from __future__ import annotations

import dataclasses
from typing import Any

from hyperparallel.machines import Machine
from hyperparallel.plan.groups import GroupedPlan
from hyperparallel.plan.program import STORED_KINDS
from hyperparallel.plan.resolve import PlannedTensor, ResolvedPlan, summary
from hyperparallel.plan.streaming import Streaming, streaming_of


def format_bytes(count: int | float) -> str:
    """Bytes in binary units: ``1.5 MiB``."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def explain(plan: ResolvedPlan, every: bool = False, machine: Machine | None = None) -> str:
    """For each rule what it matched, with shapes, layouts and bytes per device; then what none matched.

    Args:
        plan: The resolved plan.
        every: List every tensor, not only the first of those alike.
        machine: Says when fetching what is placed in a tier costs nothing there.
    """
    lines = [f"{plan.program.name} on {plan.mesh} ({plan.mesh.num_devices} devices)"]
    by_rule: dict[int, list[PlannedTensor]] = {}
    for planned in plan.tensors:
        by_rule.setdefault(id(planned.rule), []).append(planned)
    for use in plan.rules:
        holds = by_rule.get(id(use.rule), [])
        note = f"  ({use.rule.note})" if use.rule.note else ""
        lines += ["", f"{use.rule.origin}: {use.rule.pattern} -> {use.rule.layout_text()}{note}"]
        if not use.matched:
            lines.append("  matches nothing here")
        if use.overridden:
            lines.append(f"  overridden by a later rule for {_names([tensor.name for tensor in use.overridden])}")
        lines += _tensor_lines(plan, holds, every)
    if plan.unmatched:
        lines += ["", "no rule: propagation decides"]
        lines += [
            f"  {tensor.kind} {tensor.name} {_shape(tensor.shape)} {format_bytes(tensor.bytes)}"
            for tensor in plan.unmatched
        ]
    lines += _placement_lines(plan, machine, every)
    totals = summary(plan)
    if totals:
        shown = ", ".join(f"{kind} {format_bytes(count)}" for kind, count in totals.items())
        lines += ["", f"per device, of what is planned: {shown}"]
    return "\n".join(lines)


def explain_groups(plan: GroupedPlan) -> str:
    """The groups and their stages, and what each rule matches in the whole program.

    Args:
        plan: The plan; what it comes to on a group is known when the program is split.
    """
    groups = plan.groups
    lines = [f"{plan.program.name} on {groups} ({groups.num_devices} devices)"]
    for index, stage in enumerate(groups.stages):
        paths = None if plan.stage_paths is None else plan.stage_paths[index]
        what = "cut by cost" if paths is None else _names(list(paths)) if paths else "nothing by name"
        lines.append(f"  stage {index} on {stage.group}: {what}")
    if groups.microbatches is not None or groups.schedule is not None:
        lines.append(f"  {groups.microbatches or 1} microbatches, schedule {groups.schedule or 'as in the program'}")
    for rule in plan.rules:
        matched = [tensor.name for tensor in plan.program.tensors if rule.matches(tensor)]
        lines += ["", f"{rule.origin}: {rule.pattern} -> {rule.layout_text()}", f"  {_names(matched)}"]
    return "\n".join(lines)


def explain_groups_json(plan: GroupedPlan) -> dict[str, Any]:
    """The same as data."""
    rules = [
        {
            "pattern": rule.pattern,
            "layout": rule.layout_text(),
            "matched": [tensor.name for tensor in plan.program.tensors if rule.matches(tensor)],
        }
        for rule in plan.rules
    ]
    return {"program": plan.program.name, "devices": plan.groups.num_devices, **plan.to_json(), "rules": rules}


def _placement_lines(plan: ResolvedPlan, machine: Machine | None, every: bool) -> list[str]:
    if not plan.placements:
        return []
    kept = sorted(name for name, tier in plan.placements.items() if tier is None)
    lines = ["", "between steps"]
    if kept:
        lines.append(f"  on the device: {_names(kept)}")
    if machine is None:
        by_tier: dict[str, list[str]] = {}
        for name, tier in plan.placements.items():
            if tier is not None:
                by_tier.setdefault(tier, []).append(name)
        return lines + [f"  in {tier}: {_names(sorted(names))}" for tier, names in by_tier.items()]
    groups: dict[tuple[object, ...], list[Streaming]] = {}
    for streaming in streaming_of(plan, machine):
        is_stored = streaming.store_seconds > 0
        alike: tuple[object, ...] = (streaming.tier, streaming.local_bytes, streaming.hidden_tokens, is_stored)
        groups.setdefault((streaming.name, *alike) if every else alike, []).append(streaming)
    for group in groups.values():
        first = group[0]
        more = f" and {len(group) - 1} more" if len(group) > 1 else ""
        text = (
            f"  in {first.tier}: {first.name}{more}: {format_bytes(first.local_bytes)} per device, fetched in "
            f"{first.fetch_seconds * 1e3:.3g} ms"
        )
        if first.store_seconds:
            text += f" and stored again in {first.store_seconds * 1e3:.3g} ms"
        if first.hidden_tokens is not None:
            text += (
                f", hidden by its own work if a fetch serves {first.hidden_tokens} tokens or more; one token leaves "
                f"{first.exposed_seconds_per_fetch * 1e3:.3g} ms"
            )
        lines.append(text)
    return lines


def explain_json(plan: ResolvedPlan, machine: Machine | None = None) -> dict[str, Any]:
    """The same as data."""
    streaming = [] if machine is None else [dataclasses.asdict(one) for one in streaming_of(plan, machine)]
    return {
        "placements": dict(plan.placements),
        "streaming": streaming,
        "program": plan.program.name,
        "mesh": dict(plan.mesh.axes),
        "devices": plan.mesh.num_devices,
        "rules": [
            {
                "origin": use.rule.origin,
                "pattern": use.rule.pattern,
                "layout": use.rule.layout_text(),
                "matched": [tensor.name for tensor in use.matched],
                "overridden": [tensor.name for tensor in use.overridden],
            }
            for use in plan.rules
        ],
        "tensors": [
            {
                "name": planned.tensor.name,
                "kind": str(planned.tensor.kind),
                "shape": list(planned.tensor.shape),
                "dtype": planned.tensor.dtype,
                "store": str(planned.store),
                "use": str(planned.use),
                "bytes_per_device": planned.bytes_per_device(plan.mesh),
                "rule": planned.rule.where,
            }
            for planned in plan.tensors
        ],
        "unmatched": [tensor.name for tensor in plan.unmatched],
        "bytes_per_device": dict(summary(plan)),
    }


def _tensor_lines(plan: ResolvedPlan, holds: list[PlannedTensor], every: bool) -> list[str]:
    """One line for each tensor, or for the first of a run of equal ones in other blocks."""
    groups: dict[tuple[object, ...], list[PlannedTensor]] = {}
    for planned in holds:
        key: tuple[object, ...] = (planned.tensor.shape, planned.tensor.dtype, planned.store, planned.use)
        groups.setdefault((planned.tensor.name, *key) if every else key, []).append(planned)
    lines: list[str] = []
    for group in groups.values():
        first = group[0]
        more = f" and {len(group) - 1} more" if len(group) > 1 else ""
        text = f"  {first.tensor.name}{more}: {_shape(first.tensor.shape)} {first.tensor.dtype} {first.store}"
        if first.use != first.store:
            text += f" used as {first.use}"
        if first.tensor.kind in STORED_KINDS:
            each = " each" if len(group) > 1 else ""
            text += f", {format_bytes(first.bytes_per_device(plan.mesh))} per device{each}"
        lines.append(text)
    return lines


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(str(size) for size in shape) if shape else "scalar"


def _names(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
