# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans for recorded training steps: how far from the lower bound a step is when it has to fit less memory.

    python benchmarks/offload_traces.py --trace FILE --capacity-gib 40 --bandwidth 15.754e9 --json
    python benchmarks/offload_traces.py --trace FILE ... --sweep [--json]

`--sweep` plans each trace at 90 to 40 % of what it needs when nothing moves.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from hyperparallel import offload
from hyperparallel.simulator import Trace, read_trace

GIB = 2**30
FRACTIONS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4)


def problem_of(trace: Trace, capacity: int, bandwidth: float) -> offload.Problem:
    """The trace on a device with a host whose memory is as large as need be."""
    link = offload.Link(bandwidth)
    return offload.Problem.of_trace(trace, capacity, offload.Tier("host", 2**50, link, link))


def measure(trace: Trace, capacity: int, bandwidth: float) -> dict[str, Any]:
    """One cell."""
    problem = problem_of(trace, capacity, bandwidth)
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
    print(
        f"{head} {row['step_s']:9.4f} {row['lower_bound_s']:9.4f} {row['over_bound']:7.2%} "
        f"{row['peak_bytes'] / row['capacity_bytes']:8.4f} {row['moved_bytes'] / 1e9:9.1f} {row['plan_s']:7.3f}"
    )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", type=Path, nargs="+", required=True, help="files of recorded steps")
    parser.add_argument("--capacity-gib", type=float, nargs="+", default=[40.0], help="of the device (default: 40)")
    parser.add_argument("--bandwidth", type=float, default=15.754e9, help="bytes per second, each way")
    parser.add_argument("--sweep", action="store_true", help="90 to 40 %% of what is live")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if not arguments.json:
        print("trace                    GiB  live    step s   bound s    over peak/cap  moved GB  plan s")
    for path in arguments.trace:
        trace = read_trace(path)
        live = max_live(trace, arguments.bandwidth)
        capacities = [int(gib * GIB) for gib in arguments.capacity_gib]
        for capacity in [int(part * live) for part in FRACTIONS] if arguments.sweep else capacities:
            rows.append(measure(trace, capacity, arguments.bandwidth))
            if not arguments.json:
                show(rows[-1], live)
    if arguments.json:
        print(json.dumps(rows[0] if len(rows) == 1 else rows, indent=2))


if __name__ == "__main__":
    main()
