# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``hp run`` over processes and from states: the values of a local run, and options that do not go together."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_model import expected

from hyperparallel.enums import Role
from hyperparallel.frontend.artifact import ArgumentInfo, ImportedModel, ResultInfo

needs_mpi = pytest.mark.skipif(not (Path(sys.prefix) / "bin" / "mpiexec").exists(), reason="mpich is not installed")

TRAINING = """module {
  func.func @main(%x: tensor<6xf32> {hp.name = "x", hp.role = "input"},
                  %w: tensor<6xf32> {hp.name = "w", hp.role = "parameter"})
      -> (tensor<f32> {hp.name = "loss"}, tensor<6xf32> {hp.name = "w", hp.updates = "w"}) {
    %zero = arith.constant 0.0 : f32
    %scalar = tensor.empty() : tensor<f32>
    %start = linalg.fill ins(%zero : f32) outs(%scalar : tensor<f32>) -> tensor<f32>
    %loss = linalg.dot ins(%x, %w : tensor<6xf32>, tensor<6xf32>) outs(%start : tensor<f32>) -> tensor<f32>
    %empty = tensor.empty() : tensor<6xf32>
    %next = linalg.sub ins(%w, %x : tensor<6xf32>, tensor<6xf32>) outs(%empty : tensor<6xf32>) -> tensor<6xf32>
    return %loss, %next : tensor<f32>, tensor<6xf32>
  }
}
"""


@pytest.fixture
def training_dir(tmp_path: Path) -> Path:
    """A training step that takes x from w, as ``hp import`` could have made it."""
    x, w = np.arange(1, 7, dtype=np.float32), np.arange(6, dtype=np.float32) - 2.5
    model = ImportedModel(
        "descent",
        TRAINING,
        (ArgumentInfo("x", Role.INPUT, (6,), "f32"), ArgumentInfo("w", Role.PARAMETER, (6,), "f32")),
        (ResultInfo("loss", (), "f32"), ResultInfo("w", (6,), "f32", "w")),
        has_weights=True,
        microbatches=1,
        _read_weight=lambda _name: w,
    )
    directory = model.save(tmp_path / "training")
    (directory / "source.json").write_text(json.dumps({}))
    with (directory / "inputs.npz").open("wb") as file:
        np.savez(file, x=x)
    return directory


LOSSES = [float(np.dot(np.arange(1, 7), np.arange(6) - 2.5 - step * np.arange(1, 7))) for step in range(5)]


@needs_mpi
@pytest.mark.parametrize("processes", [None, 2])
def test_values_over_processes(processes: int | None, hp: Callable[..., Any], model_dir: Path, tmp_path: Path) -> None:
    results = tmp_path / "y.npz"
    words = [
        "run",
        model_dir,
        "--preset",
        "fsdp",
        "--mesh",
        "dp=3",
        "--launcher",
        "mpi",
        "--json",
        "--results",
        results,
    ]
    outcome = hp(*words, *([] if processes is None else ["--processes", processes]))
    assert outcome.status == 0, outcome.err
    report = json.loads(outcome.out)
    assert report["collectives"] == {"all_gather": 1}, "both weights in one message"
    assert len(report["peak_bytes_per_device"]) == 3
    with np.load(results) as file:
        np.testing.assert_allclose(file["y"], expected(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("launcher", ["local", pytest.param("mpi", marks=needs_mpi)])
def test_a_training_is_saved_and_goes_on(
    launcher: str, hp: Callable[..., Any], training_dir: Path, tmp_path: Path
) -> None:
    words = ["run", training_dir, "--preset", "fsdp", "--json", "--launcher", launcher]
    first = hp(*words, "--mesh", "dp=2", "--steps", 3, "--save", tmp_path / "s", "--save-every", 2)
    assert first.status == 0, first.err
    assert json.loads(first.out)["losses"] == LOSSES[:3]
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == ["step-00000002", "step-00000003"]
    rest = hp(*words, "--mesh", "dp=3", "--steps", 2, "--resume", tmp_path / "s")
    assert rest.status == 0, rest.err
    report = json.loads(rest.out)
    assert (report["first_step"], report["losses"]) == (3, LOSSES[3:])
    again = hp(*words, "--mesh", "dp=2", "--steps", 2, "--save", tmp_path / "s")
    assert again.status == 1
    assert "has the state of step 3 of another training, and this one begins with step 0" in again.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--processes", 2), "--processes is for --launcher mpi"),
        (("--launcher", "mpi", "--processes", 0), "--processes: expected a number of at least 1 but got 0"),
        (("--stuck-after", 9), "--stuck-after is for --launcher mpi; in a local run nobody else waits"),
        (("--launcher", "mpi", "--stuck-after", 0), "--stuck-after: expected a number of at least 1 but got 0"),
        (("--launcher", "mpi", "--trace", "t.json"), "--trace is for local runs"),
        (("--launcher", "mpi", "--device-memory", "1MiB"), "--device-memory is for local runs"),
        (("--save-every", 2), "--save-every needs --save"),
        (("--save", "s", "--save-every", 0), "--save-every: expected a number of at least 1 but got 0"),
        (("--save", "s"), "--save is for trainings; small does not change its parameters"),
        (("--resume", "s"), "--resume is for trainings"),
    ],
)
def test_options_that_do_not_go_together(
    options: tuple[object, ...], message: str, hp: Callable[..., Any], model_dir: Path
) -> None:
    outcome = hp("run", model_dir, "--preset", "fsdp", "--mesh", "dp=2", *options)
    assert (outcome.status, outcome.out) == (1, "")
    assert message in outcome.err


def test_states_of_other_programs_are_refused(hp: Callable[..., Any], training_dir: Path, tmp_path: Path) -> None:
    words = ("run", training_dir, "--preset", "fsdp", "--mesh", "dp=2")
    assert "no state at" in hp(*words, "--resume", tmp_path).err
    assert hp(*words, "--save", tmp_path / "s").status == 0
    index = tmp_path / "s" / "step-00000001" / "index.json"
    index.write_text(index.read_text().replace('"w": {', '"v": {'))
    assert "has no w: it was not saved from a training of descent" in hp(*words, "--resume", tmp_path / "s").err


@needs_mpi
def test_what_ranks_say_is_what_hp_says(hp: Callable[..., Any], model_dir: Path) -> None:
    words = ("run", model_dir, "--preset", "fsdp", "--mesh", "dp=2", "--launcher", "mpi", "--processes", 3)
    outcome = hp(*words)
    assert outcome.status == 1
    assert outcome.err.count("expected a device for each of 3 processes but got 2 devices") == 1
    assert "Traceback" not in outcome.err


def test_without_mpiexec(
    hp: Callable[..., Any], model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("run", model_dir, "--preset", "fsdp", "--mesh", "dp=2")
    assert hp(*words).status == 0
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (
        "needs mpich, which is not installed; install it with: pip install mpich" in hp(*words, "--launcher", "mpi").err
    )
