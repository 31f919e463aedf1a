# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``hp run``: a model or a compiled program, executed, checked against PyTorch and reported."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperparallel.cli import feeding, launching, training
from hyperparallel.cli.console import Talk
from hyperparallel.cli.kept_programs import compiled_program
from hyperparallel.cli.opening import open_model, plan_of, print_json, resolve
from hyperparallel.cli.training import Checked
from hyperparallel.errors import PlanError, RuntimeFailure

if TYPE_CHECKING:
    from hyperparallel.cli.models import Model
    from hyperparallel.compiled import CompiledProgram
    from hyperparallel.execute import RunResult
    from hyperparallel.feed import Feed


def run_command(arguments: argparse.Namespace) -> int:
    """``hp run``."""
    from hyperparallel.compiled import CompiledProgram, is_compiled

    begin = time.perf_counter()
    talk = Talk(arguments.quiet)
    if arguments.model.is_dir() and is_compiled(arguments.model):
        program = CompiledProgram.load(arguments.model)
        _check_options(arguments, program)
        return _run_saved(arguments, talk, program, begin)
    plan = plan_of(arguments)
    model = open_model(arguments, talk, plan)
    training.check_steps(arguments, any(result.updates is not None for result in model.imported.results))
    if not model.imported.has_weights:
        raise RuntimeFailure(f"{model.imported.name} was imported without weights and cannot be run")
    resolved = resolve(arguments, model)
    with compiled_program(arguments, talk, model, resolved) as (program, was_cached):
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
        print_json(report)
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
        with contextlib.suppress(OSError):
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
