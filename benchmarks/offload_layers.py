# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of equal layers, planned as a whole and with one decision for all layers: what either takes and is worth.

    python benchmarks/offload_layers.py [--layers 16 32 64 126] [--parts 0.7 0.5 0.3] [--json]

A stamped plan decides for one layer which of its activations leave, and does so in all; when they go and come back is
still planned as a whole, so that it is the best that planning a layer once could give. All decisions are tried.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import time
from dataclasses import asdict, dataclass

from hyperparallel import offload
from hyperparallel.cli.console import Talk
from hyperparallel.offload import Link, Operation, Problem, Storage, Tier
from hyperparallel.testing import offload_oracles as oracles

#: Of an attention layer: bytes of what each op makes, in parts of the hidden state, and the seconds it takes.
ROLES = {"norms": (2, 0.2), "projections": (3, 3.0), "attention": (1, 1.0), "hidden": (4, 4.0), "output": (1, 4.0)}
UNIT = 64 << 20


@dataclass(frozen=True, slots=True)
class Row:
    """A step: its layers, its part of what is live, seconds of the plans, and what planning took."""

    layers: int
    part: float
    bound_s: float
    step_s: float
    plan_s: float
    stamped_s: float | None
    stamped_plan_s: float | None
    roles: str


def step_of(layers: int) -> tuple[Problem, list[str]]:
    """Forward and backward through equal layers; and the role of each storage."""
    storages: list[Storage] = []
    roles: list[str] = []
    ops: list[Operation] = []

    def new(role: str, units: int) -> int:
        storages.append(Storage(units * UNIT, name=role))
        roles.append(role)
        return len(storages) - 1

    saved: list[tuple[int, str]] = []
    last: tuple[int, ...] = ()
    for _ in range(layers):
        for role, (units, seconds) in ROLES.items():
            made = new(role, units)
            ops.append(Operation(seconds * 1e-3, last, (made,)))
            saved.append((made, role))
            last = (made,)
    gradient: tuple[int, ...] = ()
    for (made, role), before in zip(reversed(saved), [*reversed(saved[:-1]), None], strict=True):
        reads = {made, *gradient, *(() if before is None else (before[0],))}
        gradient = (new("gradients", ROLES[role][0]),)
        ops.append(Operation(ROLES[role][1] * 2e-3, tuple(sorted(reads)), gradient))
    return Problem(tuple(ops), tuple(storages), 1 << 60, ()), roles


def seconds_of(problem: Problem) -> tuple[offload.Plan | None, float]:
    """The plan, if there is one, and what it took."""
    began = time.process_time()
    try:
        plan = offload.plan(problem)
    except offload.CapacityError:
        plan = None
    return plan, time.process_time() - began


def measure(layers: int, part: float, *, stamps: bool) -> Row:
    """Plans a step whose link carries 30 % of what is live while the forward ops run."""
    problem, roles = step_of(layers)
    live = max(oracles.live_bytes(problem))
    forward = sum(op.seconds for op in problem.operations) / 3
    link = Link(0.3 * live / forward)
    problem = dataclasses.replace(problem, capacity=int(part * live), tiers=(Tier("host", 1 << 60, link, link),))
    plan, plan_seconds = seconds_of(problem)
    if plan is None:
        raise SystemExit(f"{layers} layers do not fit into {part:.0%}")
    best: tuple[float, str] | None = None
    total = 0.0
    for leaving in itertools.product((False, True), repeat=len(ROLES) if stamps else 0):
        chosen = {role for role, leaves in zip(ROLES, leaving, strict=False) if leaves}
        stays = (role in ROLES and role not in chosen for role in roles)
        pinned = tuple(
            dataclasses.replace(storage, pinned=stay) for storage, stay in zip(problem.storages, stays, strict=True)
        )
        stamped, seconds = seconds_of(dataclasses.replace(problem, storages=pinned))
        total += seconds
        if stamps and stamped is not None and (best is None or stamped.seconds < best[0]):
            best = stamped.seconds, " ".join(sorted(chosen))
    return Row(
        layers,
        part,
        plan.bound_seconds,
        plan.seconds,
        plan_seconds,
        best[0] if best else None,
        total if best else None,
        best[1] if best else "",
    )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, nargs="+", default=[16, 32, 64, 126])
    parser.add_argument("--parts", type=float, nargs="+", default=[0.7, 0.5, 0.3], help="of what is live")
    parser.add_argument("--stamp-up-to", type=int, default=32, help="layers; more are planned as a whole only")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    rows: list[Row] = []
    talk = Talk()
    cells = list(itertools.product(arguments.layers, arguments.parts))
    with talk.step("plan"):
        for done, (layers, part) in enumerate(cells):
            talk.advance(done, len(cells))
            rows.append(measure(layers, part, stamps=layers <= arguments.stamp_up_to))
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
        return
    print("layers  part   bound s    step s  plan CPU s  stamped s  CPU s  leaves in every layer")
    for row in rows:
        line = f"{row.layers:6} {row.part:5.0%} {row.bound_s:9.4f} {row.step_s:9.4f} {row.plan_s:11.3f}"
        if row.stamped_s is not None:
            line += f" {row.stamped_s:10.4f} {row.stamped_plan_s:6.2f}  {row.roles}"
        print(line)


if __name__ == "__main__":
    main()
