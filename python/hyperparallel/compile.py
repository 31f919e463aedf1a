# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From an imported model and a plan to a compiled program on disk.

>>> from hyperparallel.compile import compile_model
>>> program = compile_model("model/", "plan.yaml", mesh="dp=2,tp=2", out_dir="program/")  # doctest: +SKIP
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

from mlir import ir
from mlir.dialects import func

from hyperparallel import _hyperparallel
from hyperparallel.bishengir import DEFAULT_SOC, read_soc, write_fragments
from hyperparallel.cache import cache_directory
from hyperparallel.compiled import (
    FRAGMENTS_FILE,
    INPUTS_FILE,
    KERNELS_FILE,
    LOCAL_PROGRAM_FILE,
    OFFLOAD_FILE,
    PLAN_FILE,
    PROGRAM_FILE,
    WEIGHTS_FILE,
    CompiledProgram,
    CompiledTensor,
    Target,
    new_directory,
    write_arrays,
)
from hyperparallel.coverage import reserved_workspace, write_coverage
from hyperparallel.dialects import supernode
from hyperparallel.enums import StepPhase
from hyperparallel.errors import CompilationError, PlanError
from hyperparallel.frontend.artifact import ImportedModel
from hyperparallel.machines import Machine
from hyperparallel.memory import LOWER_TO_CPU, LOWER_TO_DEVICE, LOWER_TO_FRAGMENTS, MemoryPlan, fit_memory, tier_of
from hyperparallel.pipeline import (
    ENTRY,
    Phase,
    PhaseRunner,
    keep_program,
    make_context,
    make_synchronous,
    parse_program,
    reproduction,
    set_workspace,
)
from hyperparallel.plan import GroupedPlan, MeshLike, Plan, Program, ResolvedPlan, grouped_mesh, make_program
from hyperparallel.plan.layouts import DimLayout, TensorLayout
from hyperparallel.plan.spelling import read_sharding_text
from hyperparallel.ptxas import DEFAULT_ARCHITECTURE, assemble, read_architectures

Progress = Callable[[str], None]
PlanLike = Plan | ResolvedPlan | GroupedPlan | str | Path | Mapping[str, Any]

#: What generates code; for a target without any, what measures memory.
_LOWERING = {Target.CUDA: LOWER_TO_DEVICE, Target.ASCEND: LOWER_TO_FRAGMENTS}
_SHARDING = re.compile(r"#hypershard\.sharding<@[^,]+, (.*)>", re.DOTALL)


@dataclasses.dataclass(frozen=True, slots=True)
class PartitionedProgram:
    """A program after the phases that no back end has a part in.

    Attributes:
        module: The program of one device.
        plan: The plan that was applied.
        arguments: The entry's arguments.
        results: The entry's results.
        seconds: Time of each phase.
        remarks: What the passes said about their choices.
    """

    module: ir.Module
    plan: ResolvedPlan
    arguments: tuple[CompiledTensor, ...]
    results: tuple[CompiledTensor, ...]
    seconds: Mapping[str, float]
    remarks: tuple[str, ...]


def read_plan(plan: PlanLike) -> Plan | ResolvedPlan | GroupedPlan:
    """A plan of any of its forms: a file's path, the name of a preset, or Python values.

    Raises:
        PlanError: If it is malformed.
    """
    if isinstance(plan, (Plan, ResolvedPlan, GroupedPlan)):
        return plan
    if isinstance(plan, Mapping):
        return Plan(**dict(plan))
    from hyperparallel.plan import PresetName

    presets = [str(name) for name in PresetName]
    if str(plan) in presets:
        return Plan(preset=str(plan))
    if not (Path(str(plan)).suffix or Path(str(plan)).exists()):
        raise PlanError(
            f"expected a plan (a file or values), or one of the presets {', '.join(presets)}, but got {plan}"
        )
    return Plan.load(plan)


def describe_program(model: ImportedModel, module: ir.Module | None = None) -> Program:
    """What a plan's rules can name in a model.

    Args:
        model: The model.
        module: Its program, if it has been parsed already.
    """
    blocks: list[tuple[str, list[tuple[tuple[int, ...], str]]]] = []
    if model.blocks:
        parsed = module or parse_program(model.mlir, f"{model.name}: model.mlir", make_context())
        for call in _calls_of_main(parsed):
            if "hp.path" in call.attributes and _phase_of(call) == StepPhase.FORWARD:
                path = ir.StringAttr(call.attributes["hp.path"]).value
                blocks.append((path, [_shape_and_dtype(result.type) for result in call.results]))
    # The next value of an argument is laid out as the argument is.
    results = [result for result in model.results if result.updates is None]
    return make_program(model.name, model.arguments, results, blocks)


def _phase_of(call: ir.Operation) -> str:
    """The part of a training step that a call belongs to; a model that is not trained has forward alone."""
    return ir.StringAttr(call.attributes["hp.phase"]).value if "hp.phase" in call.attributes else StepPhase.FORWARD


def _calls_of_main(module: ir.Module) -> Iterator[ir.Operation]:
    """The calls of the entry, those in its loop over microbatches too."""
    for operation in _main(module).entry_block.operations:
        if operation.operation.name == "func.call":
            yield operation.operation
        elif "hp.microbatches" in operation.operation.attributes:
            for inner in operation.operation.regions[0].blocks[0].operations:
                if inner.operation.name == "func.call":
                    yield inner.operation


def _main(module: ir.Module) -> func.FuncOp:
    for operation in module.body.operations:
        if isinstance(operation, func.FuncOp) and operation.name.value == ENTRY:
            return operation
    raise CompilationError(f"the program has no function @{ENTRY}; import the model again")


def _shape_and_dtype(type_: ir.Type) -> tuple[tuple[int, ...], str]:
    tensor = ir.RankedTensorType(type_)
    return tuple(tensor.shape), str(tensor.element_type)


def partition_model(
    model: ImportedModel,
    plan: PlanLike,
    mesh: MeshLike | None = None,
    *,
    devices: int | None = None,
    machine: Machine | str | None = None,
    dump_dir: Path | None = None,
    plan_file: Path | None = None,
    progress: Progress | None = None,
    overlap: bool = True,
) -> PartitionedProgram:
    """Run the phases up to the program of one device.

    Args:
        model: The imported model.
        plan: Plan, preset name, or plan file.
        mesh: Used instead of the plan's own.
        devices: How many devices the mesh must use, if that is asked for.
        machine: A description, a preset or a file: what collectives are chosen by. Without one, bytes decide.
        dump_dir: Gets the IR after each phase, numbered.
        plan_file: Where the resolved plan is written; a temporary file if None.
        progress: Called with the name of each phase before it runs.
        overlap: Let collectives run beside the computation.

    Raises:
        PlanError: If the plan does not fit.
        MachineError: If there is no such machine.
        CompilationError: If a pass refuses the program.
    """
    seconds: dict[str, float] = {}
    with timed(seconds, "parse", progress):
        module = parse_program(model.mlir, f"{model.name}: model.mlir", make_context())
        text = model.mlir
        if machine is not None:
            supernode.set_machine(module, machine)
        if not overlap:
            make_synchronous(module)
        if machine is not None or not overlap:
            text = str(module)
    with timed(seconds, "plan", progress):
        read = read_plan(plan)
        if isinstance(read, GroupedPlan):
            raise PlanError(f"the plan is for {read.groups}, and one mesh was expected; compile it with compile_model")
        resolved = (
            read if isinstance(read, ResolvedPlan) else read.resolve(describe_program(model, module), mesh, devices)
        )
    with tempfile.TemporaryDirectory(prefix="hyperparallel-") as temporary:
        written = plan_file or Path(temporary) / PLAN_FILE
        written.write_text(resolved.to_json_text(), encoding="utf-8")
        runner = PhaseRunner(module, text, written, dump_dir)
        for phase in (Phase.IMPORTED, Phase.ANNOTATED, Phase.PROPAGATED, Phase.RESHARDED, Phase.PARTITIONED):
            with timed(seconds, str(phase), progress):
                runner.run(phase)
    arguments, results = read_entry(module, model)
    remarks = tuple(f"{remark.location}: {remark.message}" for remark in runner.remarks)
    return PartitionedProgram(module, resolved, arguments, results, seconds, remarks)


def compile_model(
    model: ImportedModel | str | os.PathLike[str],
    plan: PlanLike,
    mesh: MeshLike | None = None,
    out_dir: str | os.PathLike[str] = "program",
    dump_ir: bool = False,
    *,
    devices: int | None = None,
    machine: Machine | str | None = None,
    target: Target | str = Target.CPU,
    architectures: str | None = None,
    inputs: Mapping[str, Any] | None = None,
    source: Mapping[str, Any] | None = None,
    weights: Path | None = None,
    progress: Progress | None = None,
    threads: int = 0,
    device_memory: int | None = None,
    workspace: int | None = None,
    overlap: bool = True,
    recompute: bool = True,
) -> CompiledProgram:
    """Compile a model for a mesh of virtual devices.

    Args:
        model: An imported model, or the directory of one.
        plan: A plan, a preset's name, or a plan file.
        mesh: The mesh, instead of the plan's own.
        out_dir: The directory to make; an older compiled program there is replaced when the new one is whole.
        dump_ir: Keep the IR after each phase under ``ir/``.
        devices: How many devices the mesh must use, if that is asked for.
        machine: A description, a preset or a file: what collectives are chosen by, and what is simulated by default.
        target: What code is generated for; with ``none`` the program can be simulated, not run.
        architectures: What kernels are assembled for: with the target ``cuda`` such as ``sm_80,sm_90`` (they run on newer
            ones, too), with ``ascend`` a chip such as ``Ascend910B1``. One of each kind if None.
        inputs: Example inputs by name, kept with the program.
        source: Where the model came from, kept with the program (``model_file``, ``overrides``).
        weights: The model's saved weights, kept with the program (as a hard link where that can be).
        progress: Called with the name of each phase before it runs.
        threads: Threads of the code generator; 0 for all cores.
        device_memory: Bytes that the program may use on each device; what does not fit goes to the tiers below and is
            fetched in time. No limit if None.
        workspace: Bytes of the program's memory that each call of a vendor's library (a product, an operator) may use
            beside its operands, with the targets ``cuda`` and ``ascend``. As many as its operands and results take if
            None, but at most 32 MiB. A product of cuBLASLt makes do with what there is; an operator of CANN that wants
            more draws it from the device while it runs, which ends the run where that is above ``device_memory``.
        overlap: Let collectives and messages run beside the computation, on streams of their own; without, everything
            happens in the order of the program, to the same bits.
        recompute: Compute a value again where that is faster than copying it; for programs of one group of devices.

    Returns:
        The program in ``out_dir``.

    Raises:
        ImportModelError: If the model's directory is damaged.
        PlanError: If the plan does not fit.
        MachineError: If there is no such machine.
        CompilationError: If a pass refuses the program, or the directory cannot be written.
    """
    if not isinstance(model, ImportedModel):
        source_directory = Path(model)
        model = ImportedModel.load(source_directory)
        if weights is None and model.has_weights:
            weights = source_directory / WEIGHTS_FILE
    directory, target = Path(out_dir), Target(target)
    if workspace is not None and target not in _LOWERING:
        raise CompilationError(
            f"expected a workspace with one of the targets {', '.join(_LOWERING)}, whose libraries use it, but the target is "
            f"{target}; leave it out"
        )
    chips = (
        (read_soc(DEFAULT_SOC if architectures is None else architectures),)
        if target is Target.ASCEND
        else read_architectures(DEFAULT_ARCHITECTURE if architectures is None else architectures)
    )
    read = read_plan(plan)
    if isinstance(read, GroupedPlan) or (isinstance(read, Plan) and grouped_mesh(read.groups, mesh) is not None):
        from hyperparallel.mpmd.compiling import compile_groups

        return compile_groups(
            model,
            read if isinstance(read, GroupedPlan) else read.fit(describe_program(model), mesh, devices),
            directory,
            dump_ir=dump_ir,
            machine=machine,
            target=target,
            architectures=chips,
            inputs=inputs,
            source=source,
            weights=weights,
            progress=progress,
            threads=threads,
            device_memory=device_memory,
            workspace=workspace,
            overlap=overlap,
        )
    with new_directory(directory) as made:
        dump = made / "ir" if dump_ir else None
        if dump is not None:
            dump.mkdir()
        partitioned = partition_model(
            model,
            read,
            mesh,
            devices=devices,
            machine=machine,
            dump_dir=dump,
            plan_file=made / PLAN_FILE,
            progress=progress,
            overlap=overlap,
        )
        program = generate_program(
            partitioned,
            made,
            directory,
            model.name,
            target,
            dump,
            threads,
            device_memory,
            progress,
            chips,
            workspace=workspace,
            recompute=recompute,
        )
        keep_values(made, weights, inputs)
        program = dataclasses.replace(program, source=dict(source or {}))
        program.write_manifest(made)
    return program


def generate_program(
    partitioned: PartitionedProgram,
    made: Path,
    directory: Path,
    name: str,
    target: Target = Target.CPU,
    dump: Path | None = None,
    threads: int = 0,
    device_memory: int | None = None,
    progress: Progress | None = None,
    architectures: tuple[str, ...] = (DEFAULT_ARCHITECTURE,),
    *,
    workspace: int | None = None,
    recompute: bool = True,
) -> CompiledProgram:
    """From the program of one device to its files: fit into memory, generate code. The manifest is left to the caller.

    Args:
        partitioned: The program.
        made: Where the files are written.
        directory: Where they will be.
        name: The model's name.
        target: What code is generated for.
        dump: Gets the IR after each phase.
        threads: Threads of the code generator; 0 for all cores.
        device_memory: Bytes that the program may use on each device.
        progress: Called with the name of each phase before it runs.
        architectures: What kernels are assembled for, oldest first, with the target ``cuda``; a chip with ``ascend``.
        workspace: Bytes for each call of a vendor's library; by its operands and results if None.
        recompute: Compute a value again where that is faster than copying it.

    Raises:
        CompilationError: If a pass refuses the program.
        MissingDependencyError: If kernels are to be assembled and there is no ``ptxas``, or no ``bishengir-compile``.
    """
    described = supernode.machine_of(partitioned.module)
    seconds = dict(partitioned.seconds)
    module, arguments = partitioned.module, partitioned.arguments
    memory: MemoryPlan | None = None
    placements = partitioned.plan.placements
    lowering = _LOWERING.get(target, LOWER_TO_CPU)
    if workspace is not None and target in _LOWERING:
        set_workspace(module, workspace)

    def fit(module: ir.Module) -> ir.Module:
        """The program in the memory that it may use, kept with what it was generated from."""
        nonlocal memory, arguments
        if device_memory is not None or placements:
            with timed(seconds, str(Phase.OFFLOADED), progress):
                memory = fit_memory(module, device_memory, name, placements, recompute=recompute, lowering=lowering)
            module, arguments = memory.module, _with_tiers(memory.module, partitioned.arguments)
            (made / OFFLOAD_FILE).write_text(_offload_report(memory), encoding="utf-8")
            if dump is not None:
                (dump / f"{list(Phase).index(Phase.OFFLOADED)}-{Phase.OFFLOADED}.mlir").write_text(str(module))
        with (made / LOCAL_PROGRAM_FILE).open("wb") as file:
            module.operation.write_bytecode(file)
        return module

    if target is Target.ASCEND:
        clock = partial(timed, seconds, "codegen", progress)
        _emit_fragments(module, fit, clock, made, threads, directory, architectures[0])
    else:
        module = fit(module)
    if target is Target.CPU:
        if dump is not None:
            _dump_lowered(module, dump)
        with timed(seconds, "codegen", progress):
            _emit(module, made / PROGRAM_FILE, threads, directory)
    elif target is Target.CUDA:
        with timed(seconds, "codegen", progress):
            _emit(module, made / PROGRAM_FILE, threads, directory, (made / KERNELS_FILE, architectures[0]))
        with timed(seconds, "assemble", progress):
            _assemble(made, architectures, threads)
    return CompiledProgram(
        directory,
        name,
        partitioned.plan.mesh,
        arguments,
        partitioned.results,
        seconds=seconds,
        target=target,
        machine=None if described is None else described.name,
        device_memory=device_memory,
        peak_bytes=None if memory is None else memory.peak_bytes,
        workspace=reserved_workspace(made) if target in _LOWERING else None,
    )


def keep_values(made: Path, weights: Path | None, inputs: Mapping[str, Any] | None) -> None:
    """Keep the model's weights (as a hard link where that can be) and example inputs with a program."""
    if weights is not None:
        _link_or_copy(weights, made / WEIGHTS_FILE)
    if inputs:
        _write_inputs(inputs, made / INPUTS_FILE)


def _with_tiers(module: ir.Module, arguments: tuple[CompiledTensor, ...]) -> tuple[CompiledTensor, ...]:
    """The arguments, with the tiers in which the plan lets them live between steps."""
    kinds = _main(module).type.inputs
    return tuple(
        dataclasses.replace(argument, tier=tier_of(kind)) for argument, kind in zip(arguments, kinds, strict=True)
    )


def _offload_report(memory: MemoryPlan) -> str:
    report = {
        "device_memory": memory.capacity,
        "peak_bytes": memory.peak_bytes,
        "unplanned_peak_bytes": memory.unplanned_peak_bytes,
        "plan": memory.figures,
        "remarks": memory.remarks,
    }
    return json.dumps(report, indent=1) + "\n"


@contextmanager
def timed(seconds: dict[str, float], name: str, progress: Progress | None) -> Generator[None]:
    """Adds what the block takes to ``seconds``, under the name that ``progress`` is told."""
    if progress is not None:
        progress(name)
    begin = time.perf_counter()
    yield
    seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - begin


def read_entry(
    module: ir.Module, model: ImportedModel
) -> tuple[tuple[CompiledTensor, ...], tuple[CompiledTensor, ...]]:
    """The entry's arguments and results as the partitioning left them.

    Args:
        module: The program of one device.
        model: What its arguments and results are, in order.
    """
    entry = _main(module)
    arguments = tuple(
        CompiledTensor(info.name, info.role, info.shape, info.dtype, _layout_of(attributes, info.name, len(info.shape)))
        for info, attributes in zip(model.arguments, _attributes(entry, "arg_attrs", len(model.arguments)), strict=True)
    )
    results = tuple(
        CompiledTensor(
            *(info.name, None, info.shape, info.dtype, _layout_of(attributes, info.name, len(info.shape))),
            updates=info.updates,
        )
        for info, attributes in zip(model.results, _attributes(entry, "res_attrs", len(model.results)), strict=True)
    )
    return arguments, results


def _attributes(entry: func.FuncOp, key: str, count: int) -> list[ir.DictAttr]:
    array = ir.ArrayAttr(entry.attributes[key]) if key in entry.attributes else ()
    found = [ir.DictAttr(one) for one in cast("Sequence[ir.Attribute]", array)]
    if len(found) != count:
        raise CompilationError(f"the program's entry has {len(found)} arguments or results but the model says {count}")
    return found


def _layout_of(attributes: ir.DictAttr, name: str, rank: int) -> TensorLayout:
    if "hp.sharding" not in attributes:
        return TensorLayout((DimLayout(),) * rank)
    text = ir.StringAttr(attributes["hp.sharding"]).value
    match = _SHARDING.fullmatch(text)
    if match is None or "partial=" in text:
        raise CompilationError(f"{name} crosses the boundary of the program as {text}, which is no whole value")
    return read_sharding_text(match.group(1), name)


def _emit(
    module: ir.Module, path: Path, threads: int, directory: Path, kernels: tuple[Path, str] | None = None
) -> None:
    """Generate code; with ``kernels`` (a file for PTX, an architecture) for a device, else for the CPU."""
    text = str(module)
    kernels_file, architecture = ("", "") if kernels is None else (str(kernels[0]), kernels[1])
    pipeline = LOWER_TO_CPU
    if kernels is not None:
        pipeline = LOWER_TO_FRAGMENTS if architecture.startswith("Ascend") else LOWER_TO_DEVICE
    try:
        _hyperparallel.compile_program(module, str(path), str(cache_directory()), threads, kernels_file, architecture)
    except ValueError as error:
        kept = keep_program(text, f"{directory.name}-partitioned")
        raise CompilationError(
            "the code generator refused the program",
            diagnostics=str(error).splitlines(),
            pass_name=pipeline,
            command=reproduction(kept, pipeline),
        ) from None


def _emit_fragments(
    module: ir.Module,
    fit: Callable[[ir.Module], ir.Module],
    clock: Callable[[], AbstractContextManager[None]],
    made: Path,
    threads: int,
    directory: Path,
    soc: str,
) -> None:
    """Generate code for an NPU, with fragments that Ascend's compiler takes, and say how much of the program they are.

    Where it refuses some, the program is fitted into memory again, too: parts of fragments have buffers between them.
    """
    program = str(module.operation.get_asm(enable_debug_info=True))

    def write(refused: list[str]) -> None:
        with module.context:
            fresh = ir.Module.parse(program)
            fresh.operation.attributes["hp.refused"] = ir.ArrayAttr.get([ir.StringAttr.get(one) for one in refused])
        fitted = fit(fresh)
        with clock():
            _emit(fitted, made / PROGRAM_FILE, threads, directory, (made / FRAGMENTS_FILE, soc))

    fragments = write_fragments(made / FRAGMENTS_FILE, soc, write, clock, threads)
    write_coverage(made, [dataclasses.asdict(fragment) for fragment in fragments])


def _assemble(directory: Path, architectures: tuple[str, ...], threads: int) -> None:
    """Make cubins of a program's kernels, and say how much of the program they are."""
    resources = assemble(directory / KERNELS_FILE, architectures, threads)
    write_coverage(directory, [dataclasses.asdict(kernel) for kernel in resources])


def _dump_lowered(module: ir.Module, dump: Path) -> None:
    """The LLVM dialect, for readers; the code generator lowers the program itself, in parts."""
    text = str(module)
    runner = PhaseRunner(parse_program(text, "the partitioned program", module.context), text, Path(os.devnull), dump)
    runner.run(Phase.LOWERED)


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _write_inputs(inputs: Mapping[str, Any], path: Path) -> None:
    with path.open("wb") as file:
        write_arrays(file, inputs)
