# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every schedule on 2 to 6 stages with 1 to 9 microbatches, through the passes that compiled programs go through: the
programs that come out end, and one of which two messages were exchanged is judged as by a search over all interleavings.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from interleavings import can_end
from mlir import ir
from mlir.passmanager import PassManager

from hyperparallel.compile import describe_program
from hyperparallel.enums import Role
from hyperparallel.frontend.artifact import ArgumentInfo, BlockInfo, ImportedModel, ResultInfo
from hyperparallel.mpmd.compiling import split_model
from hyperparallel.pipeline import MLIRError
from hyperparallel.plan import GroupedPlan, Plan, Schedule
from hyperparallel.schedules import Action, Receive, Send

STAGES, MICROBATCHES = range(2, 7), range(1, 10)
ROW, PAIR = "tensor<4xf32>", "(tensor<4xf32>, tensor<4xf32>)"

FUNCTIONS = f"""
func.func private @block(%x: {ROW}, %w: {ROW}) -> {ROW} {{
  %p = arith.mulf %x, %w : {ROW}
  %y = arith.addf %p, %x : {ROW}
  return %y : {ROW}
}}
func.func private @backward(%d: {ROW}, %x: {ROW}, %w: {ROW}) -> {PAIR} {{
  %p = arith.mulf %d, %w : {ROW}
  %dx = arith.addf %p, %d : {ROW}
  %dw = arith.mulf %d, %x : {ROW}
  return %dx, %dw : {ROW}, {ROW}
}}
func.func private @update(%w: {ROW}, %d: {ROW}) -> {ROW} {{
  %n = arith.addf %w, %d : {ROW}
  return %n : {ROW}
}}"""


def training(blocks: int, microbatches: int) -> ImportedModel:
    """A step of blocks y = x w + x, of which the last has the weight of the first."""
    owners = [*range(blocks - 1), 0]
    batch = f"tensor<{microbatches}x4xf32>"
    body = [f"%x0 = tensor.extract_slice %x[%m, 0] [1, 4] [1, 1] : {batch} to {ROW}"]
    body += [
        f'%x{n + 1} = func.call @block(%x{n}, %w{owner}) {{hp.path = "h.{n}", hp.phase = "forward"}} : {PAIR} -> {ROW}'
        for n, owner in enumerate(owners)
    ]
    gradient, sums = f"%x{blocks}", {owner: f"%a{owner}" for owner in owners}
    for n, owner in reversed([*enumerate(owners)]):
        body.append(
            f"%d{n}:2 = func.call @backward({gradient}, %x{n}, %w{owner}) "
            f'{{hp.path = "h.{n}", hp.phase = "backward"}} : ({ROW}, {ROW}, {ROW}) -> {PAIR}'
        )
        body.append(f"%s{n} = arith.addf {sums[owner]}, %d{n}#1 : {ROW}")
        gradient, sums[owner] = f"%d{n}#0", f"%s{n}"
    weights = sorted(sums)
    types = ", ".join([ROW] * len(weights))
    body.append(f"scf.yield {', '.join(sums[owner] for owner in weights)} : {types}")
    updates = "\n".join(
        f'%n{owner} = call @update(%w{owner}, %r#{at}) {{hp.path = "h.{owner}", hp.phase = "update"}} : {PAIR} -> {ROW}'
        for at, owner in enumerate(weights)
    )
    names = [f"h.{owner}.w" for owner in weights]
    given = "".join(f', %w{w}: {ROW} {{hp.name = "h.{w}.w", hp.role = "parameter"}}' for w in weights)
    made = ", ".join(f'{ROW} {{hp.name = "{name}", hp.updates = "{name}"}}' for name in names)
    carried = ", ".join(f"%a{owner} = %zero" for owner in weights)
    text = f"""
func.func @main(%x: {batch} {{hp.name = "x", hp.role = "input"}}{given}) -> ({made}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = arith.constant {microbatches} : index
  %zero = arith.constant dense<0.0> : {ROW}
  %r:{len(weights)} = scf.for %m = %c0 to %count step %c1 iter_args({carried}) -> ({types}) {{
    {chr(10).join(body)}
  }} {{hp.microbatches}}
  {updates}
  return {", ".join(f"%n{owner}" for owner in weights)} : {types}
}}
{FUNCTIONS}"""
    arguments = [ArgumentInfo(name, Role.PARAMETER, (4,), "f32") for name in names]
    return ImportedModel(
        "training",
        text,
        (ArgumentInfo("x", Role.INPUT, (microbatches, 4), "f32"), *arguments),
        tuple(ResultInfo(name, (4,), "f32", updates=name) for name in names),
        tuple(BlockInfo(f"h.{n}", "block") for n in range(blocks)),
        microbatches=microbatches,
    )


def split(schedule: Schedule, stages: int, groups: int, microbatches: int, directory: Path) -> ir.Module:
    """The programs of all groups, as code would be generated of them."""
    model = training(stages, microbatches)
    plan = Plan(groups={f"g{n}": "tp=1" for n in range(groups)}, stages=stages, schedule=schedule)
    fitted = plan.fit(describe_program(model), None, None)
    assert isinstance(fitted, GroupedPlan)
    return split_model(model, fitted, directory)[0]


def messages(module: ir.Module) -> list[list[ir.Operation]]:
    """The sends and receives of each group, in order."""
    return [
        [op.operation for op in entry.regions[0].blocks[0] if op.operation.name in ("hypermpmd.send", "hypermpmd.recv")]
        for program in module.body.operations
        for entry in program.regions[0].blocks[0]
        if entry.operation.name == "func.func" and ir.StringAttr(entry.attributes["sym_name"]).value == "main"
    ]


def actions(module: ir.Module) -> list[list[Action]]:
    """The same as the schedules' own words."""

    def action(op: ir.Operation) -> Action:
        peer = int(ir.StringAttr(op.attributes["peer"]).value[1:])
        tag = ir.IntegerAttr(op.attributes["tag"]).value
        return Send(peer, tag) if op.name == "hypermpmd.send" else Receive(peer, tag)

    return [[action(op) for op in program] for program in messages(module)]


def exchange(first: ir.Operation, second: ir.Operation) -> None:
    """Give two operations of a block each other's place."""
    block = list(first.block)
    behind = block[1 + next(n for n, op in enumerate(block) if op.operation == second)]
    second.move_before(first)
    first.move_before(behind.operation)


@pytest.mark.parametrize("schedule", list(Schedule))
@pytest.mark.parametrize("stages", STAGES)
def test_every_schedule_ends(schedule: Schedule, stages: int, tmp_path: Path) -> None:
    """Proved twice on the way (hypermpmd-verify-programs); every value crosses once, the tied weight once a step."""
    halves = {stages, max(2, stages // 2)} if schedule is Schedule.INTERLEAVED and stages % 2 == 0 else {stages}
    for groups in halves:
        for microbatches in MICROBATCHES:
            programs = actions(split(schedule, stages, groups, microbatches, tmp_path))
            sent = [
                (n, one.to, one.tag) for n, program in enumerate(programs) for one in program if isinstance(one, Send)
            ]
            received = [
                (one.source, n, one.tag)
                for n, program in enumerate(programs)
                for one in program
                if isinstance(one, Receive)
            ]
            assert sorted(sent) == sorted(received)
            assert len(set(sent)) == len(sent) == 2 * (stages - 1) * microbatches + 2


def test_exchanged_messages_are_judged_as_by_brute_force(tmp_path: Path) -> None:
    module = split(Schedule.ONE_F_ONE_B, 3, 3, 2, tmp_path)
    generator = random.Random(7)
    with module.context:
        verify = PassManager.parse("builtin.module(hypermpmd-verify-programs)")
        verify.enable_verifier(False)  # What is exchanged may now be read before it is made.
    caught = 0
    for _ in range(60):
        changed = ir.Module.parse(str(module), module.context)
        programs = messages(changed)
        for op in (op for program in programs for op in program if "hp.packet" in op.attributes):
            del op.attributes["hp.packet"]
        program = generator.choice(programs)
        first, second = (program[n] for n in sorted(generator.sample(range(len(program)), 2)))
        exchange(first, second)
        ends = can_end(tuple(map(tuple, actions(changed))))
        try:
            verify.run(changed.operation)
            judged = True
        except MLIRError:
            judged = False
        assert judged == ends
        caught += not ends
    assert 10 < caught < 60
