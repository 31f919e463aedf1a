# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``hp schedule``: what a pipeline schedule looks like, and what it costs."""

from __future__ import annotations

import argparse
import json

_NAMES = ("gpipe", "1f1b", "interleaved_1f1b", "zero_bubble_h1", "auto")


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """The options of ``hp schedule``."""
    verb.add_argument("name", choices=_NAMES, metavar="SCHEDULE", help=", ".join(_NAMES))
    verb.add_argument("--stages", type=int, default=4, metavar="N", help="stages of the pipeline (default 4)")
    verb.add_argument("--microbatches", type=int, default=8, metavar="N", help="microbatches of a step (default 8)")
    verb.add_argument(
        "--groups", type=int, metavar="N", help="device groups; stage i is of group i %% N (default: one a stage)"
    )
    verb.add_argument("--forward", type=float, default=1.0, metavar="S", help="seconds of a forward (default 1)")
    verb.add_argument(
        "--backward-input", type=float, default=1.0, metavar="S", help="seconds of a backward by input (default 1)"
    )
    verb.add_argument(
        "--backward-weight", type=float, default=1.0, metavar="S", help="seconds of a backward by weight (default 1)"
    )
    verb.add_argument(
        "--split-backward",
        action="store_true",
        help="the parts of backward are tasks of their own (always so for zero_bubble_h1)",
    )
    verb.add_argument("--transfer", type=float, default=0.0, metavar="S", help="seconds between groups (default 0)")
    verb.add_argument(
        "--live", type=int, metavar="N", help="microbatches that a group has room for, of all its stages (default: any)"
    )
    verb.add_argument("--width", type=int, default=100, metavar="N", help="columns of the drawing (default 100)")


def schedule_command(arguments: argparse.Namespace) -> int:
    """``hp schedule``."""
    from hyperparallel.schedules import (
        ScheduleError,
        ScheduleName,
        actions_of,
        draw,
        find_deadlock,
        pipeline,
        schedule,
    )

    for option in ("stages", "microbatches", "groups", "width"):
        value = getattr(arguments, option)
        if value is not None and value < 1:
            raise ScheduleError(f"--{option}: expected a number of at least 1 but got {value}")
    name = ScheduleName(arguments.name)
    problem = pipeline(
        stages=arguments.stages,
        microbatches=arguments.microbatches,
        groups=arguments.groups,
        split_backward=arguments.split_backward or name is ScheduleName.ZERO_BUBBLE_H1,
        forward=arguments.forward,
        backward_input=arguments.backward_input,
        backward_weight=arguments.backward_weight,
        transfer=arguments.transfer,
        limit=arguments.live,
    )
    result = schedule(problem, name)
    fault = find_deadlock(actions_of(problem, result))
    if fault is not None:
        raise ScheduleError(fault)
    if arguments.json:
        report = {
            "schedule": str(name),
            "method": result.method,
            "seconds": result.seconds,
            "bubble": result.bubble,
            "bubble_by_group": {g: one.bubble for g, one in zip(problem.groups, result.groups, strict=True)},
            "peak_live_microbatches": list(result.peak_live),
            "peak_live_by_group": {g: one.peak_bytes for g, one in zip(problem.groups, result.groups, strict=True)},
            "free_of_deadlock": True,
            "declined": list(result.declined),
        }
        print(json.dumps(report, indent=2))
        return 0
    print(draw(problem, result, width=arguments.width))
    print(f"\n{result.method}: {result.seconds:.6g} s, bubble {100 * result.bubble:.1f} %, free of deadlock")
    print("live microbatches by stage: " + ", ".join(map(str, result.peak_live)))
    for text in result.declined:
        print(f"declined {text}")
    return 0
