# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An import is found again exactly where the same would come out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from hyperparallel.frontend.artifact import ImportedModel
from hyperparallel.frontend.import_cache import Subject, current_memory, remembered_imports
from hyperparallel.frontend.training_step import Training


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def subject(*, width: int = 4, scale: float = 1.0, lr: float = 0.1, eps: float = 1e-5, **others: Any) -> Subject:
    """A training of two layers, whose loss has a number of its surroundings in it."""
    module = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.LayerNorm(width, eps=eps))
    optimizer = torch.optim.SGD(module.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2) if others.pop("scheduled", False) else None
    training = Training(lambda y: (y * scale).sum(), optimizer, scheduler=schedule, **others)
    return Subject(module, (torch.randn(2, 4),), {}, "model", "auto", training)


def imported() -> ImportedModel:
    return ImportedModel("model", "module {\n  func.func @main() {\n    return\n  }\n}\n", (), ())


OTHERS: dict[str, dict[str, Any]] = {
    "width": {"width": 5},
    "a number around the loss": {"scale": 2.0},
    "the learning rate": {"lr": 0.2},
    "an attribute": {"eps": 1e-6},
    "microbatches": {"microbatches": 2},
    "a schedule": {"scheduled": True},
}


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS)
def test_another_is_not_found(change: dict[str, Any]) -> None:
    with remembered_imports() as memory:
        memory.get(subject(), imported)
        memory.get(subject(), imported)
        assert (memory.found, memory.made) == (1, 1)
        memory.get(subject(**change), imported)
        assert (memory.found, memory.made) == (1, 2)
        memory.get(subject(**change), imported)
        assert (memory.found, memory.made) == (2, 2)


def test_where_it_comes_from_counts_too() -> None:
    assert current_memory() is None
    for word, wanted in (("a", (0, 1)), ("b", (0, 1)), ("a", (1, 0))):
        with remembered_imports("model.py", word) as memory:
            assert current_memory() is memory
            memory.get(subject(), imported)
        assert (memory.found, memory.made) == wanted
    assert current_memory() is None


def test_rates_of_a_schedule_and_batches_are_no_part_of_it() -> None:
    with remembered_imports() as memory:
        memory.get(subject(scheduled=True), imported)
        memory.get(subject(scheduled=True, lr=0.2, batches=[{"input": torch.randn(2, 4)}]), imported)
    assert (memory.found, memory.made) == (1, 1)
