# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the options that several commands of ``hp`` have name: a model, a plan; and how they answer in JSON."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from hyperparallel.cli.console import Talk
from hyperparallel.errors import PlanError

if TYPE_CHECKING:
    from hyperparallel.cli.models import Model
    from hyperparallel.plan import GroupedPlan, Plan, ResolvedPlan


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    print(json.dumps(value, indent=1, default=str))


def _overrides(arguments: argparse.Namespace) -> dict[str, Any]:
    from hyperparallel.frontend.model_file import parse_overrides

    return parse_overrides(arguments.model_arg)


def open_model(arguments: argparse.Namespace, talk: Talk, plan: Plan | None = None) -> Model:
    """The model that a command names, imported or from the cache."""
    from hyperparallel.cli import models

    flat = bool(getattr(arguments, "flat", False))
    model = models.open_model(
        arguments.model,
        _overrides(arguments),
        talk,
        use_cache=not arguments.no_cache,
        flat=flat,
        microbatches=None if plan is None or plan.groups is None else plan.groups.microbatches,
        blocks=() if plan is None or plan.groups is None else plan.groups.patterns,
    )
    talk.say(
        f"{model.imported.name}: {len(model.imported.arguments)} arguments, {len(model.imported.blocks)} block calls"
    )
    return model


def plan_of(arguments: argparse.Namespace) -> Plan:
    """The plan of the options ``--plan`` and ``--preset``; without options about devices, that of one device."""
    from hyperparallel.compile import read_plan
    from hyperparallel.plan import Plan

    if arguments.plan is None and arguments.preset is None:
        if arguments.mesh is None and arguments.devices in (None, 1):
            return Plan(mesh={"dp": 1}, preset="data_parallel")
        raise PlanError("expected a plan: --plan FILE, or --preset megatron, fsdp or data_parallel")
    plan = Plan(preset=arguments.preset) if arguments.plan is None else read_plan(arguments.plan)
    assert isinstance(plan, Plan)
    if arguments.plan is not None and arguments.preset is not None:
        if plan.preset is not None:
            raise PlanError(
                f"{arguments.plan} has the preset {plan.preset.name} and --preset names another; leave one out"
            )
        plan = Plan(plan.mesh, plan.rules, arguments.preset, plan.placements, plan.groups)
    return plan


def resolve(arguments: argparse.Namespace, model: Model) -> ResolvedPlan | GroupedPlan:
    """The plan for this model on the mesh and the devices that are asked for."""
    from hyperparallel.compile import describe_program

    return plan_of(arguments).fit(describe_program(model.imported), arguments.mesh, arguments.devices)
