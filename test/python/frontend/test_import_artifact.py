# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Model directories: what is saved comes back, and damage of every kind is one clear error."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from import_cases import imported
from safetensors.torch import load_file
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from hyperparallel.errors import ImportModelError
from hyperparallel.frontend.artifact import ImportedModel
from hyperparallel.frontend.torch import import_model


class Mixed(nn.Module):
    """Parameters and buffers of many element types, tied and empty ones among them."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.low = nn.Parameter(torch.randn(3, 2).bfloat16())
        self.tied = self.low
        self.transposed = nn.Parameter(torch.randn(4, 3).t())
        self.register_buffer("steps", torch.tensor(5), persistent=False)
        self.register_buffer("mask", torch.tensor([True, False, True]), persistent=False)
        self.register_buffer("bytes", torch.arange(3, dtype=torch.uint8))
        self.register_buffer("empty", torch.zeros(0, 3))
        self.register_buffer("unused", torch.zeros(7))

    def forward(self, x: Tensor) -> Tensor:
        y = (x.bfloat16() @ self.low @ self.tied.t()).float() * self.steps + self.bytes
        y = torch.where(self.mask, y, -y) @ self.transposed
        return torch.cat([y[:, :3], self.empty]) @ self.transposed


@pytest.fixture(scope="module")
def mixed() -> tuple[Mixed, ImportedModel]:
    module = Mixed().eval()
    return module, import_model(module, (torch.ones(2, 3),), name="mixed")


@pytest.fixture
def saved(mixed: tuple[Mixed, ImportedModel], tmp_path: Path) -> Path:
    return mixed[1].save(tmp_path / "model")


def test_what_is_saved_comes_back(mixed: tuple[Mixed, ImportedModel], saved: Path) -> None:
    module, model = mixed
    loaded = ImportedModel.load(saved)
    assert loaded == model
    assert loaded.has_weights
    assert loaded.unused == ("unused",)
    names = [entry.name for entry in loaded.arguments]
    assert names == ["x", "low", "transposed", "steps", "mask", "bytes", "empty"]
    assert loaded.arguments[1].aliases == ("tied",)
    assert [entry.dtype for entry in loaded.arguments] == ["f32", "bf16", "f32", "i64", "i1", "ui8", "f32"]
    assert [entry.bytes for entry in loaded.arguments] == [24, 12, 48, 8, 3, 3, 0]
    for name in names[2:]:
        expected = getattr(module, name).detach().numpy()
        assert loaded.weight(name).dtype == expected.dtype
        np.testing.assert_array_equal(loaded.weight(name), expected)
        np.testing.assert_array_equal(model.weight(name), expected)
    bits = module.low.detach().view(torch.int16).numpy().view("uint16")
    np.testing.assert_array_equal(loaded.weight("tied"), bits)


def test_weights_are_an_ordinary_safetensors_file(mixed: tuple[Mixed, ImportedModel], saved: Path) -> None:
    module, _ = mixed
    tensors = load_file(saved / "model.safetensors")
    assert sorted(tensors) == ["bytes", "empty", "low", "mask", "steps", "transposed"]
    for name, tensor in tensors.items():
        assert torch.equal(tensor, getattr(module, name))


def test_weights_are_not_in_the_program() -> None:
    assert len(imported("bert").mlir) < 80_000
    assert "dense_resource" not in imported("bert").mlir


def test_saving_again_replaces_everything(saved: Path) -> None:
    before = {entry.name: entry.stat().st_ino for entry in saved.iterdir()}
    model = imported("mlp")
    model.save(saved)
    assert ImportedModel.load(saved) == model
    assert {entry.name for entry in saved.iterdir()} == set(before)
    assert all(entry.stat().st_ino != before[entry.name] for entry in saved.iterdir())


def test_equal_models_make_equal_files(saved: Path, tmp_path: Path) -> None:
    again = ImportedModel.load(saved).save(tmp_path / "again")
    for name in ("model.mlir", "model.safetensors", "model.json"):
        assert (saved / name).read_bytes() == (again / name).read_bytes()


@pytest.mark.parametrize("kind", ["meta", "fake"])
def test_modules_without_storage_have_no_weights(kind: str, tmp_path: Path) -> None:
    with torch.device("meta") if kind == "meta" else FakeTensorMode():
        module, x = nn.Linear(4, 3), torch.empty(2, 4)
    model = import_model(module, (x,))
    assert not model.has_weights
    saved = model.save(tmp_path / "model")
    assert sorted(entry.name for entry in saved.iterdir()) == ["model.json", "model.mlir"]
    assert ImportedModel.load(saved) == model
    assert model.mlir == import_model(nn.Linear(4, 3), (torch.ones(2, 4),)).mlir
    with pytest.raises(ImportModelError, match="model Linear was imported without weights"):
        ImportedModel.load(saved).weight("bias")


def test_weights_of_an_earlier_import_do_not_stay(saved: Path) -> None:
    with torch.device("meta"):
        import_model(nn.Linear(4, 3), (torch.empty(2, 4),)).save(saved)
    assert not (saved / "model.safetensors").exists()


def test_unknown_weight(saved: Path) -> None:
    with pytest.raises(ImportModelError, match="model mixed has no parameter or buffer x"):
        ImportedModel.load(saved).weight("x")


def test_failure_while_writing_leaves_no_model(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(ImportModelError, match=r"cannot write the model to .*: No space left on device"):
        ImportedModel.load(saved).save(saved)
    assert not [entry for entry in saved.iterdir() if entry.name.startswith(".")]
    with pytest.raises(ImportModelError, match=r"model\.json is missing; import the model again"):
        ImportedModel.load(saved)


def test_place_that_cannot_be_written(saved: Path) -> None:
    with pytest.raises(ImportModelError, match="cannot write the model to"):
        ImportedModel.load(saved).save(saved / "model.json" / "below")


def cut(name: str, keep: Callable[[int], int]) -> Callable[[Path], None]:
    return lambda path: os.truncate(path / name, keep((path / name).stat().st_size))


def edit(change: Callable[[dict[str, object]], None]) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        manifest = json.loads((path / "model.json").read_text())
        change(manifest)
        (path / "model.json").write_text(json.dumps(manifest))

    return apply


def other_weights(path: Path) -> None:
    imported("mlp").save(path / "other")
    shutil.copy(path / "other" / "model.safetensors", path / "model.safetensors")


def other_shape(path: Path) -> None:
    file = path / "model.safetensors"
    data = file.read_bytes()
    assert data.count(b'"shape":[3,4]') == 1
    file.write_bytes(data.replace(b'"shape":[3,4]', b'"shape":[4,3]'))


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "no directory": (shutil.rmtree, r"no imported model at .*: it is not there"),
    "no manifest": (lambda path: (path / "model.json").unlink(), r"model\.json is missing"),
    "empty manifest": (cut("model.json", lambda _: 0), r"model\.json is not JSON"),
    "half a manifest": (cut("model.json", lambda size: size // 2), r"model\.json is not JSON"),
    "binary manifest": (lambda path: (path / "model.json").write_bytes(b"\xff\xfe\x00"), r"model\.json is not text"),
    "foreign manifest": (
        lambda path: (path / "model.json").write_text('{"a": 1}'),
        "does not describe an imported model",
    ),
    "list as manifest": (lambda path: (path / "model.json").write_text("[]"), "does not describe an imported model"),
    "later version": (edit(lambda manifest: manifest.update(version=99)), "has version 99, expected 2"),
    "manifest without arguments": (
        edit(lambda manifest: manifest.pop("arguments")),
        r"model\.json is damaged .*arguments",
    ),
    "no program": (lambda path: (path / "model.mlir").unlink(), r"model\.mlir is missing"),
    "empty program": (cut("model.mlir", lambda _: 0), r"model\.mlir is empty"),
    "half a program": (cut("model.mlir", lambda size: size // 2), r"model\.mlir is cut off"),
    "no weights": (lambda path: (path / "model.safetensors").unlink(), r"has no model\.safetensors"),
    "empty weights": (cut("model.safetensors", lambda _: 0), r"model\.safetensors is empty"),
    "weights cut in the header": (cut("model.safetensors", lambda _: 40), r"model\.safetensors is cut off"),
    "weights cut in the data": (
        cut("model.safetensors", lambda size: size - 1),
        r"cut off: expected \d+ bytes but got \d+",
    ),
    "text as weights": (
        lambda path: (path / "model.safetensors").write_text("weights " * 9),
        "cut off, or no safetensors",
    ),
    "weights of another model": (other_weights, r"belongs to another import than model\.json"),
    "weights of another shape": (
        other_shape,
        r"expected transposed to be f32 of shape \[3, 4\] but got F32 of shape \[4, 3\]",
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_one_clear_error(saved: Path, kind: str) -> None:
    damage, message = DAMAGE[kind]
    damage(saved)
    with pytest.raises(ImportModelError, match=message) as caught:
        ImportedModel.load(saved)
    assert len(str(caught.value).splitlines()) == 1


def test_file_in_place_of_a_directory(saved: Path) -> None:
    with pytest.raises(ImportModelError, match="it is a file"):
        ImportedModel.load(saved / "model.json")
