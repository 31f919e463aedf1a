# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An index that is no place of its tensor, and a label that is no class, end a run as they do in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from hyperparallel.compile import compile_model
from hyperparallel.errors import RuntimeFailure
from hyperparallel.execute import run_compiled
from hyperparallel.frontend.torch import import_model
from hyperparallel.plan import Plan

ROWS = 6
READS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "x[i]": lambda x, i: x[i],
    "index_select": lambda x, i: x.index_select(0, i),
    "take": lambda x, i: x[:, 0].take(i),
    "gather": lambda x, i: x.gather(0, i.unsqueeze(1)),
    "embedding": lambda x, i: torch.nn.functional.embedding(i, x),
    "cross_entropy": lambda x, i: torch.nn.functional.cross_entropy(x[:4].T, i, reduction="none"),
}


class Reader(torch.nn.Module):
    """One way to read by index."""

    def __init__(self, read: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.read = read

    def forward(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return self.read(x, i)


@pytest.mark.parametrize("name", READS)
def test_refused(name: str, tmp_path: Path) -> None:
    torch.manual_seed(2)
    x, i = torch.randn(ROWS, 4), torch.tensor([2, 0, 3, 1])
    model = Reader(READS[name])
    imported = import_model(model, (x, i), name="reader")
    program = compile_model(imported, Plan(mesh="dp=2", preset="data_parallel"), out_dir=tmp_path / "program")

    def run(values: torch.Tensor) -> np.ndarray:
        names = [argument.name for argument in imported.arguments]
        run = run_compiled(program, dict(zip(names, (x.numpy(), values.numpy()), strict=True)))
        return next(iter(run.results.values()))

    np.testing.assert_allclose(run(i), model(x, i).numpy(), rtol=1e-6)
    for wrong in (ROWS, 10**9, -ROWS - 1):
        values = i.clone()
        values[3] = wrong
        with pytest.raises((IndexError, RuntimeError)):
            model(x, values)
        with pytest.raises(RuntimeFailure, match="assertion failed: index"):
            run(values)
