# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A recorded step as a program: planned by the passes, and simulated with the transfers that they wrote."""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlir import ir
from mlir.passmanager import PassManager

from hyperparallel.dialects import supernode
from hyperparallel.errors import CompilationError
from hyperparallel.machines import DeviceGroup, Link, Machine, Segment, Tier
from hyperparallel.offload import DEVICE, Problem
from hyperparallel.pipeline import MLIRError, diagnostics_of
from hyperparallel.simulator import Timeline, Trace, import_trace, simulate_program

#: What is never in the way.
_PLENTY = 1e18
_NEEDED = re.compile(r"to have at least .*?\((\d+) bytes\)")


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step that fits.

    Attributes:
        module: The program with its transfers.
        figures: What ``offload-plan-transfers`` reports.
        timeline: The program, simulated.
        plan_seconds: What the passes took.
    """

    module: ir.Module
    figures: Mapping[str, Any]
    timeline: Timeline
    plan_seconds: float

    @property
    def peak_bytes(self) -> int:
        """The most that the simulator saw on the device."""
        return int(next(tier.peak for tier in self.timeline.tiers if tier.name == DEVICE))

    @property
    def moved_bytes(self) -> int:
        """Bytes that went over links, as the simulator counts them."""
        return int(sum(link.bytes for link in self.timeline.links if link.kind == "link"))


class TooSmallError(CompilationError):
    """No plan exists.

    Attributes:
        needed: The smallest capacity of the device that could work; None if the tiers below are too small.
    """

    needed: int | None = None


def machine_of(problem: Problem) -> Machine:
    """One device with the memory and the links of a problem."""

    def shared(segment: str | None) -> tuple[str, ...]:
        return () if segment is None else (segment,)

    links: list[Link] = []
    for tier in problem.tiers:
        for source, target, one in ((DEVICE, tier.name, tier.out), (tier.name, DEVICE, tier.back)):
            links.append(Link(source, target, one.latency, one.bandwidth, shared(one.segment), one.staging))
    return Machine(
        "recorded",
        (DeviceGroup("gpu", 1, DEVICE, 0.0, _PLENTY, {"f32": _PLENTY}),),
        (
            Tier(DEVICE, "device", float(problem.capacity), problem.memory_bandwidth or _PLENTY),
            *(
                Tier(tier.name, "device", float(tier.capacity + tier.out.staging + tier.back.staging), _PLENTY)
                for tier in problem.tiers
            ),
        ),
        segments=tuple(Segment(name, "device", rate) for name, rate in problem.segments.items()),
        links=tuple(links),
    )


def plan_step(trace: Trace, problem: Problem, *, resident: bool = True) -> PlannedStep:
    """Plans a recorded step with the compiler's passes and simulates what they made.

    Args:
        trace: The step.
        problem: Its machine: capacity, tiers and links. The ops and storages are those of the trace.
        resident: What persists is on the device at both ends of the step, instead of being an argument, which may be in
            a tier between steps.

    Raises:
        TooSmallError: No plan exists; carries the pass's message.
    """
    module = import_trace(trace, resident=resident)
    supernode.set_machine(module, machine_of(problem))
    with tempfile.TemporaryDirectory(prefix="hyperparallel-") as temporary:
        report = Path(temporary) / "plan.json"
        steps = (
            f"offload-plan-transfers{{capacity={problem.capacity} report={report}}},"
            "offload-insert-transfers,offload-verify-tiers"
        )
        handler: Any = module.context.attach_diagnostic_handler(
            lambda diagnostic: diagnostic.severity == ir.DiagnosticSeverity.REMARK
        )
        began = time.perf_counter()
        try:
            with module.context:
                PassManager.parse(f"builtin.module({steps})", module.context).run(module.operation)
        except MLIRError as error:
            diagnostics = diagnostics_of(error)
            too_small = TooSmallError(
                f"{trace.name} does not fit into {problem.capacity} bytes",
                diagnostics=diagnostics,
                pass_name="offload-plan-transfers",
            )
            needed = _NEEDED.search(str(too_small))
            too_small.needed = int(needed[1]) if needed else None
            raise too_small from None
        finally:
            handler.detach()
        seconds = time.perf_counter() - began
        figures = json.loads(report.read_text(encoding="utf-8"))
    return PlannedStep(module, figures, simulate_program(module), seconds)


__all__ = ["PlannedStep", "TooSmallError", "machine_of", "plan_step"]
