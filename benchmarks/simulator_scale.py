# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the simulator's time grows: pipelines of 16 stages and 64 microbatches, forward and backward, in 1F1B order.

    python benchmarks/simulator_scale.py [--json]

`engine`: every device group is simulated by itself (64 pipelines of 16 stages are 1,024 groups). Activations and
gradients are sent to the neighbour, who must be there to receive them, over a port that all transfers of a group share.
`wall_s` and `cpu_s` are those of the call of `simulate`, with handing the tasks over from Python; an event is a start of
a task, or the start or the end of a flow.

`program`: the same as a program of tasks for 16 stages of 64 data-parallel members each on 1,024 dies, with an
all-reduce of each stage's gradients; members are simulated once. `wall_s` is from the text to the timeline as JSON;
several steps are simulated, and one of the steady state is reported.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from hyperparallel.simulator import Task, simulate

STAGES, MICROBATCHES, MEMBERS = 16, 64, 64
FORWARD, BACKWARD = 1e-3, 2e-3
TRANSFER_BYTES, RATE, LATENCY = 16_000_000, 146e9, 3.1e-6
GRADIENT_BYTES = 400_000_000
MACHINE = "cloudmatrix384@1024"


def schedule(stage: int) -> list[tuple[str, int]]:
    """1F1B: as many forwards as there are later stages, then one of each, then the backwards that are left."""
    ahead = min(STAGES - stage, MICROBATCHES)
    order = [("forward", batch) for batch in range(ahead)]
    for batch in range(MICROBATCHES):
        order.append(("backward", batch))
        if ahead + batch < MICROBATCHES:
            order.append(("forward", ahead + batch))
    return order


def neighbours(kind: str, stage: int) -> tuple[int | None, int | None]:
    """From whom a stage receives, and to whom it sends."""
    before, after = (stage - 1, stage + 1) if kind == "forward" else (stage + 1, stage - 1)
    return before if 0 <= before < STAGES else None, after if 0 <= after < STAGES else None


def pipeline(name: str, tasks: list[Task]) -> None:
    """Adds the tasks of one pipeline."""
    planned: list[tuple[str, str, int, int]] = []
    for stage in range(STAGES):
        for kind, batch in schedule(stage):
            before, after = neighbours(kind, stage)
            planned += [("receive", kind, stage, batch)] if before is not None else []
            planned.append(("run", kind, stage, batch))
            planned += [("send", kind, stage, batch)] if after is not None else []
    number = {key: len(tasks) + index for index, key in enumerate(planned)}
    for what, kind, stage, batch in planned:
        before, after = neighbours(kind, stage)
        group = f"{name}.{stage}"
        match what:
            case "send":
                tasks.append(
                    Task(
                        f"{group}.{kind}.out",
                        LATENCY,
                        TRANSFER_BYTES,
                        RATE,
                        (group,),
                        (number["run", kind, stage, batch],),
                        number["receive", kind, after or 0, batch],
                    )
                )
            case "receive":
                tasks.append(Task(f"{group}.{kind}.in", meets=number["send", kind, before or 0, batch]))
            case _:
                needed = [number["receive", kind, stage, batch]] if before is not None else []
                if kind == "backward":
                    needed.append(number["run", "forward", stage, batch])
                tasks.append(Task(group, FORWARD if kind == "forward" else BACKWARD, after=tuple(needed)))


def measure_engine(pipelines: int) -> dict[str, Any]:
    """One row of groups that are simulated each by itself."""
    tasks: list[Task] = []
    for number in range(pipelines):
        pipeline(f"p{number}", tasks)
    ports = {f"p{number}.{stage}": RATE for number in range(pipelines) for stage in range(STAGES)}
    simulate([])  # loads the compiled part
    wall, cpu = time.perf_counter(), time.process_time()
    result = simulate(tasks, segments=ports)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    events = sum(3 if task.bytes else 1 for task in tasks)
    return {
        "what": "engine",
        "groups": pipelines * STAGES,
        "tasks": len(tasks),
        "events": events,
        "step_s": result.seconds,
        "step_without_transfers_s": (MICROBATCHES + STAGES - 1) * (FORWARD + BACKWARD),
        "wall_s": wall,
        "cpu_s": cpu,
        "cpu_us_per_event": cpu / events * 1e6,
    }


def stage_program(stage: int) -> str:
    """The program of one stage."""
    value, gradients = f"tensor<{TRANSFER_BYTES}xi8>", f"tensor<{GRADIENT_BYTES // 4}xf32>"
    lines: list[str] = [f"%g0 = tensor.empty() : {gradients}"]
    latest = "%g0"
    for kind, batch in schedule(stage):
        before, after = neighbours(kind, stage)
        tag = batch if kind == "forward" else MICROBATCHES + batch
        inputs: list[str] = []
        if before is not None:
            lines.append(f'%in{tag} = supernode.recv from "s{before}" tag {tag} : {value}')
            inputs.append(f"%in{tag}")
        if kind == "backward":
            inputs.append(f"%out{batch}")
        ins = f"ins({', '.join(inputs)} : {', '.join([value] * len(inputs))})" if inputs else ""
        seconds = f"{{seconds = {FORWARD if kind == 'forward' else BACKWARD:e}}}"
        lines.append(f"%e{tag} = tensor.empty() : {value}")
        if kind == "forward":
            lines.append(f'%out{tag} = supernode.task "forward" {ins} outs(%e{tag} : {value}) {seconds}')
        else:
            outs = f"outs(%e{tag}, {latest} : {value}, {gradients})"
            lines.append(f'%r{tag}:2 = supernode.task "backward" {ins} {outs} {seconds}')
            latest = f"%r{tag}#1"
        if after is not None:
            made = f"%out{tag}" if kind == "forward" else f"%r{tag}#0"
            lines.append(f'supernode.send {made} to "s{after}" tag {tag} : {value}')
    lines.append(f'%sum = hypershard.all_reduce {latest} over @dp {{"dp"}} <sum> : {gradients} -> {gradients}')
    body = "\n  ".join(lines)
    devices = f"[{stage * MEMBERS}, {MEMBERS}]"
    return f"""func.func @s{stage}() attributes {{supernode.program = "s{stage}", supernode.devices = {devices}}} {{
  {body}
  return
}}"""


def measure_program() -> dict[str, Any]:
    """The row of the program whose members are simulated once."""
    from mlir import ir

    from hyperparallel import dialects
    from hyperparallel.simulator import simulate_program

    stages = "\n".join(stage_program(stage) for stage in range(STAGES))
    text = f'hypershard.mesh @dp = <["dp"={MEMBERS}]>\n{stages}'
    context = ir.Context()
    dialects.register(context)
    wall, cpu = time.perf_counter(), time.process_time()
    with context:
        timeline = simulate_program(ir.Module.parse(text), machine=MACHINE)
    size = len(timeline.to_json_text())
    return {
        "what": "program",
        "groups": len(timeline.groups),
        "devices": timeline.devices,
        "tasks": len(timeline.tasks),
        "step_s": timeline.seconds,
        "bubble_s": timeline.exposed.bubble,
        "exposed_communication_s": timeline.exposed.communication,
        "json_bytes": size,
        "wall_s": time.perf_counter() - wall,
        "cpu_s": time.process_time() - cpu,
    }


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--pipelines", type=int, nargs="+", default=[1, 8, 64, 128], help="rows (default: 1 8 64 128)")
    arguments = parser.parse_args()
    rows = [measure_engine(pipelines) for pipelines in arguments.pipelines]
    program = measure_program()
    if arguments.json:
        print(json.dumps([*rows, program], indent=2))
        return
    print("  groups     tasks    events   step s   wall s    cpu s  us/event")
    for row in rows:
        print(
            "{groups:8} {tasks:9} {events:9} {step_s:8.4f} {wall_s:8.3f} {cpu_s:8.3f} {cpu_us_per_event:9.2f}".format(
                **row
            )
        )
    print(
        "program: {groups} groups of {devices} devices, {tasks} tasks: step {step_s:.4f} s (bubble {bubble_s:.4f} s), "
        "{wall_s:.2f} s wall, {cpu_s:.2f} s cpu".format(**program)
    )


if __name__ == "__main__":
    main()
