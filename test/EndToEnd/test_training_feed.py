# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every step has a batch and a learning rate of its own, wherever it runs, and a training that goes on takes the next."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from hyperparallel import hp_run
from hyperparallel.cli.main import main
from hyperparallel.compiled import write_arrays

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SIZES = {"layers": 2, "features": 6, "width": 8, "hidden": 12, "classes": 5, "batch": 4, "fresh": True, "warmup": 4}
WORDS = [word for key, value in SIZES.items() for word in ("--model-arg", f"{key}={value}")]
FILE = EXAMPLES / "mlp_train.py"
STAGES = ("--mesh", "pp=2,dp=2", "--preset", "data_parallel")
needs_mpi = pytest.mark.skipif(not (Path(sys.prefix) / "bin" / "mpiexec").exists(), reason="mpich is not installed")
Run = Callable[..., dict[str, Any]]


def save(path: Path, **arrays: Any) -> Path:
    """Write arrays by name."""
    with path.open("wb") as file:
        write_arrays(file, arrays)
    return path


@pytest.fixture
def hp(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``hp`` in this process, and read what it says."""

    def run(*words: object) -> dict[str, Any]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in (*words, "-q", "--json")])
        said = capsys.readouterr()
        if ended.value.code != 0:
            return {"error": said.err}
        return json.loads(said.out)

    return run


def test_batches_and_rates_are_those_of_pytorch(hp: Run) -> None:
    """Five steps; two stages as well; and what is fed matters."""
    fed = hp("run", FILE, *WORDS, "--mesh", "dp=2", "--preset", "data_parallel", "--steps", 5, "--check")
    assert fed["max_rel_error"] < 1e-4
    stages = hp("run", FILE, *WORDS, *STAGES, "--steps", 5, "--check")
    assert stages["max_rel_error"] < 1e-4
    np.testing.assert_allclose(stages["losses"], fed["losses"], rtol=1e-5)
    for fixed in ("fresh=False", "warmup=0"):
        other = hp("run", FILE, *WORDS, "--model-arg", fixed, *STAGES, "--steps", 5, "--check")
        assert other["max_rel_error"] < 1e-4
        assert abs(other["losses"][4] - fed["losses"][4]) > 1e-3


@needs_mpi
def test_what_goes_on_takes_the_next_batch(hp: Run, tmp_path: Path) -> None:
    """In one process, and over processes."""
    whole = hp("run", FILE, *WORDS, *STAGES, "--steps", 4)["losses"]
    first = hp("run", FILE, *WORDS, *STAGES, "--steps", 2, "--save", tmp_path / "s")["losses"]
    rest = hp("run", FILE, *WORDS, *STAGES, "--steps", 2, "--resume", tmp_path / "s", "--check")
    assert (rest["first_step"], first + rest["losses"]) == (2, whole)
    assert rest["max_rel_error"] < 1e-4
    mpi = ("--launcher", "mpi", "--threads", 1)
    spread = hp("run", FILE, *WORDS, *STAGES, "--steps", 2, "--resume", tmp_path / "s", *mpi, "--check")
    assert spread["max_rel_error"] < 1e-4
    np.testing.assert_allclose(spread["losses"], rest["losses"], rtol=1e-6)


def run_alone(program: Path, *options: object) -> tuple[list[float], str]:
    """hp-run, without Python: losses, or what it says."""
    command = [str(hp_run.path()), str(program), "--threads=1", *map(str, options)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return (json.loads(ran.stdout)["losses"], "") if ran.returncode == 0 else ([], ran.stderr)


def test_what_is_kept_beside_a_program_and_what_is_given(hp: Run, tmp_path: Path) -> None:
    """A program of two groups for hp-run: with the data of its first steps, with a file, and with neither."""
    bare, fed = tmp_path / "bare", tmp_path / "fed"
    hp("compile", FILE, *WORDS, *STAGES, "-o", bare)
    hp("compile", FILE, *WORDS, *STAGES, "-o", fed, "--steps", 3)
    whole = hp("run", FILE, *WORDS, *STAGES, "--steps", 3, "--threads", 1)["losses"]
    assert hp("run", bare, "--steps", 3, "--threads", 1)["losses"] == whole
    assert hp("run", fed, "--steps", 3, "--threads", 1, "--check")["losses"] == whole
    assert hp("run", bare, "--mesh", "pp=2,dp=2", "--threads", 1)["losses"] == whole[:1]
    refused = hp("run", bare, "--mesh", "pp=4")["error"]
    assert "is compiled for the groups stage0 (dp=2), stage1 (dp=2), not for the mesh pp=4" in refused
    np.testing.assert_allclose(run_alone(fed, "--steps=3")[0], whole, rtol=1e-6)
    np.testing.assert_allclose(run_alone(bare)[0], whole[:1], rtol=1e-6)
    assert "steps 0 to 2, and step 3 is wanted" in run_alone(fed, "--steps=4")[1]
    assert "labels has other values in every step; give them with --data" in run_alone(bare, "--steps=2")[1]

    generator = np.random.default_rng(0)
    data = {
        "x": generator.normal(size=(10, 6)).astype(np.float32),
        "labels": generator.integers(5, size=10),
        "optimizer.lr": np.array([0.1, 0.2], np.float32),
    }
    save(tmp_path / "data.npz", **data)
    given = hp("run", bare, "--steps", 4, "--data", tmp_path / "data.npz", "--threads", 1)["losses"]
    np.testing.assert_allclose(run_alone(bare, "--steps=4", "--data", tmp_path / "data.npz")[0], given, rtol=1e-6)
    # Step 2 takes the rows 8, 9, 0 and 1.
    rows = {name: array[[8, 9, 0, 1]] for name, array in data.items() if len(array) == 10}
    save(tmp_path / "rows.npz", **rows, **{"optimizer.lr": data["optimizer.lr"][0]})
    save(tmp_path / "two.npz", x=data["x"][:8], labels=data["labels"][:8])
    hp("run", bare, "--steps", 2, "--data", tmp_path / "data.npz", "--threads", 1, "--save", tmp_path / "s")
    one = hp("run", bare, "--resume", tmp_path / "s", "--inputs", tmp_path / "rows.npz", "--threads", 1)["losses"]
    assert one == given[2:3]


def test_data_that_do_not_fit(hp: Run, tmp_path: Path) -> None:
    save(tmp_path / "few.npz", x=np.zeros((3, 6), np.float32))
    save(tmp_path / "wide.npz", x=np.zeros((8, 7), np.float32))
    save(tmp_path / "other.npz", y=np.zeros((8, 6), np.float32))
    for name, message in (
        ("few", "has 3 rows of x, and a step takes 4"),
        ("wide", r"expected x as float32 of the shape [any number, 6] but got float32 of the shape [8, 7]"),
        ("other", "holds y, which is no input; the inputs are x, labels, optimizer.lr"),
    ):
        refused = hp("run", FILE, *WORDS, *STAGES, "--steps", 2, "--data", tmp_path / f"{name}.npz")
        assert message in refused["error"]
    refused = hp("run", EXAMPLES / "mlp.py", "--mesh", "dp=1", "--preset", "fsdp", "--data", tmp_path / "few.npz")
    assert "--data is for trainings; mlp is none, give --inputs" in refused["error"]
    alike = ("--model-arg", "fresh=False", "--model-arg", "warmup=0")
    refused = hp("compile", FILE, *WORDS, *alike, *STAGES, "-o", tmp_path / "p", "--steps", 2)
    assert "all steps of mlp_train are fed alike" in refused["error"]
