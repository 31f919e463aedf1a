# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models over processes: the numbers of one process, from the compiler's programs to mpiexec and hp-run."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from hyperparallel import hp_run
from hyperparallel.cli.models import example_inputs
from hyperparallel.compile import compile_model
from hyperparallel.compiled import CompiledProgram, write_arrays
from hyperparallel.execute import run_compiled
from hyperparallel.frontend.artifact import ImportedModel
from hyperparallel.frontend.model_file import load_model_file
from hyperparallel.frontend.torch import import_model
from hyperparallel.frontend.training import import_training
from hyperparallel.launching import ProcessRun, find_mpiexec, run_over_processes
from hyperparallel.plan import Plan
from hyperparallel.runtime import Collective
from hyperparallel.state import open_state, save_step, state_of
from hyperparallel.tensor_files import write_safetensors
from hyperparallel.testing.processes import worker_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SMALL = {"layers": 2, "features": 12, "width": 16, "hidden": 40, "classes": 5, "batch": 4}
TINY = {"width": 16, "heads": 2, "vocab": 48, "positions": 16, "batch": 8, "seq": 6, "microbatches": 4}

pytestmark = pytest.mark.skipif(not (Path(sys.prefix) / "bin" / "mpiexec").exists(), reason="mpich is not installed")
Values = Callable[[str], Any]


@functools.cache
def imported_example(name: str) -> tuple[ImportedModel, dict[str, Any]]:
    """An example, or its training step, and inputs."""
    loaded = load_model_file(EXAMPLES / f"{name}.py", TINY if name.startswith("gpt2") else SMALL)
    if loaded.training is None:
        imported = import_model(loaded.module, loaded.args, loaded.kwargs, name=name)
    else:
        imported = import_training(loaded.module, loaded.args, loaded.kwargs, training=loaded.training, name=name)
    return imported, example_inputs(loaded)


def compiled(name: str, plan: Plan, directory: Path) -> tuple[CompiledProgram, Values]:
    """An example, compiled, and the values of its arguments."""
    imported, inputs = imported_example(name)
    program = compile_model(imported, plan, None, directory)
    return program, lambda argument: inputs[argument] if argument in inputs else imported.weight(argument)


def spread(program: CompiledProgram, values: Values, **options: Any) -> ProcessRun:
    return run_over_processes(program.directory, program.programs or (program,), values, threads=1, **options)


def test_stages_over_processes(tmp_path: Path) -> None:
    program, values = compiled("mlp", Plan(mesh="pp=2,dp=2", preset="data_parallel"), tmp_path / "program")
    alone = run_compiled(program, values, threads=4)
    run = spread(program, values)
    assert {device.device for device in run.statistics.devices} == {0, 1, 2, 3}
    sent = sum(device.collectives[Collective.SEND] for device in run.statistics.devices)
    assert sent == sum(device.collectives[Collective.RECV] for device in run.statistics.devices) > 0
    for name, value in alone.results.items():
        np.testing.assert_allclose(run.results[name], value, rtol=1e-5, atol=1e-6)


def test_a_training_goes_on_over_processes_in_another_layout(tmp_path: Path) -> None:
    program, values = compiled("mlp_train", Plan(mesh="dp=3", preset="fsdp"), tmp_path / "first")
    whole = run_compiled(
        program,
        values,
        repeat=4,
        after_step=lambda turn, launches: (
            save_step(tmp_path / "s", turn, state_of((program,), launches)) if turn == 2 else None
        ),
    )
    other, values = compiled("mlp_train", Plan(mesh="dp=2", preset="data_parallel"), tmp_path / "second")
    rest = spread(other, values, steps=2, resume=tmp_path / "s", save=tmp_path / "s")
    assert rest.first_step == 2
    np.testing.assert_allclose(rest.losses, whole.losses[2:], rtol=1e-5)
    state = open_state(tmp_path / "s")
    assert state.step == 4
    for result in program.results:
        if result.updates is not None:
            np.testing.assert_allclose(
                state.read(result.updates), whole.results[result.name], rtol=1e-4, atol=1e-6, err_msg=result.updates
            )


def test_a_pipeline_of_which_a_rank_is_killed_goes_on(tmp_path: Path) -> None:
    """The plan of two stages of two devices; batch by batch, the state goes on to the very numbers of a training that
    nobody killed.
    """
    program, values = compiled("gpt2_train", Plan.load(EXAMPLES / "gpt2_train_pp2_tp2.yaml"), tmp_path / "program")
    arguments = {argument.name: argument for one in program.programs for argument in one.arguments}
    given, data = tmp_path / "values.safetensors", tmp_path / "data.npz"
    write_safetensors(given, {name: (argument.dtype, values(name)) for name, argument in arguments.items()})
    rows = np.random.default_rng(0).integers(TINY["vocab"], size=(28, TINY["seq"] + 1))
    with data.open("wb") as file:
        write_arrays(file, {"input_ids": rows[:, :-1], "labels": rows[:, 1:]})
    command = [str(hp_run.path()), str(program.directory), "--threads=1", f"--inputs={given}", f"--data={data}"]
    spread_command = [str(find_mpiexec()), "-n", "4", *command]
    saved = tmp_path / "s"
    started = subprocess.Popen(
        [*spread_command, "--steps=1000000", f"--save={saved}", "--save-every=10", "--lost-after=1500"],
        stderr=subprocess.PIPE,
        text=True,
    )
    while started.poll() is None and not (saved / "step-00000020").exists():
        time.sleep(0.02)
    os.kill(worker_of(2, program.directory), signal.SIGKILL)
    begin = time.monotonic()
    _, said = started.communicate(timeout=60)
    assert time.monotonic() - begin < 10
    assert started.returncode != 0
    for rank in (0, 1, 3):
        assert f"hp-run: rank {rank}: error: " in said
    assert "rank 2 is lost: nothing was heard of it for 1.5 s" in said
    assert " waits in " in said or "this rank waits for all others" in said

    def losses(*words: str) -> list[float]:
        return json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)["losses"]

    step = open_state(saved).step
    rest = losses(*spread_command, "--steps=3", f"--resume={saved}")
    assert rest == losses(*command, f"--steps={step + 3}")[step:]
