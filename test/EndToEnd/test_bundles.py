# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What ``hp compile`` writes runs without Python, MLIR and LLVM: ``hp-run`` and the runtime, in an empty environment."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from fakes import fake_libraries

from hyperparallel import hp_run
from hyperparallel.cli.models import example_inputs
from hyperparallel.compile import compile_model
from hyperparallel.compiled import CompiledProgram
from hyperparallel.execute import run_compiled
from hyperparallel.frontend.artifact import ImportedModel
from hyperparallel.frontend.model_file import load_model_file
from hyperparallel.frontend.training import import_training
from hyperparallel.plan import Plan
from hyperparallel.runtime import find_library, find_openblas
from hyperparallel.state import open_state

ROOT = Path(__file__).resolve().parents[2]
SIZES = {"layers": 2, "features": 12, "width": 16, "hidden": 40, "classes": 5, "batch": 4}
MOST_BYTES = 20_000_000
"""Of the runtime, without weights and BLAS."""


@pytest.fixture(scope="module")
def trained_mlp() -> tuple[ImportedModel, dict[str, Any]]:
    loaded = load_model_file(ROOT / "examples" / "mlp_train.py", SIZES)
    assert loaded.training is not None
    model = import_training(loaded.module, loaded.args, loaded.kwargs, training=loaded.training, name="mlp_train")
    return model, dict(example_inputs(loaded))


def bundle(model: ImportedModel, inputs: dict[str, Any], folder: Path, target: str) -> CompiledProgram:
    """A program with its weights and inputs beside it."""
    weights = model.save(folder / "imported") / "model.safetensors"
    return compile_model(
        model,
        Plan(preset="megatron"),
        "dp=2,tp=2",
        folder / "program",
        target=target,
        architectures="sm_80",
        inputs=inputs,
        weights=weights,
    )


def lone_runtime(folder: Path) -> Path:
    """hp-run with the libraries of the runtime, and nothing of the package beside them; their size is checked."""
    place = folder / "runtime" / "hyperparallel"
    (place / "bin").mkdir(parents=True)
    package = find_library().parent
    parts = [package / "libhp_runtime.so", package / "libhp_cuda.so"]
    for part in parts:
        shutil.copy(part, place)
    shutil.copy(hp_run.path(), place / "bin")
    assert sum(path.stat().st_size for path in place.rglob("*") if path.is_file()) < MOST_BYTES
    return place / "bin" / "hp-run"


def run_alone(command: list[str | Path], environment: dict[str, str]) -> dict[str, Any]:
    """Run with no variables but those given, outside of the source tree."""
    ran = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_three_steps_of_training(
    target: str, tmp_path: Path, trained_mlp: tuple[ImportedModel, dict[str, Any]]
) -> None:
    """The same losses and parameters as from Python on the CPU; for GPUs over the fake driver."""
    model, inputs = trained_mlp
    (tmp_path / target).mkdir()
    program = bundle(model, inputs, tmp_path / target, target)
    runner = lone_runtime(tmp_path)
    command: list[str | Path] = [runner, program.directory, "--steps=3", f"--results={tmp_path / 'results'}"]
    environment: dict[str, str] = {}
    if target == "cuda":
        environment = fake_libraries("cuda")
    else:
        openblas = find_openblas()
        assert openblas is not None
        command.append(f"--openblas={openblas}")
    report = run_alone(command, environment)
    (tmp_path / "again").mkdir()
    on_cpu = program if target == "cpu" else bundle(model, inputs, tmp_path / "again", "cpu")
    wanted = run_compiled(
        on_cpu, lambda name: inputs[name] if name in inputs else np.array(model.weight(name)), repeat=3
    )
    tolerance = 1e-6 if target == "cpu" else 1e-4
    np.testing.assert_allclose(report["losses"], wanted.losses, rtol=tolerance)
    found = open_state(tmp_path / "results")
    for name, value in wanted.results.items():
        np.testing.assert_allclose(found.read(name), value, rtol=tolerance, atol=tolerance, err_msg=name)


def shared_objects(files: Iterable[Path]) -> set[Path]:
    """What the loader opens for them, itself included."""
    told = subprocess.run(["ldd", *files], capture_output=True, text=True, check=True).stdout
    return {Path(path) for path in re.findall(r"(?:=> |^\s+)(/\S+)", told, re.M)}


def test_in_a_clean_root(tmp_path: Path, trained_mlp: tuple[ImportedModel, dict[str, Any]]) -> None:
    """A root with nothing but the bundle, BLAS, and what the loader opens of the C and C++ libraries."""
    enter = ["unshare", "--user", "--map-root-user"]
    allowed = subprocess.run([*enter, "true"], capture_output=True, text=True, check=False)
    if allowed.returncode != 0:
        pytest.skip(f"no user namespaces here: {allowed.stderr.strip()}")
    model, inputs = trained_mlp
    program, openblas = bundle(model, inputs, tmp_path, "cpu"), find_openblas()
    assert openblas is not None
    runner, root = lone_runtime(tmp_path), tmp_path / "root"
    shutil.copytree(runner.parents[1], root / "hyperparallel")
    shutil.copytree(program.directory, root / "program")
    weights = (root / "program" / "model.safetensors").stat().st_size
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
    assert size - weights < MOST_BYTES
    opened = [runner, runner.parents[1] / "libhp_runtime.so", program.directory / "program.so", openblas]
    for path in {openblas.resolve(), *shared_objects(opened)}:
        if tmp_path not in path.parents:
            (root / path.relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, root / path.relative_to("/"))
    (root / "tmp").mkdir(exist_ok=True)  # where BLAS itself lies below /tmp, it is there
    names = {path.name for path in root.rglob("*") if path.is_file()}
    assert not any(re.match(r"python|libpython|libLLVM|libMLIR|libHyperParallel|sh$|bash", name) for name in names)
    command = ["/hyperparallel/bin/hp-run", "/program", "--steps=3", f"--openblas={openblas.resolve()}"]
    # Without /proc the loader cannot tell where hp-run lies.
    environment = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": "/hyperparallel"}
    report = run_alone([*enter, f"--root={root}", "--wd=/", *command], environment)
    wanted = run_compiled(
        program, lambda name: inputs[name] if name in inputs else np.array(model.weight(name)), repeat=3
    )
    np.testing.assert_allclose(report["losses"], wanted.losses, rtol=1e-6)


def test_gpus_are_one_processes(tmp_path: Path, trained_mlp: tuple[ImportedModel, dict[str, Any]]) -> None:
    model, inputs = trained_mlp
    program = bundle(model, inputs, tmp_path, "cuda")
    ran = subprocess.run(
        [hp_run.path(), program.directory],
        env={"PMI_RANK": "0", "PMI_SIZE": "2"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 1
    assert "a program for cuda runs all its devices in one process; start hp-run without mpiexec" in ran.stderr
