# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled pipelines of balanced stages have the bubble of the closed form when they are simulated, by every schedule."""

from __future__ import annotations

import pytest
from mlir import ir
from mlir.passmanager import PassManager

from hyperparallel.dialects import supernode
from hyperparallel.pipeline import make_context
from hyperparallel.simulator import Timeline, simulate_program

_TYPE = "tensor<512x512xf32>"
_WIDE, _DEEP = "tensor<512x131072xf32>", "tensor<131072x512xf32>"
#: Beside what the closed forms speak of: transfers, and what starts a kernel.
_TOLERANCE = 0.01


def _fragment(name: str, kind: str, stage: int, microbatch: int, group: int, inputs: list[str], products: int) -> str:
    """A fragment of so many equal matrix products."""
    arguments = [*inputs, "%wide", "%deep"]
    types = [*([_TYPE] * len(inputs)), _WIDE, _DEEP]
    blocks = ", ".join(f"%p{index}: {type_}" for index, type_ in enumerate(types))
    wide, deep = f"%p{len(inputs)}", f"%p{len(inputs) + 1}"
    body = ""
    for index in range(products):
        source = f"%p{index % len(inputs)}" if index == 0 or kind != "forward" else f"%y{index - 1}"
        body += f"""
      %e{index} = tensor.empty() : {_WIDE}
      %x{index} = linalg.matmul ins({source}, {wide} : {_TYPE}, {_WIDE}) outs(%e{index} : {_WIDE}) -> {_WIDE}
      %z{index} = tensor.empty() : {_TYPE}
      %y{index} = linalg.matmul ins(%x{index}, {deep} : {_WIDE}, {_DEEP}) outs(%z{index} : {_TYPE}) -> {_TYPE}"""
    results = [f"%y{index}" for index in range(products)] if kind == "backward" else [f"%y{products - 1}"]
    out = ", ".join([_TYPE] * len(results))
    return f"""
    {name}{f":{len(results)}" if len(results) > 1 else ""} = hypermpmd.fragment on "g{group}" stage {stage} microbatch {microbatch} {kind} \
({", ".join(arguments)}) : ({", ".join(types)}) -> {f"({out})" if len(results) > 1 else out} {{
    ^bb0({blocks}):{body}
      hypermpmd.yield {", ".join(results)} : {out}
    }}"""


def pipeline(groups: int, stages: int, microbatches: int, *, split: bool) -> str:
    """A pipeline as text: forward of one unit of time, backward of two, or in two parts of one each."""
    lines: list[str] = []
    for microbatch in range(microbatches):
        handed = "%x"
        for stage in range(stages):
            name = f"%f{stage}_{microbatch}"
            lines.append(_fragment(name, "forward", stage, microbatch, stage % groups, [handed], 1))
            handed = name
    results: list[str] = []
    for microbatch in range(microbatches):
        handed = f"%f{stages - 1}_{microbatch}"
        for stage in reversed(range(stages)):
            saved = f"%f{stage}_{microbatch}"
            group = stage % groups
            if split:
                name, weight = f"%b{stage}_{microbatch}", f"%w{stage}_{microbatch}"
                lines.append(_fragment(name, "backward_input", stage, microbatch, group, [handed, saved], 1))
                lines.append(_fragment(weight, "backward_weight", stage, microbatch, group, [handed, saved], 1))
                results.append(weight)
                handed = name
            else:
                name = f"%b{stage}_{microbatch}"
                lines.append(_fragment(name, "backward", stage, microbatch, group, [handed, saved], 2))
                # What the stage before waits for comes last, or it would begin before the fragment ends.
                results.append(f"{name}#0")
                handed = f"{name}#1"
        results.append(handed)
    topology = ", ".join(f'"g{group}" = <["dp"=1]>' for group in range(groups))
    types = ", ".join([_TYPE] * len(results))
    return f"""
module attributes {{hypermpmd.topology = #hypermpmd.topology<{topology}>}} {{
  func.func @main(%x: {_TYPE}, %wide: {_WIDE}, %deep: {_DEEP}) -> ({types}) {{{"".join(lines)}
    return {", ".join(results)} : {types}
  }}
}}
"""


def simulated(text: str, schedule: str) -> Timeline:
    """The pipeline, split into programs by the schedule, on a machine."""
    context = make_context()
    module = ir.Module.parse(text, context)
    supernode.set_machine(module, "h200-node")
    steps = (
        f"hypermpmd-infer-transfers,hypermpmd-schedule{{schedule={schedule}}},hp-split,hypershard-reorder-collectives,"
        "hypermpmd-resolve-transfers,hypermpmd-flatten-programs"
    )
    with context:
        PassManager.parse(f"builtin.module({steps})", context).run(module.operation)
    return simulate_program(module)


def bubble(timeline: Timeline) -> float:
    """The part of the step in which the mean device computes nothing."""
    assert timeline.utilisation is not None
    return 1 - timeline.utilisation


@pytest.mark.parametrize(("stages", "microbatches"), [(2, 1), (2, 4), (4, 8), (4, 2)])
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_bubble_of_balanced_stages(schedule: str, stages: int, microbatches: int) -> None:
    timeline = simulated(pipeline(stages, stages, microbatches, split=False), schedule)
    closed = (stages - 1) / (microbatches + stages - 1)
    assert bubble(timeline) == pytest.approx(closed, abs=_TOLERANCE)


@pytest.mark.parametrize(("groups", "chunks", "microbatches"), [(2, 2, 4), (4, 2, 8)])
def test_bubble_of_interleaved_stages(groups: int, chunks: int, microbatches: int) -> None:
    timeline = simulated(pipeline(groups, groups * chunks, microbatches, split=False), "interleaved_1f1b")
    closed = (groups - 1) / (chunks * microbatches + groups - 1)
    assert bubble(timeline) == pytest.approx(closed, abs=_TOLERANCE)


@pytest.mark.parametrize(("stages", "microbatches"), [(2, 4), (4, 8)])
def test_bubble_of_zero_bubble_h1(stages: int, microbatches: int) -> None:
    timeline = simulated(pipeline(stages, stages, microbatches, split=True), "zero_bubble_h1")
    closed = (stages - 1) / (3 * microbatches + stages - 1)
    assert bubble(timeline) == pytest.approx(closed, abs=_TOLERANCE)
