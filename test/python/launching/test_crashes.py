# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whenever the lights go out or the disk is full while a state is written, by hp-run or in Python: the last good one is there.

Every call that changes files is made to fail, one after the other, until a run comes to its end.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hyperparallel import hp_run
from hyperparallel.compiled import CompiledTensor
from hyperparallel.enums import Role
from hyperparallel.plan.layouts import DimLayout, TensorLayout
from hyperparallel.plan.mesh import Mesh
from hyperparallel.state import HeldTensor, open_state, save_step

Training = Callable[[int], Path]
Start = Callable[[Path], list[str]]


@pytest.fixture(scope="module")
def preload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """failing_writes.c, to be preloaded."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    target = tmp_path_factory.mktemp("preload") / "failing_writes.so"
    source = Path(__file__).with_name("failing_writes.c")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-Wall", "-Werror", str(source), "-o", str(target), "-ldl"], check=True
    )
    return target


def values(folder: Path) -> dict[str, bytes]:
    """The step that a state is of, and all that is in it."""
    state = open_state(folder)
    return {"step": str(state.step).encode(), **{name: state.read(name).tobytes() for name in state.names}}


def hp_run_command(program: Path, *options: object) -> list[str]:
    return [str(hp_run.path()), str(program), *map(str, options)]


def run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True)


def cases(training: Training, tmp_path: Path) -> Iterator[tuple[Path, Start]]:
    """A folder with a good state, and what writes the next into a copy of it."""
    program = training(2)
    # The third step that is saved: the first one goes.
    steps = tmp_path / "steps"
    run(hp_run_command(program, "--steps=4", "--save-every=2", f"--save={steps}"))
    yield steps, lambda copy: hp_run_command(program, "--steps=2", f"--resume={copy}", f"--save={copy}")
    # A state of the same name, which is replaced.
    results = tmp_path / "results"
    run(hp_run_command(program, "--steps=1", f"--results={results}"))
    yield results, lambda copy: hp_run_command(program, "--steps=3", f"--results={copy}")


@pytest.mark.parametrize("way", ["killed", "full"])
def test_hp_run(way: str, training: Training, preload: Path, tmp_path: Path) -> None:
    for good, start in cases(training, tmp_path):
        before = values(good)
        done = tmp_path / "done"
        shutil.copytree(good, done)
        run(start(done))
        after = values(done)
        assert before != after
        seen: set[bytes] = set()
        for at in itertools.count(1):
            copy = tmp_path / "copy"
            shutil.copytree(good, copy)
            environment = {**os.environ, "LD_PRELOAD": str(preload), "FAIL_AT": str(at), "FAIL_AS": way}
            ran = subprocess.run(start(copy), env=environment, capture_output=True, text=True, check=False)
            found = values(copy)
            assert found in (before, after), at
            seen.add(found["step"])
            if way == "full" and ran.returncode != 0:
                assert "No space left on device" in ran.stderr
                assert not list(tmp_path.rglob(".*.new")), "what was begun is removed"
            elif ran.returncode != 0:
                assert ran.returncode == -signal.SIGKILL
                shutil.rmtree(tmp_path / ".copy.new", ignore_errors=True)
            shutil.rmtree(copy)
            if ran.returncode == 0:
                break
        assert at > 8, "calls were found"
        assert seen == {before["step"], after["step"]}
        shutil.rmtree(done)


class LightsOut(BaseException):
    """The end of a process, as far as files are concerned."""


def test_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout, mesh = TensorLayout((DimLayout(),)), Mesh((("d", 1),))
    tensor = CompiledTensor("w", Role.PARAMETER, (4,), "f32", layout)

    def save(folder: Path, step: int, value: float) -> None:
        save_step(folder, step, [HeldTensor(tensor, mesh, [0], [np.full(4, value, np.float32)])])

    good = tmp_path / "good"
    for step in (1, 2):
        save(good, step, step)
    left = [0]

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*given: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise LightsOut
            return call(*given, **named)

        return counting

    for name in ("mkdir", "fsync", "rename", "unlink", "rmdir"):
        monkeypatch.setattr(os, name, counted(getattr(os, name)))
    # A later step, and one that replaces the last.
    for step in (3, 2):
        ends = False
        for at in itertools.count():
            copy = tmp_path / "copy"
            left[0] = 1 << 30
            shutil.copytree(good, copy)
            left[0] = at
            try:
                save(copy, step, 9)
                ends = True
            except LightsOut:
                pass
            left[0] = 1 << 30
            found = open_state(copy)
            assert (found.step, found.read("w").tolist()) in [(2, [2] * 4), (step, [9] * 4)]
            if ends:
                assert found.read("w").tolist() == [9] * 4
            shutil.rmtree(copy)
            if ends:
                break
        assert at > 4
