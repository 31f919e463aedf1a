# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Examples at tiny sizes, compiled for GPUs and run on fake ones (``test/Runtime/fakes``).

What is compared with is the same program on the CPU, which other tests compare with PyTorch. Models are tiny: a thread of a
kernel takes its time here.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from command import Outcome

from hyperparallel.cli.models import example_inputs
from hyperparallel.compile import PlanLike, compile_model
from hyperparallel.compiled import COVERAGE_FILE, MANIFEST_FILE, OFFLOAD_FILE, PROGRAM_FILE, CompiledProgram, file_hash
from hyperparallel.execute import RunResult, run_compiled
from hyperparallel.frontend.artifact import ImportedModel
from hyperparallel.frontend.model_file import load_model_file
from hyperparallel.frontend.torch import import_model
from hyperparallel.frontend.training import import_training
from hyperparallel.plan import Plan

ROOT = Path(__file__).resolve().parents[2]

_TEXT = {"layers": 1, "width": 16, "heads": 2, "vocab": 37, "batch": 2, "seq": 6}
_GROUPED = {**_TEXT, "ff": 24, "kv_heads": 1}
_SIZES: dict[str, dict[str, Any]] = {
    "gpt2": {**_TEXT, "positions": 8},
    "llama": {**_GROUPED, "layers": 2},
    "bert": {**_TEXT, "ff": 24, "positions": 8},
    "vit": {"layers": 1, "width": 16, "heads": 2, "ff": 24, "image": 16, "patch": 8, "batch": 2},
    "mixtral": _GROUPED,
}
MODELS = ["gpt2", "llama", "bert", "vit", "mixtral"]
ALL = [*MODELS, *(f"{name}_train" for name in MODELS)]
MESHES = {"one": "tp=1", "2x2": "dp=2,tp=2"}
CELLS = [(name, mesh) for name in ALL for mesh in MESHES]
SHARDED: dict[str, dict[str, Any]] = {
    "gpt2": {"vocab": 38},
    "llama": {"kv_heads": 2, "vocab": 38},
    "mixtral": {"kv_heads": 2},
}
"""What has to be larger to be split in two."""
LAYERS_IN_HALF = {
    **{"gpt2": 2, "llama": 1, "bert": 2, "vit": 5, "mixtral": 2},
    **{"gpt2_train": 1, "llama_train": 1, "bert_train": 1, "vit_train": 4, "mixtral_train": 1},
}
"""As many as it takes until no single op of a device needs more than half, also of a quarter of the model."""
RunBoth = Callable[..., tuple[CompiledProgram, RunResult]]
TOLERANCE = 1e-3
"""Of the greatest value: what the fakes sum in another order than the CPU."""


@dataclasses.dataclass(frozen=True)
class Case:
    """An imported model, and its inputs."""

    imported: ImportedModel
    inputs: Mapping[str, Any]

    def compile(self, plan: PlanLike, mesh: str | None, directory: Path, **options: Any) -> CompiledProgram:
        """Compile it for GPUs.

        Args:
            plan: A plan.
            mesh: The mesh, if the plan has none.
            directory: Gets the program.
            options: More for ``compile_model``.
        """
        chosen = {"target": "cuda", "architectures": "sm_80", **options}
        return compile_model(self.imported, plan, mesh, directory, **chosen)

    def run(self, program: CompiledProgram, **options: Any) -> RunResult:
        """Run one of its programs.

        Args:
            program: The program.
            options: More for ``run_compiled``.
        """
        return run_compiled(
            program,
            lambda name: self.inputs[name] if name in self.inputs else np.array(self.imported.weight(name)),
            **options,
        )


def sizes_of(name: str) -> dict[str, Any]:
    """Tiny sizes of an example, as its ``build`` takes them."""
    return _SIZES[name.removesuffix("_train")]


@functools.cache
def case(name: str, **more: Any) -> Case:
    """An example at a tiny size, or its training step.

    Args:
        name: Of the example, such as ``gpt2`` or ``gpt2_train``.
        more: Other sizes than those that are chosen for it.
    """
    loaded = load_model_file(ROOT / "examples" / f"{name}.py", {**sizes_of(name), **more})
    if loaded.training is None:
        imported = import_model(loaded.module, loaded.args, loaded.kwargs, name=name)
    else:
        imported = import_training(loaded.module, loaded.args, loaded.kwargs, training=loaded.training, name=name)
    return Case(imported, dict(example_inputs(loaded)))


def words_of(name: str, mesh: str, **more: Any) -> list[object]:
    """The words for ``hp`` of a model, its sizes, and its plan.

    Args:
        name: Of the example.
        mesh: Of the devices.
        more: Sizes.
    """
    sizes = {**sizes_of(name), **(SHARDED.get(name.removesuffix("_train"), {}) if "=2" in mesh else {}), **more}
    chosen = [word for key, value in sizes.items() for word in ("--model-arg", f"{key}={value}")]
    return [ROOT / "examples" / f"{name}.py", *chosen, "--preset", "megatron", "--mesh", mesh, "--json", "-q"]


def run_and_check(hp: Callable[..., Outcome], name: str, folder: Path, devices: int) -> dict[str, Any]:
    """What ``hp run --check`` tells of a compiled model, which is near PyTorch's: forward, or two steps of training.

    Args:
        hp: Runs the command.
        name: Of the example.
        folder: Has the program.
        devices: How many there are.
    """
    steps = ("--steps", 2) if name.endswith("_train") else ()
    told = hp("run", folder, "--check", "--tolerance", TOLERANCE, *steps, "--json", "-q").told()
    assert told["ok"]
    assert 0 < told["max_rel_error"] <= TOLERANCE
    assert len(told.get("losses", [])) == (2 if steps else 0)
    assert bool(told["collectives"]) == (devices > 1)
    return told


def assert_within_half(whole: Mapping[str, Any], made: Mapping[str, Any], told: Mapping[str, Any]) -> None:
    """Each device measured what was planned, at most half of the whole, and fetched something.

    Args:
        whole: What ``hp compile`` tells of the program with all the memory that it wants.
        made: The same of the one with half.
        told: What ``hp run`` tells of that one.
    """
    assert told["peak_bytes_per_device"] == [made["peak_bytes"]] * made["devices"]
    assert made["peak_bytes"] <= whole["peak_bytes"] // 2
    assert all(told["prefetched_bytes_per_device"])


def assert_alike(left: RunResult, right: RunResult, tolerance: float = TOLERANCE) -> None:
    """Results and losses agree.

    Args:
        left: A run.
        right: Another one.
        tolerance: Relative, and of each result's greatest value, where that is more than rounding: the gradient of a
            bias of keys is nothing else.
    """
    assert left.results.keys() == right.results.keys()
    for name, value in left.results.items():
        wanted = right.results[name].astype(np.float64)
        greatest = max(np.abs(wanted).max(), 1e-6)
        np.testing.assert_allclose(value, wanted, rtol=tolerance, atol=tolerance * greatest, err_msg=name)
    np.testing.assert_allclose(left.losses, right.losses, rtol=tolerance)


def reports(program: CompiledProgram) -> list[dict[str, Any]]:
    """What each device group's program is made of."""
    return [json.loads((one.directory / COVERAGE_FILE).read_text()) for one in program.programs or (program,)]


def in_half(run_both: RunBoth, one: Case, folder: Path, steps: int, **target: Any) -> CompiledProgram:
    """The program for devices in half the memory that it wants, which runs to the same numbers.

    Args:
        run_both: Compiles it for the CPU and for devices, and compares.
        one: The model.
        folder: Gets the programs.
        steps: How many are run.
        target: What the memory that it wants is found for.
    """
    whole = compile_model(
        one.imported,
        Plan(preset="megatron"),
        "tp=1",
        folder / "whole",
        device_memory=1 << 40,
        recompute=False,
        **target,
    )
    limit = json.loads((whole.directory / OFFLOAD_FILE).read_text())["unplanned_peak_bytes"] // 2
    program, run = run_both(one, "tp=1", folder, steps, device_memory=limit, recompute=False)
    (device,) = run.statistics.devices
    assert device.prefetches > 0
    assert device.peak_bytes["device"] == program.peak_bytes <= limit
    return program


def without_calls(program: CompiledProgram, called: str, instead: str) -> CompiledProgram:
    """The program with every call of a function of the runtime made another one's.

    Args:
        program: The program, which is changed; its groups' programs, if it has some.
        called: The function, which one of them calls.
        instead: A function whose name is as long.
    """
    assert len(called) == len(instead)
    found = 0
    for one in program.programs or (program,):
        path = one.directory / PROGRAM_FILE
        code = path.read_bytes()
        found += code.count(called.encode() + b"\0")
        path.write_bytes(code.replace(called.encode() + b"\0", instead.encode() + b"\0"))
        manifest = json.loads((one.directory / MANIFEST_FILE).read_text())
        manifest["files"][PROGRAM_FILE] = file_hash(path)
        (one.directory / MANIFEST_FILE).write_text(json.dumps(manifest))
    assert found > 0
    return CompiledProgram.load(program.directory)


__all__ = [
    "LAYERS_IN_HALF",
    "MESHES",
    "MODELS",
    "ROOT",
    "SHARDED",
    "TOLERANCE",
    "Case",
    "assert_alike",
    "case",
    "in_half",
    "reports",
    "sizes_of",
    "without_calls",
    "words_of",
]
