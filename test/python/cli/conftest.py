# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small imported model, made without torch, and hp in this process."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command import Outcome, command_of

from hyperparallel.enums import Role
from hyperparallel.frontend.artifact import ArgumentInfo, BlockInfo, ImportedModel, ResultInfo

sys.path.insert(0, str(Path(__file__).parent))
from small_model import MLIR, values


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read from, or left in, the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def model_dir(tmp_path: Path) -> Path:
    """The model as a directory that ``hp import`` could have made."""
    given = values()
    arguments = (
        ArgumentInfo("x", Role.INPUT, (6, 10), "f32"),
        ArgumentInfo("layers.0.w", Role.PARAMETER, (10, 10), "f32"),
        ArgumentInfo("layers.1.w", Role.PARAMETER, (10, 10), "f32"),
    )
    model = ImportedModel(
        "small",
        MLIR,
        arguments,
        (ResultInfo("y", (6, 10), "f32"),),
        (BlockInfo("layers.0", "layer"), BlockInfo("layers.1", "layer")),
        has_weights=True,
        _read_weight=lambda name: given[name],
    )
    directory = model.save(tmp_path / "model")
    (directory / "source.json").write_text(json.dumps({}))
    with (directory / "inputs.npz").open("wb") as file:
        np.savez(file, x=given["x"])
    return directory


@pytest.fixture
def hp(capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run ``hp`` in this process."""
    return command_of(capfd)
