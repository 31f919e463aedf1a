# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``hp compile`` and ``hp run``: right values on every mesh, files that are damaged are refused, nothing is half
written."""

from __future__ import annotations

import errno
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
from small_model import expected


@pytest.mark.parametrize(
    ("mesh", "preset", "collectives"),
    [
        ("tp=1", "fsdp", {}),
        # Both weights in one message.
        ("dp=2,tp=2", "fsdp", {"all_gather": 1}),
        # 10 rows over 4 devices are 3, 3, 3 and 1.
        ("dp=4", "fsdp", {"all_gather": 1}),
        ("dp=2,tp=3", "data_parallel", {}),
    ],
)
def test_values(
    hp: Callable[..., Any], model_dir: Path, tmp_path: Path, mesh: str, preset: str, collectives: dict[str, int]
) -> None:
    results = tmp_path / "y.npz"
    outcome = hp("run", model_dir, "--preset", preset, "--mesh", mesh, "--json", "--results", results)
    assert outcome.status == 0, outcome.err
    report = json.loads(outcome.out)
    assert report["collectives"] == collectives
    assert len(report["peak_bytes_per_device"]) == report["devices"]
    with np.load(results) as file:
        np.testing.assert_allclose(file["y"], expected(), rtol=1e-5, atol=1e-5)


def test_columns_then_rows(hp: Callable[..., Any], model_dir: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        'mesh: {tp: 3}\nshard:\n  layers.0.w: Shard(1)@tp\n  layers.1.w: Shard(0)@tp\n  "output:y": Replicate()\n'
    )
    results = tmp_path / "y.npz"
    outcome = hp("run", model_dir, "--plan", plan, "--results", results, "--json")
    assert outcome.status == 0, outcome.err
    assert sum(json.loads(outcome.out)["collectives"].values()) >= 1
    with np.load(results) as file:
        np.testing.assert_allclose(file["y"], expected(), rtol=1e-5, atol=1e-5)


def test_compiled_programs_are_kept(hp: Callable[..., Any], model_dir: Path) -> None:
    words = ("run", model_dir, "--preset", "fsdp", "--mesh", "dp=2", "--json")
    assert json.loads(hp(*words).out)["cached"]["compile"] is False
    again = json.loads(hp(*words).out)
    assert again["cached"]["compile"] is True
    assert "codegen" not in again["seconds"]
    assert json.loads(hp(*words, "--no-cache").out)["cached"]["compile"] is False
    assert (
        json.loads(hp("run", model_dir, "--preset", "data_parallel", "--mesh", "dp=2", "--json").out)["cached"][
            "compile"
        ]
        is False
    )


@pytest.fixture
def program_dir(hp: Callable[..., Any], model_dir: Path, tmp_path: Path) -> Path:
    """The model, compiled."""
    outcome = hp("compile", model_dir, "--preset", "fsdp", "--mesh", "dp=2", "-o", tmp_path / "program", "--dump-ir")
    assert outcome.status == 0, outcome.err
    assert outcome.out.strip() == str(tmp_path / "program")
    return tmp_path / "program"


def test_a_compiled_directory_runs_by_itself(hp: Callable[..., Any], program_dir: Path, tmp_path: Path) -> None:
    dumped = sorted(path.name for path in (program_dir / "ir").iterdir())
    phases = ("imported", "annotated", "propagated", "resharded", "partitioned", "offloaded", "lowered")
    # Memory is not limited.
    assert dumped == [f"{number}-{phase}.mlir" for number, phase in enumerate(phases) if phase != "offloaded"]
    results = tmp_path / "y.npz"
    assert hp("run", program_dir, "--results", results).status == 0
    with np.load(results) as file:
        np.testing.assert_allclose(file["y"], expected(), rtol=1e-5, atol=1e-5)
    given = tmp_path / "x.npz"
    np.savez(given, x=np.zeros((6, 10), np.float32))
    assert hp("run", program_dir, "--inputs", given, "--results", results).status == 0
    with np.load(results) as file:
        assert not file["y"].any()
    refused = hp("run", program_dir, "--mesh", "dp=4")
    assert refused.status == 1
    assert "is compiled for the mesh dp=2, not dp=4" in refused.err
    assert "is compiled already" in hp("run", program_dir, "--preset", "fsdp").err


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _replace(path: Path) -> None:
    path.write_bytes(b"\x00\x01 no such thing \xff" * 40)


def _remove(path: Path) -> None:
    path.unlink()


DAMAGE = [_truncate, _empty, _replace, _remove]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", ["manifest.json", "program.so", "plan.json", "inputs.npz", "model.safetensors"])
def test_damaged_programs(hp: Callable[..., Any], program_dir: Path, name: str, damage: Callable[[Path], None]) -> None:
    damage(program_dir / name)
    outcome = hp("run", program_dir)
    assert outcome.status == 1
    assert outcome.err.count("hp: error:") == 1
    assert "Traceback" not in outcome.err
    assert outcome.out == ""


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", ["model.json", "model.mlir", "model.safetensors"])
def test_damaged_models(
    hp: Callable[..., Any], model_dir: Path, tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    damage(model_dir / name)
    target = tmp_path / "program"
    outcome = hp("compile", model_dir, "--preset", "fsdp", "--mesh", "dp=2", "-o", target)
    assert outcome.status == 1
    assert outcome.err.count("hp: error:") == 1
    assert "Traceback" not in outcome.err
    assert not target.exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".program")]


def test_mlir_that_is_cut_off_inside(hp: Callable[..., Any], model_dir: Path, tmp_path: Path) -> None:
    text = (model_dir / "model.mlir").read_text()
    (model_dir / "model.mlir").write_text(text.replace("linalg.add ins(%product", "linalg.add ins(%nothing"))
    outcome = hp("compile", model_dir, "--preset", "fsdp", "--mesh", "dp=2", "-o", tmp_path / "program")
    assert outcome.status == 1
    assert "model.mlir is no valid MLIR program" in outcome.err
    assert ":8:" in outcome.err


def test_a_refused_program_can_be_shown_again(hp: Callable[..., Any], model_dir: Path, tmp_path: Path) -> None:
    text = (model_dir / "model.mlir").read_text()
    broken = text.replace("tensor<6x10xf32>", "tensor<?x10xf32>").replace(
        "tensor.empty() : tensor<?", "tensor.empty(%n) : tensor<?"
    )
    broken = broken.replace("%zero = arith", "%n = arith.constant 6 : index\n    %zero = arith")
    (model_dir / "model.mlir").write_text(broken)
    outcome = hp("compile", model_dir, "--preset", "fsdp", "--mesh", "dp=2", "-o", tmp_path / "program")
    assert outcome.status == 1
    assert "static shape" in outcome.err or "expected" in outcome.err
    assert not (tmp_path / "program").exists()


@pytest.mark.parametrize("words", [("compile", "-o", "out"), ("run",), ("plan",)])
def test_models_that_are_not_there(hp: Callable[..., Any], tmp_path: Path, words: tuple[str, ...]) -> None:
    options = ("--preset", "fsdp", "--mesh", "dp=2")
    verb, rest = words[0], [str(tmp_path / word) if word == "out" else word for word in words[1:]]
    stray = tmp_path / "notes.mlir"
    stray.write_text("module {}")
    folder = tmp_path / "empty"
    folder.mkdir(exist_ok=True)
    for model, message in (
        (tmp_path / "absent.py", "there is no model at"),
        (stray, "is MLIR text"),
        (folder, "is no imported model"),
    ):
        outcome = hp(verb, model, *options, *rest)
        assert outcome.status == 1
        assert message in outcome.err
        assert "Traceback" not in outcome.err


def test_results_that_cannot_be_written(hp: Callable[..., Any], model_dir: Path, tmp_path: Path) -> None:
    words = ("--preset", "fsdp", "--mesh", "dp=2")
    occupied = tmp_path / "occupied"
    occupied.mkdir()
    (occupied / "letter.txt").write_text("dear")
    outcome = hp("compile", model_dir, *words, "-o", occupied)
    assert outcome.status == 1
    assert "it holds other files" in outcome.err
    assert [path.name for path in occupied.iterdir()] == ["letter.txt"]
    outcome = hp("compile", model_dir, *words, "-o", occupied / "letter.txt")
    assert outcome.status == 1
    assert "it is a file" in outcome.err
    outcome = hp("run", model_dir, *words, "--results", tmp_path / "absent" / "y.npz")
    assert outcome.status == 1
    assert "cannot write" in outcome.err
    for place, message in ((occupied / "letter.txt" / "y.npz", "Not a directory"), ("y" * 300, "File name too long")):
        outcome = hp("run", model_dir, *words, "--results", place)
        assert outcome.status == 1
        assert message in outcome.err
    outcome = hp("compile", model_dir, *words, "-o", "y" * 300)
    assert outcome.status == 1
    assert "File name too long" in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "m", "--device-memory", "1e400GiB"), "from one byte to 4EiB"),
        (("run", "m", "--device-memory", "99999999999GiB"), "from one byte to 4EiB"),
        (("run", "m", "--results", ""), "expected a path but got nothing"),
        (("simulate", "m", "--seed", "-1"), "from 0 to 2^64 - 1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_numbers_and_names_out_of_range(hp: Callable[..., Any], words: tuple[str, ...], message: str) -> None:
    outcome = hp(*words)
    assert outcome.status == 2
    assert message in outcome.err


def test_a_full_disk_is_no_defect(
    hp: Callable[..., Any], model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)
    outcome = hp("compile", model_dir, "--preset", "fsdp", "--mesh", "dp=2", "-o", tmp_path / "program")
    assert outcome.status == 1, outcome.err
    assert "No space left" in outcome.err
    assert not (tmp_path / "program").exists()


@pytest.mark.parametrize("verb", ["report", "machine check", "import-trace -o t.mlir"])
def test_files_that_are_nested_too_deeply(hp: Callable[..., Any], tmp_path: Path, verb: str) -> None:
    deep = tmp_path / "deep.json"
    deep.write_text('{"a":' + "[" * 20_000)
    outcome = hp(*verb.split(), deep)
    assert outcome.status == 1
    assert "Traceback" not in outcome.err


def test_inputs_that_do_not_fit(hp: Callable[..., Any], model_dir: Path, tmp_path: Path) -> None:
    given = tmp_path / "x.npz"
    words = ("run", model_dir, "--preset", "fsdp", "--mesh", "dp=2", "--inputs", given)
    assert "there is no inputs file" in hp(*words).err
    given.write_bytes(b"PK\x03\x04 no zip")
    assert "is no inputs file" in hp(*words).err
    np.savez(given, x=np.zeros((6, 11), np.float32))
    outcome = hp(*words)
    assert outcome.status == 1
    assert "input x: expected float32 of shape [6, 10] but got float32 of shape [6, 11]" in outcome.err


def test_a_defect_has_a_traceback_and_status_3(
    hp: Callable[..., Any], model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr("hyperparallel.execute.run_compiled", fail)
    outcome = hp("run", model_dir, "--preset", "fsdp", "--mesh", "dp=2")
    assert outcome.status == 3
    assert "ZeroDivisionError: on purpose" in outcome.err
    assert "defect of HyperParallel" in outcome.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_signals_leave_nothing(model_dir: Path, tmp_path: Path, number: signal.Signals) -> None:
    target = tmp_path / "program"
    repeated = [
        sys.executable,
        "-m",
        "hyperparallel.cli.main",
        "run",
        str(model_dir),
        "--preset",
        "fsdp",
        "--mesh",
        "dp=2",
    ]
    process = subprocess.Popen(
        [*repeated, "--repeat", "100000000", "--results", str(target)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 60
        cache = Path(os.environ["XDG_CACHE_HOME"]) / "hyperparallel" / "programs"
        while time.monotonic() < deadline and process.poll() is None and not list(cache.glob("*/manifest.json")):
            time.sleep(0.1)
        time.sleep(0.5)
        assert process.poll() is None, process.communicate()
        process.send_signal(number)
        _out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert "Traceback" not in err
    assert not target.exists()
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
