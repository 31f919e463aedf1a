# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From an imported model and a plan with device groups to a compiled program of each group.

The program is split while it is global: fragments, transfers, then a nested module of each group. Each goes through the
phases as any program of one mesh, with the plan's rules for what is in it; in between, when every layout is known, the
blocks of each transfer are found.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from mlir import ir

from hyperparallel.compile import (
    PartitionedProgram,
    Progress,
    describe_program,
    generate_program,
    keep_values,
    read_entry,
    timed,
)
from hyperparallel.compiled import (
    LOCAL_PROGRAM_FILE,
    PLAN_FILE,
    SCHEDULE_FILE,
    CompiledProgram,
    CompiledTensor,
    Target,
    new_directory,
)
from hyperparallel.dialects import supernode
from hyperparallel.enums import Role
from hyperparallel.frontend.artifact import ArgumentInfo, BlockInfo, ImportedModel, ResultInfo
from hyperparallel.machines import Machine
from hyperparallel.mpmd.fitting import GroupProgram, schedule_within
from hyperparallel.mpmd.messages import propagate_together
from hyperparallel.pipeline import (
    Phase,
    PhaseRunner,
    bytecode_of,
    copy_program,
    make_context,
    make_synchronous,
    parse_program,
)
from hyperparallel.plan import GroupedPlan, ResolvedPlan, Schedule
from hyperparallel.plan.layouts import DimLayout, TensorLayout
from hyperparallel.ptxas import DEFAULT_ARCHITECTURE


def split_model(
    model: ImportedModel,
    plan: GroupedPlan,
    directory: Path,
    *,
    machine: Machine | str | None = None,
    dump: Path | None = None,
    seconds: dict[str, float] | None = None,
    progress: Progress | None = None,
    overlap: bool = True,
    saved_limits: Mapping[str, int] | None = None,
) -> tuple[ir.Module, list[GroupProgram]]:
    """Split a program, and bring the program of every group to the point where it is of one device.

    Args:
        model: The whole program.
        plan: The plan, fitted to it.
        directory: Gets the plan of each group, under its name.
        machine: A description, a preset or a file: what is decided by.
        dump: Gets the IR: of the whole, and under each group's name of its program.
        seconds: Gets the time of each phase.
        progress: Called with the name of each phase before it runs.
        overlap: Let collectives and messages run beside the computation.
        saved_limits: Bytes of saved activations that the schedule may hold on each device, by group.

    Returns:
        The whole, of nested modules, and each of these.

    Raises:
        PlanError: If the plan does not fit.
        CompilationError: If a pass refuses the program.
    """
    seconds = {} if seconds is None else seconds
    with timed(seconds, "parse", progress):
        module = parse_program(model.mlir, f"{model.name}: model.mlir", make_context())
        if machine is not None:
            supernode.set_machine(module, machine)
    written = directory / PLAN_FILE
    written.write_text(plan.to_json_text(), encoding="utf-8")
    whole = PhaseRunner(module, bytecode_of(module), written, dump)
    with timed(seconds, str(Phase.IMPORTED), progress):
        whole.run(Phase.IMPORTED)
    with timed(seconds, "split", progress):
        whole.run_steps("split", _split_steps(plan, written, directory / SCHEDULE_FILE, saved_limits or {}))
    programs = [
        _group_program(name, nested, model, plan, directory, dump) for name, nested in _nested_modules(module).items()
    ]
    if not overlap:
        for one in (module, *(program.module for program in programs)):
            make_synchronous(one)
    with timed(seconds, str(Phase.ANNOTATED), progress):
        for program in programs:
            program.runner.run(Phase.ANNOTATED)
    with timed(seconds, str(Phase.PROPAGATED), progress):
        _propagate(programs, plan, written)
    with timed(seconds, str(Phase.RESHARDED), progress):
        for program in programs:
            program.runner.run(Phase.RESHARDED)
    with timed(seconds, "resolve", progress):
        whole.run_steps("resolved", ["hypermpmd-resolve-transfers"])
    with timed(seconds, str(Phase.PARTITIONED), progress):
        for program in programs:
            program.runner.run(Phase.PARTITIONED)
    with timed(seconds, "merge", progress):
        whole.run_steps("merged", ["hypermpmd-merge-transfers", "hypermpmd-verify-programs"])
    return module, programs


def _propagate(programs: Sequence[GroupProgram], plan: GroupedPlan, written: Path) -> None:
    """Propagate in all programs, each with the layouts of what comes from others."""
    by_name = {program.name: program for program in programs}
    stages = [stage.group for stage in plan.groups.stages]

    def module_of(name: str, is_copy: bool) -> ir.Module:
        module = by_name[name].module
        return copy_program(module) if is_copy else module

    def propagate(name: str, module: ir.Module, is_copy: bool) -> None:
        runner = PhaseRunner(module, bytecode_of(module), written) if is_copy else by_name[name].runner
        runner.run(Phase.PROPAGATED)

    meshes = {name: plan.groups.mesh_of(name) for name in by_name}
    rounds = max(stages.count(name) for name in by_name)
    propagate_together(list(by_name), meshes, max(1, rounds), module_of, propagate)


def _split_steps(plan: GroupedPlan, written: Path, report: Path, saved_limits: Mapping[str, int]) -> list[str]:
    """What splits a program, in order; a schedule is for programs of several microbatches."""
    schedule = plan.groups.schedule
    steps = ["hp-unroll"]
    if schedule is not None and schedule is Schedule.ZERO_BUBBLE_H1:
        steps.append("hypermpmd-split-backward")
    steps += [f"hypermpmd-form-fragments{{plan=@{written}}}", "hypermpmd-infer-transfers"]
    if schedule is not None:
        options = [f"schedule={schedule}", f"report={report}"]
        if plan.groups.memory is not None:
            options.append(f"memory={plan.groups.memory}")
        if plan.groups.before:
            options.append("before=" + ",".join(plan.groups.before))
        if saved_limits:
            limits = (saved_limits.get(group.name, -1) for group in plan.groups.groups)
            options.append("limits=" + ",".join(map(str, limits)))
        steps.append(f"hypermpmd-schedule{{{' '.join(options)}}}")
    return [*steps, "hp-split"]


def _nested_modules(module: ir.Module) -> dict[str, ir.Module]:
    """The nested modules by name; they behave as modules of their own."""
    found: dict[str, ir.Module] = {}
    for operation in module.body.operations:
        if "hypermpmd.group" in operation.attributes:
            name = ir.StringAttr(operation.attributes["hypermpmd.group"]).value
            found[name] = cast("ir.Module", operation)
    return found


def _group_program(
    name: str, nested: ir.Module, model: ImportedModel, plan: GroupedPlan, directory: Path, dump: Path | None
) -> GroupProgram:
    part = _part_of(model, nested, name)
    resolved = plan.for_group(name, describe_program(part, nested))
    own = directory / name
    own.mkdir(exist_ok=True)
    written = own / PLAN_FILE
    written.write_text(resolved.to_json_text(), encoding="utf-8")
    inner = None if dump is None else dump / name
    if inner is not None:
        inner.mkdir(exist_ok=True)
    return GroupProgram(name, nested, part, resolved, PhaseRunner(nested, bytecode_of(nested), written, inner))


def _part_of(model: ImportedModel, nested: ir.Module, name: str) -> ImportedModel:
    """What the arguments and results of a group's program are."""
    entry = next(
        operation
        for operation in nested.body.operations
        if "sym_name" in operation.attributes and ir.StringAttr(operation.attributes["sym_name"]).value == "main"
    )
    arguments = {info.name: info for info in model.arguments}
    results = {info.name: info for info in model.results}
    kept: list[ArgumentInfo] = [arguments[one] for one in _names(entry, "arg_attrs")]
    made: list[ResultInfo] = [results[one] for one in _names(entry, "res_attrs")]
    blocks = (BlockInfo(name, "main"),) if model.blocks else ()
    return ImportedModel(f"{model.name} ({name})", "", tuple(kept), tuple(made), blocks, has_weights=model.has_weights)


def _names(entry: ir.OpView, key: str) -> list[str]:
    if key not in entry.attributes:
        return []
    return [
        ir.StringAttr(ir.DictAttr(one)["hp.name"]).value
        for one in cast("Sequence[ir.Attribute]", ir.ArrayAttr(entry.attributes[key]))
    ]


def compile_groups(
    model: ImportedModel,
    plan: GroupedPlan | ResolvedPlan,
    directory: Path,
    *,
    dump_ir: bool = False,
    machine: Machine | str | None = None,
    target: Target = Target.CPU,
    architectures: tuple[str, ...] = (DEFAULT_ARCHITECTURE,),
    inputs: Mapping[str, Any] | None = None,
    source: Mapping[str, Any] | None = None,
    weights: Path | None = None,
    progress: Progress | None = None,
    threads: int = 0,
    device_memory: int | None = None,
    workspace: int | None = None,
    overlap: bool = True,
) -> CompiledProgram:
    """Compile a model for groups of devices. The arguments are those of ``compile_model``.

    Raises:
        PlanError: If the plan does not fit.
        CompilationError: If a pass refuses the program, or the directory cannot be written.
    """
    assert isinstance(plan, GroupedPlan)
    seconds: dict[str, float] = {}
    with new_directory(directory) as made:
        dump = made / "ir" if dump_ir else None
        if dump is not None:
            dump.mkdir()
        limits = plan.groups.memory_of(device_memory)

        def split(saved_limits: Mapping[str, int]) -> tuple[ir.Module, list[GroupProgram]]:
            return split_model(
                model,
                plan,
                made,
                machine=machine,
                dump=dump,
                seconds=seconds,
                progress=progress,
                overlap=overlap,
                saved_limits=saved_limits,
            )

        if limits and plan.groups.schedule is Schedule.AUTO:
            module, programs = schedule_within(limits, made / SCHEDULE_FILE, split)
        else:
            module, programs = split({})
        described = supernode.machine_of(module)
        compiled: list[CompiledProgram] = []
        for program in programs:
            own = made / program.name
            alone = copy_program(program.module)
            arguments, results = read_entry(alone, program.model)
            partitioned = PartitionedProgram(alone, program.plan, arguments, results, {}, ())
            one = generate_program(
                partitioned,
                own,
                directory / program.name,
                program.model.name,
                target,
                None if dump is None else dump / program.name,
                threads,
                limits.get(program.name),
                progress,
                architectures,
                workspace=workspace,
            )
            one = dataclasses.replace(one, group=program.name, first_device=plan.groups.first_device(program.name))
            one.write_manifest(own)
            compiled.append(one)
            for phase, spent in one.seconds.items():
                seconds[phase] = seconds.get(phase, 0.0) + spent
        _keep_for_simulation(module, made)
        keep_values(made, weights, inputs)
        whole = CompiledProgram(
            directory,
            model.name,
            plan.mesh,
            tuple(_whole(info.name, info.shape, info.dtype, info.role) for info in model.arguments),
            tuple(_whole(info.name, info.shape, info.dtype, updates=info.updates) for info in model.results),
            source=dict(source or {}),
            seconds=seconds,
            target=target,
            machine=None if described is None else described.name,
            device_memory=max(limits.values()) if len(limits) == len(programs) else None,
            peak_bytes=max((one.peak_bytes or 0 for one in compiled), default=0) or None,
            workspace=max((one.workspace for one in compiled if one.workspace is not None), default=None),
            programs=tuple(compiled),
        )
        whole.write_manifest(made)
    return whole


def _keep_for_simulation(module: ir.Module, made: Path) -> None:
    """The programs of all groups in one module, as the simulator reads them."""
    together = copy_program(module)
    PhaseRunner(together, bytecode_of(module), made / PLAN_FILE).run_steps("flatten", ["hypermpmd-flatten-programs"])
    with (made / LOCAL_PROGRAM_FILE).open("wb") as file:
        together.operation.write_bytecode(file)


def _whole(
    name: str, shape: tuple[int, ...], dtype: str, role: Role | None = None, updates: str | None = None
) -> CompiledTensor:
    return CompiledTensor(name, role, shape, dtype, TensorLayout((DimLayout(),) * len(shape)), updates=updates)


__all__ = ["GroupProgram", "compile_groups", "split_model"]
