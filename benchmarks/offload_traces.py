# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans for recorded training steps: how far from the lower bound a step is when it has to fit less memory.

A trace becomes a program of opaque tasks of known time, the passes plan it and write its transfers, and the simulator
executes that: `step_s`, `peak_bytes` and `moved_bytes` are the simulator's, `lower_bound_s` is the planner's closed form
(or the fluid linear program's, if `--lp` is given and that is larger), `plan_s` is what the passes take.

    python benchmarks/offload_traces.py --trace FILE --capacity-gib 40 --bandwidth 15.754e9 --json
    python benchmarks/offload_traces.py --trace FILE ... --sweep [--json]
    python benchmarks/offload_traces.py --trace FILE ... --g10 [--json]
    python benchmarks/offload_traces.py --long OPS ... [--json]

`--sweep` plans each trace at 90 to 40 % of what it needs when nothing moves, and shows beside it what others do: LRU on
demand; what leaves is fetched one op ahead (vDNN) or at its consumer, greedily; reloads as late as possible on one
queue, whatever memory there is (PyTorch's reverse sweep; `!` marks what would not fit). `--g10` has the limits of G10's
simulation: 40 GiB, 128 GB of host memory, an SSD of 3.2 GB/s behind it on the same wire, 45 us for each transfer; its
published times stand beside it. (G10 also moves 4 KiB pages on faults, which is not modelled.)
`--long` gives drawn steps of that many ops to the planner alone, for the time that it takes.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperparallel import offload
from hyperparallel.cli.console import Talk
from hyperparallel.simulator import Trace, read_trace
from hyperparallel.testing import offload_baselines as baselines
from hyperparallel.testing import offload_oracles as oracles
from hyperparallel.testing.offload_steps import TooSmallError, plan_step

GIB = 2**30
FRACTIONS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
G10_SECONDS = {"bert-base-256": 7.311, "vit-1280": 5.540, "inceptionv3-1536": 61.086, "resnet152-1280": 114.420}
OTHERS = {
    "lru_s": baselines.on_demand_lru,
    "one_ahead_s": baselines.one_op_ahead,
    "at_consumer_s": baselines.greedy_at_consumer,
}


def problem_of(trace: Trace, capacity: int, bandwidth: float) -> offload.Problem:
    """The trace on a device with a host whose memory is as large as need be."""
    link = offload.Link(bandwidth)
    return offload.Problem.of_trace(trace, capacity, offload.Tier("host", 2**50, link, link))


def g10_problem(trace: Trace, capacity: int, bandwidth: float) -> offload.Problem:
    """With the limits of G10's simulation."""
    host_out, host_back = offload.Link(bandwidth, 45e-6, "out"), offload.Link(bandwidth, 45e-6, "in")
    ssd_out, ssd_back = offload.Link(3.2e9, 45e-6, "out"), offload.Link(3.2e9, 45e-6, "in")
    return offload.Problem.of_trace(
        trace,
        capacity,
        offload.Tier("host", 128 * 10**9, host_out, host_back),
        offload.Tier("ssd", 2**50, ssd_out, ssd_back),
        segments={"out": bandwidth, "in": bandwidth},
    )


def others(problem: offload.Problem) -> dict[str, Any]:
    """Seconds of what others do, and what the reverse sweep would need."""
    row: dict[str, Any] = {name: policy(problem) for name, policy in OTHERS.items()}
    sweep = baselines.reverse_sweep(problem)
    row["sweep_s"], row["sweep_peak_bytes"] = sweep.seconds, sweep.peak_bytes
    return row


def measure(problem: offload.Problem, trace: Trace, bandwidth: float) -> dict[str, Any]:
    """One cell."""
    head = {"trace": trace.name, "capacity_bytes": problem.capacity, "bandwidth": bandwidth}
    try:
        step = plan_step(trace, problem)
    except TooSmallError as error:
        return {**head, "feasible": False, "smallest_bytes": error.needed}
    seconds, bound = step.timeline.seconds, step.figures["lower_bound_s"]
    if abs(seconds - bound) < 1e-12 * bound:  # The same sum in another order.
        bound = seconds
    return {
        **head,
        "feasible": True,
        "step_s": seconds,
        "lower_bound_s": bound,
        "compute_s": step.figures["compute_s"],
        "over_bound": seconds / bound - 1,
        "peak_bytes": step.peak_bytes,
        "moved_bytes": step.moved_bytes,
        "moves": len(step.figures["moves"]),
        "plan_s": step.plan_seconds,
    }


def max_live(trace: Trace, bandwidth: float) -> int:
    """Bytes that the trace needs when nothing moves."""
    return offload.plan(problem_of(trace, 2**60, bandwidth)).max_live_bytes


def show(row: dict[str, Any], live: int) -> None:
    """A line of the table."""
    head = f"{row['trace']:<20} {row['capacity_bytes'] / GIB:7.2f} {row['capacity_bytes'] / live:5.0%}"
    if not row["feasible"]:
        needed = row["smallest_bytes"]
        print(f"{head}  " + (f"needs {needed / GIB:.2f} GiB" if needed else "the tiers below are too small"))
        return
    line = (
        f"{head} {row['step_s']:9.4f} {row['lower_bound_s']:9.4f} {row['over_bound']:7.2%} "
        f"{row['peak_bytes'] / row['capacity_bytes']:8.4f} {row['moved_bytes'] / 1e9:9.1f} {row['plan_s']:7.3f}"
    )
    if "lru_s" in row:
        mark = "!" if row["sweep_peak_bytes"] > row["capacity_bytes"] else " "
        line += "".join(f" {row[name]:9.3f}" for name in (*OTHERS, "sweep_s")) + mark
    if "g10_s" in row:
        line += f" {row['g10_s']:9.3f}"
    print(line)


def measure_long(count: int) -> dict[str, Any]:
    """A drawn step of that many ops."""
    problem = oracles.long_step(count)
    began, cpu = time.perf_counter(), time.process_time()
    plan = offload.plan(problem)
    return {
        "ops": len(problem.operations),
        "tensors": len(problem.storages),
        "step_s": plan.seconds,
        "lower_bound_s": plan.bound_seconds,
        "spills": len(plan.spills),
        "plan_s": time.perf_counter() - began,
        "plan_cpu_s": time.process_time() - cpu,
        "memory_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIB,
    }


@dataclass(frozen=True, slots=True)
class Cell:
    """A trace at a capacity, and what it needs if nothing moves."""

    trace: Trace
    name: str
    capacity: int
    live: int


def cells_of(path: Path, arguments: argparse.Namespace) -> list[Cell]:
    """What is asked of a trace."""
    trace = read_trace(path)
    live = max_live(trace, arguments.bandwidth)
    capacities = [int(gib * GIB) for gib in arguments.capacity_gib]
    if arguments.g10:
        capacities = [40 * GIB]
    elif arguments.sweep:
        capacities = [int(part * live) for part in arguments.parts]
    return [Cell(trace, path.name.split(".")[0], capacity, live) for capacity in capacities]


def row_of(cell: Cell, arguments: argparse.Namespace) -> dict[str, Any]:
    """A row of the table."""
    if arguments.g10:
        problem = g10_problem(cell.trace, cell.capacity, arguments.bandwidth)
        return {
            **measure(problem, cell.trace, arguments.bandwidth),
            "g10_s": G10_SECONDS.get(cell.name, float("nan")),
        }
    problem = problem_of(cell.trace, cell.capacity, arguments.bandwidth)
    row = measure(problem, cell.trace, arguments.bandwidth)
    if arguments.sweep and row["feasible"]:
        row.update(others(problem))
    if arguments.lp and row["feasible"]:
        row["lower_bound_s"] = max(row["lower_bound_s"], oracles.fluid_bound(problem))
        row["over_bound"] = row["step_s"] / row["lower_bound_s"] - 1
    return row


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", type=Path, nargs="+", help="files of recorded steps")
    parser.add_argument("--long", type=int, nargs="+", metavar="OPS", help="drawn steps of that many ops instead")
    parser.add_argument("--capacity-gib", type=float, nargs="+", default=[40.0], help="of the device (default: 40)")
    parser.add_argument("--bandwidth", type=float, default=15.754e9, help="bytes per second, each way")
    parser.add_argument("--sweep", action="store_true", help="90 to 40 %% of what is live, and what others do")
    parser.add_argument("--parts", type=float, nargs="+", default=FRACTIONS, help="other parts for --sweep")
    parser.add_argument("--g10", action="store_true", help="with the limits of G10's simulation")
    parser.add_argument("--lp", action="store_true", help="also bound by a linear program (needs scipy)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if arguments.long:
        print(json.dumps([measure_long(count) for count in arguments.long], indent=2))
        return
    if not arguments.trace:
        parser.error("expected --trace FILE or --long OPS")
    if not arguments.json:
        head = "trace                    GiB  live    step s   bound s    over peak/cap  moved GB  plan s"
        head += "     LRU s 1 ahead s consume s   sweep s" if arguments.sweep else ""
        print(head + ("     G10 s" if arguments.g10 else ""))
    cells = [cell for path in arguments.trace for cell in cells_of(path, arguments)]
    talk = Talk(quiet=False)
    with talk.step("plan"):
        for done, cell in enumerate(cells):
            talk.advance(done, len(cells))
            rows.append(row_of(cell, arguments))
            if not arguments.json:
                show(rows[-1], cell.live)
    if arguments.json:
        print(json.dumps(rows[0] if len(rows) == 1 else rows, indent=2))


if __name__ == "__main__":
    main()
