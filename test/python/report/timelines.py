# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Timelines made by hand, whose every number is known."""

from __future__ import annotations

import dataclasses
from typing import Any

from hyperparallel.report.intervals import length, union
from hyperparallel.report.measured import exposed_of
from hyperparallel.simulator.timeline import (
    CollectiveUse,
    Exposed,
    Group,
    LinkKind,
    LinkUse,
    Stream,
    StreamKind,
    TaskSpan,
    TensorUse,
    TierUse,
    Timeline,
    TimelineKind,
)

GIB = float(1 << 30)
HOSTILE = "</script><script>alert('{{DATA}}')</script><img src=x onerror=alert(1)>"


def two_layers(**changes: Any) -> Timeline:
    """One group of four devices: two matmuls with an all-reduce after each, the first of them half hidden.

    compute        |matmul 0-4|add 4-5|matmul 5-7    |
    communication       |all_reduce 3-6|     |all_reduce 7-8|
    d2h                                               |store 8-8.5|  and nothing until 9
    """
    tasks = (
        TaskSpan("linalg.matmul", "model.layers.0", 0, 0, 0.0, 4.0, 4e9, 1e6, 0.0, "compute", ""),
        TaskSpan("linalg.generic", "model.layers.0", 0, 0, 4.0, 5.0, 1e6, 2e6, 0.0, "memory", ""),
        TaskSpan("linalg.matmul", "model.layers.1", 0, 0, 5.0, 7.0, 2e9, 1e6, 0.0, "compute", ""),
        TaskSpan(
            "hypershard.all_reduce", "model.layers.0", 0, 1, 3.0, 6.0, 0.0, 8e6, 6e6, "communication", "ring over tp"
        ),
        TaskSpan(
            "hypershard.all_reduce", "model.layers.1", 0, 1, 7.0, 8.0, 0.0, 4e6, 3e6, "communication", "ring over tp"
        ),
        TaskSpan("offload.store", "model.layers.1", 0, 2, 8.0, 8.5, None, 5e6, None, "none", "h0 rests until step 2"),
    )
    exposed = Exposed(communication=1.0, transfer=0.5, bubble=0.5)
    values: dict[str, Any] = {
        "kind": TimelineKind.SIMULATED,
        "name": "two_layers",
        "machine": "h200-node",
        "mesh": {"dp": 2, "tp": 2},
        "devices": 4,
        "seconds": 9.0,
        "first_step_seconds": 9.5,
        "flops": 6.001e9,
        "mfu": 0.5,
        "utilisation": 7 / 9,
        "exposed": exposed,
        "groups": (
            Group(
                "main",
                4,
                (
                    Stream("compute", StreamKind.COMPUTE, 7.0),
                    Stream("communication", StreamKind.COMMUNICATION, 4.0),
                    Stream("d2h", StreamKind.D2H, 0.5),
                ),
                exposed,
            ),
        ),
        "tiers": (
            TierUse("hbm", 0, 4 * GIB, 3 * GIB, ((0.0, GIB), (2.0, 3 * GIB), (8.5, 2 * GIB))),
            TierUse("dram", 0, None, GIB, ((0.0, 0.0), (8.5, GIB))),
        ),
        "links": (
            LinkUse("nvlink", LinkKind.LEVEL, 9e8, 9e6, 0.25),
            LinkUse("pcie", LinkKind.LINK, 1e7, 5e6, 0.5),
        ),
        "collectives": (CollectiveUse("hypershard.all_reduce", 2, 9e6, 4.0, 1.0),),
        "tensors": (
            TensorUse("x", "input", (8, 16), "f32", '[{"dp"}, {}]', 256.0),
            TensorUse("model.layers.0.w", "parameter", (16, 64), "f32", '[{}, {"tp"}]', 2048.0),
            TensorUse("model.layers.1.w", "parameter", (64, 16), "bf16", '[{"tp"}, {}], replicated={"dp"}', 1024.0),
        ),
        "tasks": tasks,
    }
    return Timeline(**{**values, **changes})


def hostile() -> Timeline:
    """Every name would run a script if it were taken for markup."""
    one = two_layers(name=HOSTILE, machine=HOSTILE)
    return dataclasses.replace(
        one,
        tasks=tuple(dataclasses.replace(task, op=HOSTILE, path=HOSTILE, reason=HOSTILE) for task in one.tasks),
        tensors=tuple(dataclasses.replace(tensor, name=HOSTILE, sharding=HOSTILE) for tensor in one.tensors),
    )


def pipeline(stages: int = 4, microbatches: int = 8, layers: int = 4) -> Timeline:
    """A pipeline of groups, first all forward, then all backward; activations rest in host memory in between.

    A forward takes 2 ms, a backward 4 ms, a message 0.5 ms, a store or a fetch of an activation 1 ms.
    """
    forward, backward, hop, copy, activation = 2e-3, 4e-3, 0.5e-3, 1e-3, 96.0 * (1 << 20)
    spans: list[list[list[tuple[str, str, float, float]]]] = [[[] for _ in range(4)] for _ in range(stages)]
    memory: list[list[tuple[float, float]]] = [[] for _ in range(stages)]
    free = [0.0] * stages

    def work(stage: int, name: str, ready: float, seconds: float, number: int) -> float:
        start = max(free[stage], ready)
        for layer in range(layers):
            begin = start + seconds * layer / layers
            path = f"model.layers.{stage * layers + (layer if name == 'forward' else layers - 1 - layer)}"
            spans[stage][0].append((f"{name}", f"{path}", begin, begin + seconds / layers))
        free[stage] = start + seconds
        del number
        return free[stage]

    arrived = [[0.0] * microbatches for _ in range(stages + 1)]
    stored = [[0.0] * microbatches for _ in range(stages)]
    for number in range(microbatches):
        for stage in range(stages):
            done = work(stage, "forward", arrived[stage][number], forward, number)
            memory[stage].append((done - forward, activation))
            busy = spans[stage][2][-1][3] if spans[stage][2] else 0.0
            begin = max(done, busy)
            spans[stage][2].append(("offload.store", f"microbatch.{number}", begin, begin + copy))
            stored[stage][number] = begin + copy
            memory[stage].append((begin + copy, -activation))
            if stage + 1 < stages:
                sent = spans[stage][1][-1][3] if spans[stage][1] else 0.0
                begin = max(done, sent)
                spans[stage][1].append(("hypermpmd.send", f"microbatch.{number}", begin, begin + hop))
                arrived[stage + 1][number] = begin + hop
    back = [[0.0] * microbatches for _ in range(stages)]
    for number in reversed(range(microbatches)):
        for stage in reversed(range(stages)):
            ready = max(free[stage], back[stage][number])
            busy = spans[stage][3][-1][3] if spans[stage][3] else 0.0
            begin = max(ready - copy, busy, stored[stage][number])
            spans[stage][3].append(("offload.prefetch", f"microbatch.{number}", begin, begin + copy))
            memory[stage].append((begin, activation))
            done = work(stage, "backward", max(ready, begin + copy), backward, number)
            memory[stage].append((done, -activation))
            if stage:
                sent = spans[stage][1][-1][3] if spans[stage][1] else 0.0
                begin = max(done, sent)
                spans[stage][1].append(("hypermpmd.send", f"microbatch.{number}", begin, begin + hop))
                back[stage - 1][number] = begin + hop
    return _timeline_of(spans, memory, stages, activation)


def _timeline_of(spans: Any, memory: Any, stages: int, activation: float) -> Timeline:
    kinds = (StreamKind.COMPUTE, StreamKind.NETWORK, StreamKind.D2H, StreamKind.H2D)
    end = max(span[3] for stage in spans for stream in stage for span in stream)
    weights = 2.5 * GIB
    groups: list[Group] = []
    tasks: list[TaskSpan] = []
    tiers: list[TierUse] = []
    for number, (streams, changes) in enumerate(zip(spans, memory, strict=True)):
        times = [[(start, stop) for _, _, start, stop in stream] for stream in streams]
        exposed = exposed_of(times[0], times[1], [*times[2], *times[3]], end)
        groups.append(
            Group(
                f"stage {number}",
                8,
                tuple(
                    Stream(str(kind), kind, length(union(one))) for kind, one in zip(kinds, times, strict=True) if one
                ),
                exposed,
            )
        )
        used = [index for index, one in enumerate(times) if one]
        for place, index in enumerate(used):
            for op, path, start, stop in streams[index]:
                compute = index == 0
                tasks.append(
                    TaskSpan(
                        op,
                        path,
                        number,
                        place,
                        start,
                        stop,
                        2e12 * (stop - start) if compute else None,
                        activation if not compute else 4e11 * (stop - start),
                        activation if index == 1 else None,
                        "compute" if compute else "communication" if index == 1 else "none",
                        "" if compute else "to the next stage" if index == 1 else "rests in host memory until backward",
                    )
                )
        level, points = weights, [(0.0, weights)]
        for time, change in sorted(changes):
            level += change
            points.append((time, level))
        tiers.append(TierUse("hbm", number, 3 * GIB, max(size for _, size in points), tuple(points)))
    return Timeline(
        kind=TimelineKind.SIMULATED,
        name="pipeline",
        machine="h200-node",
        mesh={"stage": stages, "dp": 8},
        devices=stages * 8,
        seconds=end,
        first_step_seconds=end,
        flops=2e12 * sum(stop - start for _, _, start, stop in spans[0][0]),
        mfu=0.41,
        utilisation=sum(group.streams[0].busy for group in groups) / stages / end,
        exposed=Exposed(
            *(
                sum(getattr(group.exposed, name) for group in groups) / stages
                for name in ("communication", "transfer", "bubble")
            )
        ),
        groups=tuple(groups),
        tiers=tuple(tiers),
        tasks=tuple(tasks),
    )


def many(count: int) -> Timeline:
    """A stream of ``count`` tasks of 0.75 ms, one each millisecond."""
    tasks = tuple(
        TaskSpan(
            f"linalg.op{i % 7}", f"model.layers.{i // 100}", 0, 0, i * 1e-3, i * 1e-3 + 7.5e-4, 1e6, 1e3, 0.0, "compute"
        )
        for i in range(count)
    )
    busy = count * 7.5e-4
    bubble = Exposed(0.0, 0.0, count * 2.5e-4)
    return two_layers(
        name="many",
        seconds=count * 1e-3,
        exposed=bubble,
        groups=(Group("main", 4, (Stream("compute", StreamKind.COMPUTE, busy),), bubble),),
        tiers=(TierUse("hbm", 0, 4 * GIB, GIB, tuple((i * 1e-3, float(i % 97 + 1) / 97 * GIB) for i in range(count))),),
        collectives=(),
        links=(),
        tasks=tasks,
    )
