# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans for recorded training steps: how far from the lower bound a step is when it has to fit less memory.

    python benchmarks/offload_traces.py --trace FILE --capacity-gib 40 --bandwidth 15.754e9 --json
    python benchmarks/offload_traces.py --trace FILE ... --sweep [--json]
    python benchmarks/offload_traces.py --trace FILE ... --g10 [--json]
    python benchmarks/offload_traces.py --long OPS ... [--json]

`--sweep` plans each trace at 90 to 40 % of what it needs when nothing moves, and shows beside it what others do: LRU on
demand; what leaves is fetched one op ahead (vDNN) or at its consumer, greedily; reloads as late as possible on one
queue, whatever memory there is (PyTorch's reverse sweep; `!` marks what would not fit). `--g10` has the limits of G10's
simulation: 40 GiB, 128 GB of host memory, an SSD of 3.2 GB/s behind it on the same wire, 45 us for each transfer; its
published times stand beside it. (G10 also moves 4 KiB pages on faults, which is not modelled.)
`--long` plans drawn steps of that many ops, for the time that planning takes.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hyperparallel import offload
from hyperparallel.simulator import Trace, read_trace
from hyperparallel.testing import offload_baselines as baselines
from hyperparallel.testing import offload_oracles as oracles

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
    capacity = problem.capacity
    began = time.perf_counter()
    try:
        plan = offload.plan(problem)
    except offload.CapacityError as error:
        return {"trace": trace.name, "capacity_bytes": capacity, "feasible": False, "smallest_bytes": error.needed}
    return {
        "trace": trace.name,
        "capacity_bytes": capacity,
        "bandwidth": bandwidth,
        "feasible": True,
        "step_s": plan.seconds,
        "lower_bound_s": plan.bound_seconds,
        "compute_s": plan.compute_seconds,
        "over_bound": plan.over_bound,
        "peak_bytes": plan.peak_bytes,
        "moved_bytes": plan.bytes_out + plan.bytes_in,
        "spills": len(plan.spills),
        "plan_s": time.perf_counter() - began,
    }


def max_live(trace: Trace, bandwidth: float) -> int:
    """Bytes that the trace needs when nothing moves."""
    return offload.plan(problem_of(trace, 2**60, bandwidth)).max_live_bytes


def show(row: dict[str, Any], live: int) -> None:
    """A line of the table."""
    head = f"{row['trace']:<20} {row['capacity_bytes'] / GIB:7.2f} {row['capacity_bytes'] / live:5.0%}"
    if not row["feasible"]:
        print(f"{head}  needs {row['smallest_bytes'] / GIB:.2f} GiB")
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


def rows_of(path: Path, arguments: argparse.Namespace) -> Iterator[tuple[dict[str, Any], int]]:
    """The rows of a trace, and what it needs if nothing moves."""
    trace = read_trace(path)
    live = max_live(trace, arguments.bandwidth)
    if arguments.g10:
        problem = g10_problem(trace, 40 * GIB, arguments.bandwidth)
        row = measure(problem, trace, arguments.bandwidth)
        yield {**row, "g10_s": G10_SECONDS.get(path.name.split(".")[0], float("nan"))}, live
        return
    capacities = [int(gib * GIB) for gib in arguments.capacity_gib]
    for capacity in [int(part * live) for part in FRACTIONS] if arguments.sweep else capacities:
        problem = problem_of(trace, capacity, arguments.bandwidth)
        row = measure(problem, trace, arguments.bandwidth)
        if arguments.sweep and row["feasible"]:
            row.update(others(problem))
        if arguments.lp and row["feasible"]:
            row["lower_bound_s"] = max(row["lower_bound_s"], oracles.fluid_bound(problem))
            row["over_bound"] = row["step_s"] / row["lower_bound_s"] - 1
        yield row, live


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", type=Path, nargs="+", help="files of recorded steps")
    parser.add_argument("--long", type=int, nargs="+", metavar="OPS", help="drawn steps of that many ops instead")
    parser.add_argument("--capacity-gib", type=float, nargs="+", default=[40.0], help="of the device (default: 40)")
    parser.add_argument("--bandwidth", type=float, default=15.754e9, help="bytes per second, each way")
    parser.add_argument("--sweep", action="store_true", help="90 to 40 %% of what is live, and what others do")
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
    for path in arguments.trace:
        for row, live in rows_of(path, arguments):
            rows.append(row)
            if not arguments.json:
                show(row, live)
    if arguments.json:
        print(json.dumps(rows[0] if len(rows) == 1 else rows, indent=2))


if __name__ == "__main__":
    main()
