# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the simulator's time grows with tasks: pipelines of 16 stages, forward and backward, with transfers.

    python benchmarks/simulator_scale.py [--json]

Each row is one simulation of that many device groups (64 pipelines of 16 stages are 1,024), 64 microbatches each, in
1F1B order; activations and gradients go to the neighbour over a port that all transfers of a group share. `wall_s` and
`cpu_s` are those of the call of `simulate`, with handing the tasks over from Python.
"""

from __future__ import annotations

import argparse
import json
import time

from hyperparallel.simulator import Task, simulate

STAGES, MICROBATCHES = 16, 64
FORWARD, BACKWARD = 1e-3, 2e-3
TRANSFER_BYTES, RATE = 16e6, 146e9


def schedule(stage: int) -> list[tuple[str, int]]:
    """1F1B: as many forwards as there are later stages, then one of each, then the backwards that are left."""
    ahead = min(STAGES - stage, MICROBATCHES)
    order = [("forward", batch) for batch in range(ahead)]
    for batch in range(MICROBATCHES):
        order.append(("backward", batch))
        if ahead + batch < MICROBATCHES:
            order.append(("forward", ahead + batch))
    return order


def pipeline(name: str, tasks: list[Task]) -> None:
    """Adds the tasks of one pipeline."""
    first = len(tasks)
    numbers: dict[tuple[str, str, int, int], int] = {}
    planned: list[tuple[str, str, int, int]] = []
    for stage in range(STAGES):
        for kind, batch in schedule(stage):
            planned.append(("run", kind, stage, batch))
            last = stage == (STAGES - 1 if kind == "forward" else 0)
            if not last:
                planned.append(("send", kind, stage, batch))
    for number, key in enumerate(planned):
        numbers[key] = first + number
    for what, kind, stage, batch in planned:
        if what == "send":
            tasks.append(
                Task(
                    f"{name}.{stage}.{kind}",
                    3.1e-6,
                    TRANSFER_BYTES,
                    RATE,
                    (f"{name}.{stage}",),
                    (numbers["run", kind, stage, batch],),
                )
            )
            continue
        after: list[int] = []
        before = stage - 1 if kind == "forward" else stage + 1
        if 0 <= before < STAGES:
            after.append(numbers["send", kind, before, batch])
        if kind == "backward":
            after.append(numbers["run", "forward", stage, batch])
        tasks.append(Task(f"{name}.{stage}", FORWARD if kind == "forward" else BACKWARD, after=tuple(after)))


def measure(pipelines: int) -> dict[str, float]:
    """One row."""
    tasks: list[Task] = []
    for number in range(pipelines):
        pipeline(f"p{number}", tasks)
    ports = {f"p{number}.{stage}": RATE for number in range(pipelines) for stage in range(STAGES)}
    simulate([])  # loads the compiled part
    wall, cpu = time.perf_counter(), time.process_time()
    result = simulate(tasks, segments=ports)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    ideal = (MICROBATCHES + STAGES - 1) * (FORWARD + BACKWARD)
    return {
        "groups": pipelines * STAGES,
        "tasks": len(tasks),
        "step_s": result.seconds,
        "step_without_transfers_s": ideal,
        "wall_s": wall,
        "cpu_s": cpu,
        "cpu_us_per_task": cpu / len(tasks) * 1e6,
    }


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--pipelines", type=int, nargs="+", default=[2, 16, 64, 256], help="rows (default: 2 16 64 256)"
    )
    arguments = parser.parse_args()
    rows = [measure(pipelines) for pipelines in arguments.pipelines]
    if arguments.json:
        print(json.dumps(rows, indent=2))
        return
    print("  groups     tasks   step s   wall s    cpu s  us/task")
    for row in rows:
        print("{groups:8} {tasks:9} {step_s:8.4f} {wall_s:8.3f} {cpu_s:8.3f} {cpu_us_per_task:8.2f}".format(**row))


if __name__ == "__main__":
    main()
