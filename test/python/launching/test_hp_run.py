# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""hp-run: the same numbers in one process and over several; states that survive a kill; messages where input is bad."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hyperparallel import hp_run
from hyperparallel.state import open_state
from hyperparallel.testing.processes import worker_of

MPIEXEC = Path(sys.prefix) / "bin" / "mpiexec"
needs_mpi = pytest.mark.skipif(not MPIEXEC.exists(), reason="mpich is not installed")
Training = Callable[[int], Path]


def command(program: Path, *options: object, processes: int = 0) -> list[str]:
    launcher = [str(MPIEXEC), "-n", str(processes)] if processes else []
    return [*launcher, str(hp_run.path()), str(program), *map(str, options)]


def run(program: Path, *options: object, processes: int = 0) -> dict[str, Any]:
    ran = subprocess.run(
        command(program, *options, processes=processes), capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def refusal(program: Path, *options: object, status: int = 1) -> str:
    ran = subprocess.run(command(program, *options), capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == status
    assert ran.stdout == ""
    return ran.stderr


def trained(steps: int) -> tuple[list[float], np.ndarray[Any, Any]]:
    """What training.c does, in NumPy."""
    w = np.linspace(-1, 1.5, 8).astype(np.float32)
    losses: list[float] = []
    for _ in range(steps):
        losses.append(float(np.sum(w * w)))
        w = w - np.float32(0.05) * w * np.float32(losses[-1])
    return losses, w


def test_steps_update_in_place(training: Training, tmp_path: Path) -> None:
    losses, w = trained(4)
    for devices in (1, 2, 3):
        report = run(training(devices), "--steps", 4, f"--results={tmp_path / 'r'}")
        assert report["devices"] == devices
        assert len(report["seconds"]) == 4
        np.testing.assert_allclose(report["losses"], losses, rtol=1e-5)
        state = open_state(tmp_path / "r")
        assert state.names == ("loss", "w.next")
        np.testing.assert_allclose(state.read("w.next"), w, rtol=1e-5)


@needs_mpi
def test_processes_give_the_same_numbers(training: Training, tmp_path: Path) -> None:
    alone = run(training(3), "--steps", 3, "--results", tmp_path / "alone")
    for processes in (1, 2, 3):
        spread = run(training(3), "--steps", 3, "--results", tmp_path / "spread", processes=processes)
        assert spread["processes"] == processes
        assert spread["losses"] == alone["losses"]
        assert open_state(tmp_path / "spread").read("w.next").tobytes() == (
            open_state(tmp_path / "alone").read("w.next").tobytes()
        )


@pytest.mark.parametrize("processes", [0, pytest.param(2, marks=needs_mpi)])
def test_going_on_from_a_state_is_going_on(processes: int, training: Training, tmp_path: Path) -> None:
    whole = run(training(2), "--steps", 6)
    first = run(training(2), "--steps", 4, "--save", tmp_path / "s", "--save-every", 2, processes=processes)
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == ["step-00000002", "step-00000004"]
    rest = run(training(2), "--steps", 2, "--resume", tmp_path / "s", "--save", tmp_path / "s", processes=processes)
    assert rest["first_step"] == 4
    assert first["losses"] + rest["losses"] == whole["losses"]
    # The last two are kept.
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == ["step-00000004", "step-00000006"]


def test_a_state_is_read_into_any_layout(training: Training, tmp_path: Path) -> None:
    whole = run(training(1), "--steps", 4)
    run(training(3), "--steps", 2, "--save", tmp_path / "s")
    for devices in (1, 2, 3):
        rest = run(training(devices), "--steps", 2, "--resume", tmp_path / "s" / "step-00000002")
        np.testing.assert_allclose(rest["losses"], whole["losses"][2:], rtol=1e-6)


@needs_mpi
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_rank_that_is_gone_ends_all_and_the_last_state_goes_on(
    how: signal.Signals, training: Training, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    shutil.copytree(training(4), program)
    with (program / "inputs.npz").open("wb") as file:
        np.savez(file, x=np.array([0.05, 20, 0, 0], np.float32))  # 20 ms a step
    started = subprocess.Popen(
        command(
            program, "--steps", 4000, "--save", tmp_path / "s", "--save-every", 5, "--lost-after", 1500, processes=4
        ),
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 20
    while not (tmp_path / "s" / "step-00000010").exists() and time.monotonic() < end:
        time.sleep(0.05)
    os.kill(worker_of(2, program), how)
    begin = time.monotonic()
    _, said = started.communicate(timeout=30)
    assert time.monotonic() - begin < 10
    assert started.returncode != 0
    for rank in (0, 1, 3):
        assert re.search(rf"hp-run: rank {rank}: error: .*rank 2 is lost: nothing was heard of it", said)
    assert re.search("waits in all_reduce sum of 1 x f32 'loss'|this rank waits for all others", said)
    assert re.search("rank 2: error: its process was (ended by signal 9|stopped)", said)

    state = open_state(tmp_path / "s")
    assert state.step >= 10
    shutil.copy(training(4) / "inputs.npz", program / "inputs.npz")
    rest = run(program, "--steps", 3, "--resume", tmp_path / "s", processes=4)
    whole = run(program, "--steps", state.step + 3)
    assert rest["losses"] == whole["losses"][state.step :]


@needs_mpi
def test_a_rank_in_a_loop_without_end_ends_all(training: Training, tmp_path: Path) -> None:
    """In the eighth step, device 2 does not come back; the state after the seventh goes on to the same losses."""
    program, saved = training(4), tmp_path / "s"
    rows = np.tile(np.array([0.05, 0, 0, 0], np.float32), (8, 1))
    good = tmp_path / "good.npz"
    with good.open("wb") as file:
        np.savez(file, x=rows.reshape(-1))
    rows[7, 2] = 3
    with (tmp_path / "bad.npz").open("wb") as file:
        np.savez(file, x=rows.reshape(-1))
    words = ("--steps=8", f"--save={saved}", "--save-every=1", f"--data={tmp_path / 'bad.npz'}", "--stuck-after=1500")
    begin = time.monotonic()
    ran = subprocess.run(command(program, *words, processes=4), capture_output=True, text=True, timeout=30, check=False)
    assert time.monotonic() - begin < 10
    assert ran.returncode != 0
    assert re.search(
        r"rank 2: error: device 2: it has been in its program for 1\.5 s without a call of the runtime, after "
        r"hp_rt_device_id; a loop of it may have no end",
        ran.stderr,
    )
    for rank in (0, 1, 3):
        assert re.search(rf"rank {rank}: error: rank 2 failed: device 2: it has been in its", ran.stderr)
        assert re.search(rf"device {rank} waits in all_reduce sum of 1 x f32 'loss' .*, for device 2", ran.stderr)
    assert open_state(saved).step == 7
    rest = run(program, "--steps=1", f"--resume={saved}", f"--data={good}", processes=4)
    assert rest["losses"] == run(program, "--steps=8", f"--data={good}")["losses"][7:]


def test_half_a_state_is_no_state(training: Training, tmp_path: Path) -> None:
    run(training(2), "--steps", 2, "--save", tmp_path / "s")
    # A crash in the middle of the next save leaves a hidden directory, or one without its index.
    (tmp_path / "s" / ".step-00000003.new").mkdir()
    (tmp_path / "s" / "step-00000009").mkdir()
    assert open_state(tmp_path / "s").step == 2
    assert run(training(2), "--resume", tmp_path / "s")["first_step"] == 2


def test_what_is_damaged_is_named(training: Training, tmp_path: Path) -> None:
    program = tmp_path / "program"
    shutil.copytree(training(2), program)
    run(program, "--save", tmp_path / "s")
    saved = tmp_path / "s" / "step-00000001"
    whole = (saved / "device-00001.safetensors").read_bytes()
    (saved / "device-00001.safetensors").write_bytes(whole[:-3])
    assert "device-00001.safetensors is damaged: it is cut off" in refusal(program, "--resume", saved)
    assert "no state at" in refusal(program, "--resume", tmp_path / "nothing")
    index = json.loads((saved / "index.json").read_text())
    index["tensors"]["w"]["shape"] = [9]
    (saved / "device-00001.safetensors").write_bytes(whole)
    (saved / "index.json").write_text(json.dumps(index))
    assert "expected w of f32 and shape [8] but got f32 and [9]" in refusal(program, "--resume", saved)

    manifest = (program / "manifest.json").read_text()
    for damaged, message in [
        (manifest[:100], "the file is damaged"),
        (manifest.replace("hyperparallel-program", "other"), "does not describe a program of this version"),
        (manifest.replace('[{\\"d\\"}]', '[{\\"e\\"}]'), "expected a sharding but got '[{\"e\"}]'"),
        (manifest.replace('"cpu"', '"none"'), "has no code to run"),
        (manifest.replace('"entry"', '"entri"'), "expected an entry 'entry'"),
        (manifest.replace("hp_entry_main", "hp_entry_other"), "hp_entry_other"),
    ]:
        (program / "manifest.json").write_text(damaged)
        assert message in refusal(program)
    (program / "manifest.json").write_text(manifest)
    (program / "inputs.npz").unlink()
    assert "the input x has no value; give one with --inputs or --weights" in refusal(program)
    (program / "inputs.npz").write_bytes(b"PK\3\4 nothing")
    assert "inputs.npz is damaged" in refusal(program)


def test_what_would_be_lost_is_not_written_over(training: Training, tmp_path: Path) -> None:
    """A directory of other files is no place for results; a training does not save among another's later steps."""
    program = training(2)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("three years")
    assert f"expected {mine} to be a state, or not there, but it has other files" in refusal(
        program, f"--results={mine}"
    )
    assert [path.name for path in mine.iterdir()] == ["thesis.txt"]
    for place in (mine / "thesis.txt", mine / "thesis.txt" / "deeper"):
        assert f"{mine}/thesis.txt is no directory; name another directory" in refusal(program, "--save", place)
    saved = tmp_path / "s"
    run(program, "--steps", 4, "--save", saved)
    assert "has the state of step 4 of another training, and this one begins with step 0" in refusal(
        program, "--steps", 2, "--save", saved
    )
    assert [path.name for path in saved.iterdir()] == ["step-00000004"]
    assert run(program, "--resume", saved, "--save", saved)["first_step"] == 4


def test_usage(training: Training) -> None:
    program = training(1)
    assert "usage: hp-run DIR" in refusal(program, "--stepps", 3, status=2)
    assert "expected a value behind '--steps'" in refusal(program, "--steps", status=2)
    assert "--steps: expected a number of at least 1 but got 'x'" in refusal(program, "--steps", "x")
    assert "cannot read /nowhere/manifest.json" in refusal(Path("/nowhere"))
    assert "cannot read /nothing: it is not there" in refusal(program, "--inputs", "/nothing")


def test_no_python_and_no_compiler_in_it() -> None:
    listed = subprocess.run(["ldd", str(hp_run.path())], capture_output=True, text=True, check=True).stdout
    names = {line.split()[0] for line in listed.splitlines()}
    assert "libhp_runtime.so" in names
    assert not [name for name in names if re.search("python|MLIR|LLVM|mpi", name)]
