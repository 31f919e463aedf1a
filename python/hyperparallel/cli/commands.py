# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the commands of ``hp`` do."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperparallel.cli import feeding, launching, training
from hyperparallel.cli.console import Talk
from hyperparallel.cli.kernels import kernel_report, kernel_summary
from hyperparallel.cli.memory_plan import memory_lines, plan_memory
from hyperparallel.cli.training import Checked
from hyperparallel.errors import HyperParallelError, ImportModelError, PlanError, RuntimeFailure

if TYPE_CHECKING:
    from hyperparallel.cli.models import Model
    from hyperparallel.compiled import CompiledProgram
    from hyperparallel.execute import RunResult
    from hyperparallel.feed import Feed
    from hyperparallel.plan import GroupedPlan, Plan, ResolvedPlan

_KEPT_PROGRAMS = 64


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=1, default=str))


def _overrides(arguments: argparse.Namespace) -> dict[str, Any]:
    from hyperparallel.frontend.model_file import parse_overrides

    return parse_overrides(arguments.model_arg)


def _open(arguments: argparse.Namespace, talk: Talk, plan: Plan | None = None) -> Model:
    from hyperparallel.cli.models import open_model

    flat = bool(getattr(arguments, "flat", False))
    model = open_model(
        arguments.model,
        _overrides(arguments),
        talk,
        use_cache=not arguments.no_cache,
        flat=flat,
        microbatches=None if plan is None or plan.groups is None else plan.groups.microbatches,
        blocks=() if plan is None or plan.groups is None else plan.groups.patterns,
    )
    talk.say(
        f"{model.imported.name}: {len(model.imported.arguments)} arguments, {len(model.imported.blocks)} block calls"
    )
    return model


def import_command(arguments: argparse.Namespace) -> int:
    """``hp import``."""
    from hyperparallel.cli.models import save_model
    from hyperparallel.compiled import new_directory
    from hyperparallel.frontend.artifact import MANIFEST_FILE

    if arguments.model.is_dir():
        raise ImportModelError(f"{arguments.model} is a directory; expected a Python file with build()")
    talk = Talk(arguments.quiet)
    model = _open(arguments, talk)
    if arguments.train and not model.imported.microbatches:
        raise ImportModelError(
            f"{arguments.model} does not say how it is trained; let build() return a Training behind the inputs"
        )
    with new_directory(arguments.output, replaces=MANIFEST_FILE) as made:
        save_model(model, made)
    if arguments.json:
        _print_json(
            {
                "model": model.imported.name,
                "directory": str(arguments.output),
                "arguments": [dataclasses.asdict(entry) for entry in model.imported.arguments],
                "results": [dataclasses.asdict(entry) for entry in model.imported.results],
                "blocks": [dataclasses.asdict(entry) for entry in model.imported.blocks],
                "has_weights": model.imported.has_weights,
                "seconds": talk.seconds,
            }
        )
    else:
        print(arguments.output)
    return 0


def _plan_of(arguments: argparse.Namespace) -> Plan:
    """The plan of the options ``--plan`` and ``--preset``; without options about devices, that of one device."""
    from hyperparallel.compile import read_plan
    from hyperparallel.plan import Plan

    if arguments.plan is None and arguments.preset is None:
        if arguments.mesh is None and arguments.devices in (None, 1):
            return Plan(mesh={"dp": 1}, preset="data_parallel")
        raise PlanError("expected a plan: --plan FILE, or --preset megatron, fsdp or data_parallel")
    plan = Plan(preset=arguments.preset) if arguments.plan is None else read_plan(arguments.plan)
    assert isinstance(plan, Plan)
    if arguments.plan is not None and arguments.preset is not None:
        if plan.preset is not None:
            raise PlanError(
                f"{arguments.plan} has the preset {plan.preset.name} and --preset names another; leave one out"
            )
        plan = Plan(plan.mesh, plan.rules, arguments.preset, plan.placements, plan.groups)
    return plan


def _resolve(arguments: argparse.Namespace, model: Model) -> ResolvedPlan | GroupedPlan:
    from hyperparallel.compile import describe_program

    return _plan_of(arguments).fit(describe_program(model.imported), arguments.mesh, arguments.devices)


def plan_command(arguments: argparse.Namespace) -> int:
    """``hp plan``."""
    from hyperparallel import machines
    from hyperparallel.plan import GroupedPlan, explain, explain_groups, explain_groups_json, explain_json

    plan = _plan_of(arguments)
    machine = None if arguments.machine is None else machines.load(arguments.machine)
    talk = Talk(arguments.quiet)
    # Read before the model, so that a bad plan is told at once.
    model = _open(arguments, talk, plan)
    resolved = _resolve(arguments, model)
    if arguments.resolved:
        print(resolved.to_json_text(), end="")
        return 0
    memory = plan_memory(arguments, model, resolved, talk)
    if arguments.json:
        data = explain_groups_json(resolved) if isinstance(resolved, GroupedPlan) else explain_json(resolved, machine)
        _print_json({**data, "memory": memory})
    elif isinstance(resolved, GroupedPlan):
        print("\n".join([explain_groups(resolved), *memory_lines(memory, arguments.all)]))
    else:
        text = explain(resolved, every=arguments.all, machine=machine)
        print("\n".join([text, *memory_lines(memory, arguments.all)]))
    return 0


def compile_command(arguments: argparse.Namespace) -> int:
    """``hp compile``."""
    from hyperparallel import machines
    from hyperparallel.compile import compile_model

    plan = _plan_of(arguments)
    machine = None if arguments.machine is None else machines.load(arguments.machine)
    talk = Talk(arguments.quiet)
    model = _open(arguments, talk, plan)
    resolved = _resolve(arguments, model)
    with tempfile.TemporaryDirectory(prefix="hyperparallel-") as temporary:
        weights = model.weights_file
        if weights is None and model.imported.has_weights:
            weights = model.imported.save(Path(temporary) / "model") / "model.safetensors"
        program = compile_model(
            model.imported,
            resolved,
            out_dir=arguments.output,
            dump_ir=arguments.dump_ir,
            machine=machine,
            target=arguments.target,
            architectures=arguments.soc if arguments.target == "ascend" else arguments.arch,
            inputs=model.inputs,
            source=model.source,
            weights=weights,
            progress=talk.begin,
            device_memory=arguments.device_memory,
        )
    talk.end()
    kernels = kernel_report(program)
    if kernels is not None:
        for name, report in (kernels if program.programs else {program.name: kernels}).items():
            for line in kernel_summary(name, report):
                talk.say(line)
    if arguments.steps is not None:
        feeding.keep_feed(program, model, arguments.steps)
    if arguments.json:
        _print_json(
            {
                "model": program.name,
                "directory": str(program.directory),
                "mesh": dict(program.mesh.axes),
                "devices": program.mesh.num_devices,
                "target": str(program.target),
                "kernels": kernels,
                "machine": program.machine,
                "device_memory": program.device_memory,
                "peak_bytes": program.peak_bytes,
                "seconds": {**talk.seconds, **program.seconds},
            }
        )
    else:
        print(program.directory)
    return 0


# Running --------------------------------------------------------------------------------------------------------------


def run_command(arguments: argparse.Namespace) -> int:
    """``hp run``."""
    from hyperparallel.compiled import CompiledProgram, is_compiled

    begin = time.perf_counter()
    talk = Talk(arguments.quiet)
    if arguments.model.is_dir() and is_compiled(arguments.model):
        program = CompiledProgram.load(arguments.model)
        _check_options(arguments, program)
        return _run_saved(arguments, talk, program, begin)
    plan = _plan_of(arguments)
    model = _open(arguments, talk, plan)
    training.check_steps(arguments, any(result.updates is not None for result in model.imported.results))
    if not model.imported.has_weights:
        raise RuntimeFailure(f"{model.imported.name} was imported without weights and cannot be run")
    resolved = _resolve(arguments, model)
    with _program(arguments, talk, model, resolved) as (program, was_cached):
        given = _given_inputs(arguments)
        values = {**model.inputs, **given}
        names = {argument.name for argument in program.arguments if argument.role == "input"}
        feed = feeding.feed_for(arguments, program, model, given, launching.first_step(arguments, program))
        run = _execute(
            arguments, talk, program, lambda name: values[name] if name in names else model.imported.weight(name), feed
        )
        checked = _check(arguments, talk, dataclasses.replace(model, inputs=values), run, feed, given)
        cached = {"import": model.was_cached, "compile": was_cached}
        return _report(arguments, talk, program, run, checked, begin, cached)


def _run_saved(arguments: argparse.Namespace, talk: Talk, program: CompiledProgram, begin: float) -> int:
    from hyperparallel.execute import saved_values

    training.check_steps(arguments, any(result.updates is not None for result in program.results))
    given = _given_inputs(arguments)
    values = {**saved_values(program), **given}
    feed = feeding.feed_for(arguments, program, None, given, launching.first_step(arguments, program))
    run = _execute(arguments, talk, program, values, feed)
    checked = None
    if arguments.check:
        checked = _check(arguments, talk, _model_of(program, values), run, feed, given)
    return _report(arguments, talk, program, run, checked, begin, {"import": True, "compile": True})


def _model_of(program: CompiledProgram, values: Mapping[str, Any]) -> Model:
    """As much of the model as comparing with PyTorch needs."""
    from hyperparallel.cli.models import Model
    from hyperparallel.frontend.artifact import ArgumentInfo, ImportedModel, ResultInfo

    arguments = tuple(
        ArgumentInfo(entry.name, entry.role, entry.shape, entry.dtype)
        for entry in program.arguments
        if entry.role is not None
    )
    results = tuple(ResultInfo(entry.name, entry.shape, entry.dtype, entry.updates) for entry in program.results)
    imported = ImportedModel(
        program.name, "", arguments, results, has_weights=True, _read_weight=lambda name: values[name]
    )
    return Model(
        imported, {entry.name: values[entry.name] for entry in arguments if entry.role == "input"}, program.source
    )


def _check_options(arguments: argparse.Namespace, program: CompiledProgram) -> None:
    """A compiled program has its plan and its mesh."""
    from hyperparallel.plan import Mesh, grouped_mesh

    if arguments.plan is not None or arguments.preset is not None or arguments.model_arg:
        raise PlanError(f"{arguments.model} is compiled already; --plan, --preset and --model-arg are for hp compile")
    if program.programs:
        groups = grouped_mesh(None, arguments.mesh)
        meshes = None if groups is None else [group.mesh.axes for group in groups.groups]
        if arguments.mesh is not None and meshes != [one.mesh.axes for one in program.programs]:
            raise PlanError(
                f"{arguments.model} is compiled for the groups "
                + ", ".join(f"{one.group} ({one.mesh})" for one in program.programs)
                + f", not for the mesh {arguments.mesh}; compile it again"
            )
    elif arguments.mesh is not None and Mesh.parse(arguments.mesh).axes != program.mesh.axes:
        raise PlanError(
            f"{arguments.model} is compiled for the mesh {program.mesh}, not {arguments.mesh}; compile it again"
        )
    if arguments.devices is not None:
        program.mesh.check_devices(arguments.devices)


def _given_inputs(arguments: argparse.Namespace) -> dict[str, Any]:
    from hyperparallel.cli.models import read_inputs

    return read_inputs(arguments.inputs) if arguments.inputs is not None else {}


def _execute(
    arguments: argparse.Namespace, talk: Talk, program: CompiledProgram, values: Any, feed: Feed | None
) -> RunResult:
    from hyperparallel.cli.report import read_timeline, trace_file
    from hyperparallel.execute import run_compiled

    steps = arguments.steps or arguments.repeat
    if launching.runs_over_processes(arguments):
        with talk.step("run"):
            return launching.execute_over_processes(arguments, program, values, steps=steps, feed=feed)
    values, first_step = launching.resume(arguments, program, values)
    with talk.step("run"), trace_file(arguments.trace, arguments.timeline) as trace:
        run = run_compiled(
            program,
            values,
            repeat=steps,
            threads=arguments.threads,
            trace=trace,
            device_memory=arguments.device_memory,
            after_step=launching.saver(arguments, program, first_step, steps),
            feed=feed,
            first_step=first_step,
            **launching.gpu_options(arguments),
        )
        masked: float | None = None
        if trace is not None:
            timeline = read_timeline(trace, program, run.statistics)
            masked = timeline.masked_communication
            if arguments.timeline is not None:
                timeline.write(arguments.timeline)
        return dataclasses.replace(run, masked_communication=masked)


def _check(
    arguments: argparse.Namespace,
    talk: Talk,
    model: Model,
    run: RunResult,
    feed: Feed | None,
    given: Mapping[str, Any],
) -> Checked | None:
    from hyperparallel.cli.models import recompose, reference_results
    from hyperparallel.compare import compare
    from hyperparallel.runtime import bfloat16_to_float32

    if not arguments.check:
        return None
    with talk.step("check"):
        composed = recompose(model)
        if composed is not None:
            return training.check_composed(composed, run, arguments.tolerance)
        if run.losses:
            return training.check(model, run, arguments.tolerance, feed, given)
        if any(result.updates is not None for result in model.imported.results):
            return training.check_decoding(model, run, arguments.tolerance)
        wide = {entry.name for entry in model.imported.results if entry.dtype == "bf16"}
        got = {name: bfloat16_to_float32(value) if name in wide else value for name, value in run.results.items()}
        return Checked(compare(got, reference_results(model), arguments.tolerance))


@contextlib.contextmanager
def _program(arguments: argparse.Namespace, talk: Talk, model: Model, resolved: ResolvedPlan | GroupedPlan) -> Any:
    """The compiled program, kept under a key of all that it is made from; and whether it was there already."""
    from hyperparallel.cache import cache_directory
    from hyperparallel.cli.passing import passing_program
    from hyperparallel.compile import compile_model

    if arguments.no_cache:
        with passing_program(model, resolved, talk, device_memory=arguments.device_memory) as program:
            talk.seconds.update(program.seconds)
            yield program, False
        return
    directory = cache_directory() / "programs"
    target = directory / _program_key(model, resolved, arguments.device_memory)
    kept = _kept_program(target)
    if kept is not None:
        yield kept, True
        return
    program = compile_model(
        model.imported, resolved, out_dir=target, progress=talk.begin, device_memory=arguments.device_memory
    )
    talk.end()
    talk.seconds.update(program.seconds)
    _prune(directory, target)
    yield program, False


def _kept_program(target: Path) -> CompiledProgram | None:
    """The program of an earlier run, if it is whole."""
    from hyperparallel.compiled import CompiledProgram

    try:
        program = CompiledProgram.load(target)
    except RuntimeFailure:
        shutil.rmtree(target, ignore_errors=True)
        return None
    with contextlib.suppress(OSError):
        os.utime(target)
    return program


def _program_key(model: Model, resolved: ResolvedPlan | GroupedPlan, device_memory: int | None) -> str:
    import hyperparallel

    digest = hashlib.sha256()
    package = Path(hyperparallel.__file__).resolve().parent
    for library in sorted([*package.glob("*.so"), *package.glob("*.py"), *package.glob("mpmd/*.py")]):
        stamp = library.stat()
        digest.update(f"{library.name} {stamp.st_size} {stamp.st_mtime_ns}\n".encode())
    digest.update(_processor().encode())
    digest.update(resolved.to_json_text().encode())
    placements = sorted(resolved.placements.items())
    digest.update(f"{model.imported.name} {device_memory} {placements}\n".encode())
    digest.update(model.imported.mlir.encode())
    return digest.hexdigest()[:32]


def _processor() -> str:
    """What code is generated for; a cache may be shared by machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return os.uname().machine
    return "\n".join(
        next((line for line in lines if line.startswith(key)), "") for key in ("model name", "flags", "Features")
    )


def _prune(directory: Path, keep: Path) -> None:
    """Drop the programs that were not used for longest."""
    entries = sorted((path for path in directory.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime)
    for path in entries[: max(0, len(entries) - _KEPT_PROGRAMS)]:
        if path != keep:
            shutil.rmtree(path, ignore_errors=True)


def _report(
    arguments: argparse.Namespace,
    talk: Talk,
    program: CompiledProgram,
    run: RunResult,
    checked: Checked | None,
    begin: float,
    cached: Mapping[str, bool],
) -> int:
    from hyperparallel.runtime import Tier

    statistics = run.statistics
    report: dict[str, Any] = {
        "model": program.name,
        "mesh": dict(program.mesh.axes),
        "devices": program.mesh.num_devices,
        "collectives": {str(kind): count for kind, count in statistics.collectives.items()},
        "moved_bytes": {str(kind): count for kind, count in statistics.moved_bytes.items()},
        "peak_bytes_per_device": [device.peak_bytes[Tier.DEVICE] for device in statistics.devices],
        "peak_bytes": {str(tier): count for tier, count in statistics.peak_bytes.items()},
        "device_memory": program.device_memory if arguments.device_memory is None else arguments.device_memory,
        "planned_peak_bytes": program.peak_bytes,
        "prefetched_bytes_per_device": [device.prefetched_bytes for device in statistics.devices],
        "stored_bytes_per_device": [device.stored_bytes for device in statistics.devices],
        "copy_wait_seconds": max(device.copy_wait_seconds for device in statistics.devices),
        "masked_communication": run.masked_communication,
        "run_seconds": list(run.wall_seconds),
        "results": {
            entry.name: {"shape": list(entry.shape), "dtype": entry.dtype}
            | ({} if entry.updates is None else {"updates": entry.updates})
            for entry in program.results
        },
        "cached": dict(cached),
    }
    if run.losses:
        report |= {"first_step": run.first_step, "losses": list(run.losses)}
    comparison = None if checked is None else checked.comparison
    if checked is not None and checked.losses:
        report["reference_losses"] = list(checked.losses)
    if comparison is not None:
        report |= {
            "ok": comparison.ok,
            "max_rel_error": comparison.max_rel_error,
            "max_abs_error": comparison.max_abs_error,
            "tolerance": comparison.tolerance,
            "max_rel_error_by_result": dict(comparison.by_result),
        }
    if arguments.results is not None:
        _write_results(arguments.results, run)
    report["seconds"] = {**talk.seconds, "total": time.perf_counter() - begin}
    if arguments.json:
        _print_json(report)
    else:
        print(_in_words(report))
    if comparison is not None and not comparison.ok:
        raise RuntimeFailure(
            f"the results differ from PyTorch's: max_rel_error {comparison.max_rel_error:.3g} is above "
            f"{comparison.tolerance:g}"
        )
    return 0


def _write_results(path: Path, run: RunResult) -> None:
    from hyperparallel.compiled import write_arrays

    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            write_arrays(file, run.results)
        temporary.replace(path)
    except OSError as error:
        raise RuntimeFailure(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def _memory_in_words(report: Mapping[str, Any]) -> str:
    from hyperparallel.plan import format_bytes

    peaks = dict(report["peak_bytes"])
    text = f"  memory       {format_bytes(peaks.pop('device', 0))} at the peak on the fullest device"
    if report["device_memory"] is not None:
        text += f", of {format_bytes(report['device_memory'])}"
    fetched = max(report["prefetched_bytes_per_device"], default=0)
    if fetched:
        text += f"; {format_bytes(fetched)} fetched from {format_bytes(sum(peaks.values()))} below"
    return text


def _in_words(report: Mapping[str, Any]) -> str:
    from hyperparallel.plan import format_bytes

    mesh = ",".join(f"{name}={size}" for name, size in report["mesh"].items())
    lines = [f"{report['model']} on {report['devices']} devices ({mesh})"]
    if "losses" in report:
        losses = report["losses"]
        lines.append(f"  training     {len(losses)} steps, loss {losses[0]:.6g} to {losses[-1]:.6g}")
    for name, entry in report["results"].items():
        if "losses" in report:
            break  # the loss, and what was there before
        if "updates" in entry:
            continue
        lines.append(f"  result       {name}: {'x'.join(str(size) for size in entry['shape'])} {entry['dtype']}")
    if "max_rel_error" in report:
        verdict = "equal to PyTorch" if report["ok"] else "NOT equal to PyTorch"
        lines.append(
            f"  check        {verdict}: max relative error {report['max_rel_error']:.2g}, absolute "
            f"{report['max_abs_error']:.2g}"
        )
    counts = report["collectives"]
    for kind, count in counts.items():
        lines.append(
            f"  {kind:<12} {count} times, {format_bytes(report['moved_bytes'].get(kind, 0))} received by all devices"
        )
    if not counts:
        lines.append("  no communication")
    lines.append(_memory_in_words(report))
    lines.append(
        f"  time         {report['run_seconds'][-1] * 1e3:.1f} ms for the run, "
        f"{report['seconds']['total']:.1f} s in all"
    )
    return "\n".join(lines)


# The machine ----------------------------------------------------------------------------------------------------------


def doctor_command(arguments: argparse.Namespace) -> int:
    """``hp doctor``."""
    from hyperparallel.cli.doctor import examine

    findings = examine()
    if arguments.json:
        _print_json([dataclasses.asdict(finding) for finding in findings])
    else:
        for finding in findings:
            print(
                f"{'ok     ' if finding.ok else 'missing' if finding.needed else 'absent '} "
                f"{finding.what}: {finding.text}"
            )
    broken = [finding.what for finding in findings if finding.needed and not finding.ok]
    if broken:
        raise HyperParallelError(f"what is needed and not there: {', '.join(broken)}")
    return 0


def version_command(arguments: argparse.Namespace) -> int:
    """``hp version``."""
    from hyperparallel.cli.doctor import versions

    found = versions()
    if arguments.json:
        _print_json(found)
    else:
        for name, version in found.items():
            print(f"{name} {version}")
    return 0


__all__ = ["compile_command", "doctor_command", "import_command", "plan_command", "run_command", "version_command"]
