# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States written in Python: every element in one block, any layout, whole or not there at all."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperparallel import hp_run
from hyperparallel.compiled import CompiledTensor
from hyperparallel.enums import Role
from hyperparallel.errors import RuntimeFailure
from hyperparallel.local_parts import split_array
from hyperparallel.plan.layouts import AxisRef, DimLayout, TensorLayout
from hyperparallel.plan.mesh import Mesh
from hyperparallel.state import HeldTensor, check_can_save, open_state, save_step, write_state

MESH = Mesh((("a", 2), ("b", 3)))
AXES = [(), (AxisRef("a"),), (AxisRef("b"),), (AxisRef("b"), AxisRef("a")), (AxisRef("a"), AxisRef("b"))]


def held(name: str, array: np.ndarray, layout: TensorLayout, dtype: str = "f32", mesh: Mesh = MESH) -> HeldTensor:
    """A tensor as devices hold it, with values in the padding that must not be seen."""
    parts = [np.array(part) for part in split_array(array, layout, mesh)]
    tensor = CompiledTensor(name, Role.PARAMETER, array.shape, dtype, layout)
    return HeldTensor(tensor, mesh, range(mesh.num_devices), parts)


@settings(deadline=None, max_examples=25)  # what is written is synced to the disk
@given(
    shape=st.lists(st.integers(0, 7), min_size=2, max_size=2),
    first=st.sampled_from(AXES),
    second=st.sampled_from(AXES),
    step=st.integers(0, 10**9),
)
def test_any_layout_gives_the_tensor_back(
    tmp_path_factory: pytest.TempPathFactory,
    shape: list[int],
    first: tuple[AxisRef, ...],
    second: tuple[AxisRef, ...],
    step: int,
) -> None:
    if first and second and {axis.name for axis in first} & {axis.name for axis in second}:
        second = ()
    folder = tmp_path_factory.mktemp("state")
    array = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape) - 5
    layout = TensorLayout((DimLayout(first), DimLayout(second)))
    scalar = np.array(3, np.int64)
    write_state(folder / "s", step, [held("w", array, layout), held("step", scalar, TensorLayout(()), "i64")])
    state = open_state(folder / "s")
    assert state.step == step
    assert state.names == ("w", "step")
    np.testing.assert_array_equal(state.read("w"), array)
    assert state.read("step") == 3
    blocks = json.loads((folder / "s" / "index.json").read_text())["tensors"]["w"]["blocks"]
    assert sum(int(np.prod(block["size"])) for block in blocks) == array.size


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16", "i64", "i32", "i16", "i8", "ui8", "i1"])
def test_types(dtype: str, tmp_path: Path) -> None:
    numpy = {"bf16": "uint16", "i1": "bool", "ui8": "uint8"}.get(dtype, dtype.replace("i", "int").replace("f", "float"))
    array = np.arange(6).astype(numpy)
    write_state(tmp_path / "s", 1, [held("x", array, TensorLayout((DimLayout((AxisRef("b"),)),)), dtype)])
    got = open_state(tmp_path / "s").read("x")
    assert got.dtype == array.dtype
    assert got.tobytes() == array.tobytes()


def test_two_steps_are_kept_and_an_old_one_is_replaced_as_a_whole(tmp_path: Path) -> None:
    layout = TensorLayout((DimLayout(),))
    for step in (1, 5, 12):
        save_step(tmp_path, step, [held("w", np.full(4, step, np.float32), layout)])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000005", "step-00000012"]
    save_step(tmp_path, 12, [held("w", np.full(4, 99, np.float32), layout)])
    assert open_state(tmp_path).read("w").tolist() == [99, 99, 99, 99]


def test_later_steps_are_of_another_training(tmp_path: Path) -> None:
    layout = TensorLayout((DimLayout(),))
    for step in (7, 100000000, 8):
        save_step(tmp_path, step, [held("w", np.full(4, step, np.float32), layout)])
    assert {path.name for path in tmp_path.iterdir()} == {"step-00000007", "step-00000008", "step-100000000"}
    assert open_state(tmp_path).step == 100000000
    check_can_save(tmp_path, 100000000)
    with pytest.raises(
        RuntimeFailure, match="has the state of step 100000000 of another training, and this one begins"
    ):
        check_can_save(tmp_path, 8)


def test_a_place_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "deeper"):
        with pytest.raises(RuntimeFailure, match=r"file is no directory; name another"):
            check_can_save(place, 0)
        with pytest.raises(RuntimeFailure, match="cannot save the state to"):
            save_step(place, 1, [held("w", np.ones(4, np.float32), TensorLayout((DimLayout(),)))])
    check_can_save(tmp_path / "not" / "yet", 0)


def test_a_failed_save_leaves_the_last_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = TensorLayout((DimLayout(),))
    save_step(tmp_path, 1, [held("w", np.ones(4, np.float32), layout)])

    def fail(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(RuntimeFailure, match=r"cannot save the state to .*step-00000002: No space left on device"):
            save_step(tmp_path, 2, [held("w", np.zeros(4, np.float32), layout)])
    assert open_state(tmp_path).step == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000001"]


def test_damage_is_named(tmp_path: Path) -> None:
    with pytest.raises(RuntimeFailure, match="no state at"):
        open_state(tmp_path)
    write_state(tmp_path / "s", 1, [held("w", np.ones(12, np.float32), TensorLayout((DimLayout((AxisRef("b"),)),)))])
    file = tmp_path / "s" / "device-00001.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    with pytest.raises(RuntimeFailure, match=r"device-00001\.safetensors is damaged .it is cut off"):
        open_state(tmp_path / "s").read("w")
    file.unlink()
    with pytest.raises(RuntimeFailure, match=r"device-00001\.safetensors is damaged"):
        open_state(tmp_path / "s").read("w")
    file.write_bytes(whole)
    index = tmp_path / "s" / "index.json"
    text = index.read_text()
    content = json.loads(text)
    content["tensors"]["w"]["blocks"].pop()
    index.write_text(json.dumps(content))
    with pytest.raises(RuntimeFailure, match="w is not whole"):
        open_state(tmp_path / "s").read("w")
    index.write_text(text.replace("hyperparallel-state", "other"))
    with pytest.raises(RuntimeFailure, match="describes no state of this version"):
        open_state(tmp_path / "s")
    index.write_text("{")
    with pytest.raises(RuntimeFailure, match=r"index\.json is damaged"):
        open_state(tmp_path / "s")


def test_hp_run_reads_what_python_wrote(training: Callable[[int], Path], tmp_path: Path) -> None:
    w = np.linspace(0.1, 0.8, 8).astype(np.float32)
    mesh = Mesh((("b", 3),))
    save_step(tmp_path, 7, [held("w", w, TensorLayout((DimLayout((AxisRef("b"),)),)), mesh=mesh)])
    for devices in (1, 2, 3):
        command = [str(hp_run.path()), str(training(devices)), "--resume", str(tmp_path)]
        report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        assert report["first_step"] == 7
        np.testing.assert_allclose(report["losses"], [np.sum(w * w)], rtol=1e-6)
