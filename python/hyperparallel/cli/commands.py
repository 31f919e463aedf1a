# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``hp import``, ``plan``, ``compile``, ``doctor`` and ``version``."""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from pathlib import Path

from hyperparallel.cli import feeding
from hyperparallel.cli.console import Talk
from hyperparallel.cli.kernels import kernel_report, kernel_summary
from hyperparallel.cli.memory_plan import memory_lines, plan_memory
from hyperparallel.cli.opening import open_model, plan_of, print_json, resolve
from hyperparallel.errors import CompilationError, HyperParallelError, ImportModelError


def import_command(arguments: argparse.Namespace) -> int:
    """``hp import``."""
    from hyperparallel.cli.models import save_model
    from hyperparallel.compiled import new_directory
    from hyperparallel.frontend.artifact import MANIFEST_FILE

    if arguments.model.is_dir():
        raise ImportModelError(f"{arguments.model} is a directory; expected a Python file with build()")
    talk = Talk(arguments.quiet)
    model = open_model(arguments, talk)
    if arguments.train and not model.imported.microbatches:
        raise ImportModelError(
            f"{arguments.model} does not say how it is trained; let build() return a Training behind the inputs"
        )
    with new_directory(arguments.output, replaces=MANIFEST_FILE) as made:
        save_model(model, made)
    if arguments.json:
        print_json(
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


def plan_command(arguments: argparse.Namespace) -> int:
    """``hp plan``."""
    from hyperparallel import machines
    from hyperparallel.plan import GroupedPlan, explain, explain_groups, explain_groups_json, explain_json

    plan = plan_of(arguments)
    machine = None if arguments.machine is None else machines.load(arguments.machine)
    talk = Talk(arguments.quiet)
    # Read before the model, so that a bad plan is told at once.
    model = open_model(arguments, talk, plan)
    resolved = resolve(arguments, model)
    if arguments.resolved:
        print(resolved.to_json_text(), end="")
        return 0
    memory = plan_memory(arguments, model, resolved, talk)
    if arguments.json:
        data = explain_groups_json(resolved) if isinstance(resolved, GroupedPlan) else explain_json(resolved, machine)
        print_json({**data, "memory": memory})
    elif isinstance(resolved, GroupedPlan):
        print("\n".join([explain_groups(resolved), *memory_lines(memory, arguments.all)]))
    else:
        text = explain(resolved, every=arguments.all, machine=machine)
        print("\n".join([text, *memory_lines(memory, arguments.all)]))
    return 0


def _chips_of(arguments: argparse.Namespace) -> str | None:
    """What ``--arch`` or ``--soc`` says; nothing for the default.

    Raises:
        CompilationError: If it is malformed, or of another target.
    """
    from hyperparallel.bishengir import read_soc
    from hyperparallel.ptxas import read_architectures

    chips: str | None = None
    for option, value, target, read in (
        ("--arch", arguments.arch, "cuda", read_architectures),
        ("--soc", arguments.soc, "ascend", read_soc),
    ):
        if value is None:
            continue
        if arguments.target != target:
            raise CompilationError(f"{option} is for the target {target} but the target is {arguments.target}")
        read(value)
        chips = value
    return chips


def compile_command(arguments: argparse.Namespace) -> int:
    """``hp compile``."""
    from hyperparallel import machines
    from hyperparallel.compile import compile_model

    # Read before the model, so that a bad option is told at once.
    chips = _chips_of(arguments)
    plan = plan_of(arguments)
    machine = None if arguments.machine is None else machines.load(arguments.machine)
    talk = Talk(arguments.quiet)
    model = open_model(arguments, talk, plan)
    resolved = resolve(arguments, model)
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
            architectures=chips,
            inputs=model.inputs,
            source=model.source,
            weights=weights,
            progress=talk.begin,
            device_memory=arguments.device_memory,
            workspace=arguments.workspace,
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
        print_json(
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
                "workspace": program.workspace,
                "seconds": {**talk.seconds, **program.seconds},
            }
        )
    else:
        print(program.directory)
    return 0


def doctor_command(arguments: argparse.Namespace) -> int:
    """``hp doctor``."""
    from hyperparallel.cli.doctor import examine

    findings = examine()
    if arguments.json:
        print_json([dataclasses.asdict(finding) for finding in findings])
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
        print_json(found)
    else:
        for name, version in found.items():
            print(f"{name} {version}")
    return 0


__all__ = ["compile_command", "doctor_command", "import_command", "plan_command", "version_command"]
