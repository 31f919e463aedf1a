# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled program for hp-run, made by hand: what is tested is the launcher, not the compiler."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hyperparallel.compiled import write_arrays

sys.path.append(str(Path(__file__).parent))

ROOT = Path(__file__).resolve().parents[3]
SIZE = 8


@pytest.fixture(scope="session")
def training(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """The program of training.c for a number of devices, as hp compile would write it, with inputs and weights."""
    made: dict[int, Path] = {}
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")

    def make(devices: int) -> Path:
        if devices in made:
            return made[devices]
        folder = tmp_path_factory.mktemp(f"training{devices}")
        local = -(-SIZE // devices)
        flags = ["-std=gnu11", "-Wall", "-Werror", "-O1", "-fPIC", "-shared", f"-I{ROOT}"]
        flags += [f"-DSIZE={devices}", f"-DLOCAL={local}"]
        source = Path(__file__).with_name("training.c")
        subprocess.run([compiler, *flags, str(source), "-o", str(folder / "program.so")], check=True)
        weight = {"name": "w", "shape": [SIZE], "dtype": "f32", "sharding": '[{"d"}]'}
        manifest = {
            "format": "hyperparallel-program",
            "version": 1,
            "name": "training",
            "entry": "hp_entry_main",
            "mesh": {"axes": [["d", devices]], "device_ids": []},
            "arguments": [
                {"name": "x", "shape": [4], "dtype": "f32", "sharding": "[{}]", "role": "input"},
                {**weight, "role": "parameter"},
            ],
            "results": [
                {"name": "loss", "shape": [], "dtype": "f32", "sharding": "[]"},
                {**weight, "name": "w.next", "updates": "w"},
            ],
            "files": {},
            "target": "cpu",
        }
        (folder / "manifest.json").write_text(json.dumps(manifest))
        with (folder / "inputs.npz").open("wb") as file:
            write_arrays(file, {"x": np.array([0.05, 0, 0, 0], np.float32)})
        values = np.linspace(-1, 1.5, SIZE).astype(np.float32)
        header = json.dumps({"w": {"dtype": "F32", "shape": [SIZE], "data_offsets": [0, 4 * SIZE]}}).encode()
        (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + values.tobytes())
        made[devices] = folder
        return folder

    return make
