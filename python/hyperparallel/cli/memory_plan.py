# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``hp plan --device-memory``: what leaves the device within a limit, what stays, and why."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hyperparallel.cli.console import Talk
    from hyperparallel.cli.models import Model
    from hyperparallel.plan import GroupedPlan, ResolvedPlan

_NUMBERS = re.compile(r"\d+")
_FATES = {"moved": "moved", "recomputed": "computed again", "kept": "kept on the device"}


def plan_memory(
    arguments: argparse.Namespace, model: Model, resolved: ResolvedPlan | GroupedPlan, talk: Talk
) -> dict[str, Any]:
    """Fits the program into the memory that was asked for; what the planner reports, by group of devices.

    Args:
        arguments: Those of the command.
        model: The model.
        resolved: The plan, fitted to it.
        talk: Is told of the phases.

    Returns:
        Reports as in ``offload.json`` of a compiled program; of a plan of one mesh one report, without a name. Empty if
        nothing was asked for.

    Raises:
        CompilationError: It does not fit; says which op needs how much.
    """
    if arguments.device_memory is None:
        return {}
    from hyperparallel.cli.passing import passing_program
    from hyperparallel.compiled import OFFLOAD_FILE

    options = {"machine": arguments.machine, "target": "none", "device_memory": arguments.device_memory}
    with passing_program(model, resolved, talk, **options) as program:
        return {
            part.group or "": json.loads((program.directory / (part.group or "") / OFFLOAD_FILE).read_text())
            for part in program.programs or (program,)
        }


def memory_lines(reports: Mapping[str, Any], every: bool) -> list[str]:
    """The same for people: for each plan what it costs and what bounds it, then what becomes of each tensor.

    Args:
        reports: What :func:`plan_memory` gives.
        every: A line for each tensor, not one for those that differ in numbers of their names only.
    """
    lines: list[str] = []
    for name, report in reports.items():
        lines += ["", f"memory of {name}" if name else "memory", *_plan_lines(report)]
        tensors: Sequence[Mapping[str, Any]] = report["plan"]["tensors"]
        for fate, title in _FATES.items():
            alike: dict[tuple[object, ...], list[Mapping[str, Any]]] = {}
            for tensor in tensors:
                if tensor["fate"] == fate:
                    key = tensor["tensor"] if every else _NUMBERS.sub("#", tensor["tensor"])
                    alike.setdefault((key, tensor["bytes"], tensor.get("tier")), []).append(tensor)
            if alike:
                lines.append(f"  {title}:")
            lines += [_tensor_line(group) for group in alike.values()]
    return lines


def _plan_lines(report: Mapping[str, Any]) -> list[str]:
    from hyperparallel.plan.explain import format_bytes
    from hyperparallel.report.terminal import seconds_text

    plan = report["plan"]
    return [
        f"  {format_bytes(report['device_memory'])} per device: peak {format_bytes(report['peak_bytes'])}, "
        f"{format_bytes(report['unplanned_peak_bytes'])} if nothing moved",
        f"  step {seconds_text(plan['step_s'])}, compute {seconds_text(plan['compute_s'])}; no plan is faster than "
        f"{seconds_text(plan['lower_bound_s'])} (this one {plan['over_bound']:.2%} slower); waits for copies in "
        f"{seconds_text(plan['wait_in_s'])}, out {seconds_text(plan['wait_out_s'])}; copies slow ops down by "
        f"{seconds_text(plan['slowed_down_s'])}",
        f"  each step fetches {format_bytes(plan['bytes_in'])} and stores {format_bytes(plan['bytes_out'])}",
        f"  tightest is {plan['tightest_op_name']} (op {plan['tightest_op']}): {format_bytes(plan['tightest_bytes'])}, "
        "whatever moves",
    ]


def _tensor_line(alike: Sequence[Mapping[str, Any]]) -> str:
    """One line for tensors of one size and fate; gap and bandwidth are those of the one that is hardest to hide."""
    from hyperparallel.plan.explain import format_bytes
    from hyperparallel.report.terminal import seconds_text

    hardest = max(alike, key=lambda tensor: (tensor["break_even_bandwidth"], -tensor["gap_s"]))
    is_one = len(alike) == 1
    name = alike[0]["tensor"] + ("" if is_one else f" and {len(alike) - 1} more")
    text = f"    {name}: {format_bytes(alike[0]['bytes'])}{'' if is_one else ' each'}"
    if alike[0]["fate"] == "moved":
        text += f" to {alike[0]['tier']}"
    text += f", {'' if is_one else 'at least '}{seconds_text(hardest['gap_s'])} without a use"
    if alike[0]["fate"] == "moved":
        copies, hidden, exposed = (sum(tensor[key] for tensor in alike) for key in ("copy_s", "hidden_s", "exposed_s"))
        text += (
            f"; copies {seconds_text(copies)}{'' if is_one else ' together'}: {seconds_text(hidden)} hidden, "
            f"{seconds_text(exposed)} waited for"
        )
    if hardest["break_even_bandwidth"] > 0:
        text += f"; copies of it alone are hidden from {format_bytes(hardest['break_even_bandwidth'])}/s on"
    return text


__all__ = ["memory_lines", "plan_memory"]
