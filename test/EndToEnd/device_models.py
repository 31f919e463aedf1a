# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole models at tiny sizes, compiled for a device with memory of its own and run on fakes of its libraries.

What is compared with is the same program on the CPU, which other tests compare with PyTorch. Models are tiny: a thread of a
kernel takes its time here.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hyperparallel.cli.models import example_inputs
from hyperparallel.compile import compile_model
from hyperparallel.compiled import COVERAGE_FILE, MANIFEST_FILE, PROGRAM_FILE, CompiledProgram, file_hash
from hyperparallel.execute import RunResult, run_compiled
from hyperparallel.frontend.artifact import ImportedModel
from hyperparallel.frontend.model_file import load_model_file
from hyperparallel.frontend.torch import import_model
from hyperparallel.frontend.training import import_training
from hyperparallel.plan import Plan

ROOT = Path(__file__).resolve().parents[2]
FAKES = ROOT / "build" / "test" / "Runtime" / "fakes"
ARCHITECTURES = {"cuda": "sm_80", "ascend": "Ascend910B1"}
TEXT = {"layers": 1, "width": 16, "heads": 2, "vocab": 37, "batch": 2, "seq": 6}
SMALL: dict[str, dict[str, int]] = {
    "gpt2": {**TEXT, "positions": 8},
    "llama": {**TEXT, "ff": 24, "kv_heads": 1, "layers": 2},
    "bert": {**TEXT, "ff": 24},
    "vit": {"layers": 1, "width": 16, "heads": 2, "ff": 24, "image": 16, "patch": 8, "batch": 2},
    "mixtral": {**TEXT, "ff": 24, "kv_heads": 1},
    "gpt2_train": {**TEXT, "positions": 8},
    "llama_train": {**TEXT, "ff": 24, "kv_heads": 1},
}
TOLERANCE = 1e-3
"""Of the greatest value: what the fakes sum in another order than the CPU."""


@dataclasses.dataclass(frozen=True)
class Case:
    """An imported model, and its inputs."""

    imported: ImportedModel
    inputs: Mapping[str, Any]

    def run(self, program: CompiledProgram, **options: Any) -> RunResult:
        """Run one of its programs."""
        return run_compiled(
            program,
            lambda name: self.inputs[name] if name in self.inputs else np.array(self.imported.weight(name)),
            **options,
        )


@functools.cache
def case(name: str, **more: int) -> Case:
    """An example at a tiny size, or its training step."""
    loaded = load_model_file(ROOT / "examples" / f"{name}.py", {**SMALL[name], **more})
    if loaded.training is None:
        imported = import_model(loaded.module, loaded.args, loaded.kwargs, name=name)
    else:
        imported = import_training(loaded.module, loaded.args, loaded.kwargs, training=loaded.training, name=name)
    return Case(imported, dict(example_inputs(loaded)))


def both(
    target: str, one: Case, plan: str, mesh: str, folder: Path, steps: int = 1, **options: Any
) -> tuple[CompiledProgram, RunResult]:
    """The program for the target, and its run, which equals that of the CPU: results, losses, and what a step updates."""
    on_cpu = one.run(compile_model(one.imported, Plan(preset=plan), mesh, folder / "cpu"), repeat=steps)
    program = compile_model(
        one.imported,
        Plan(preset=plan),
        mesh,
        folder / target,
        target=target,
        architectures=ARCHITECTURES[target],
        **options,
    )
    run = one.run(program, repeat=steps)
    assert_alike(run, on_cpu)
    return program, run


def assert_alike(left: RunResult, right: RunResult) -> None:
    assert left.results.keys() == right.results.keys()
    for name, value in left.results.items():
        wanted = right.results[name].astype(np.float64)
        np.testing.assert_allclose(value, wanted, rtol=TOLERANCE, atol=TOLERANCE * np.abs(wanted).max(), err_msg=name)
    np.testing.assert_allclose(left.losses, right.losses, rtol=TOLERANCE)


def reports(program: CompiledProgram) -> list[dict[str, Any]]:
    """What each device group's program is made of."""
    return [json.loads((one.directory / COVERAGE_FILE).read_text()) for one in program.programs or (program,)]


def without_waits(program: CompiledProgram) -> CompiledProgram:
    """The program, in which the wait for a copy is a call that does nothing: a name of the same length."""
    path = program.directory / PROGRAM_FILE
    code = path.read_bytes()
    assert b"hp_rt_copy_wait\0" in code
    path.write_bytes(code.replace(b"hp_rt_copy_wait\0", b"hp_rt_range_end\0"))
    manifest = json.loads((program.directory / MANIFEST_FILE).read_text())
    manifest["files"][PROGRAM_FILE] = file_hash(path)
    (program.directory / MANIFEST_FILE).write_text(json.dumps(manifest))
    return CompiledProgram.load(program.directory)
