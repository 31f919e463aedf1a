# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A training over a vocabulary does the products that its model has, and none with one-hot rows, split or not."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from mlir import ir

from hyperparallel.compile import compile_model
from hyperparallel.cost import cost_of_file
from hyperparallel.execute import run_compiled
from hyperparallel.frontend.artifact import ImportedModel
from hyperparallel.frontend.training import import_training
from hyperparallel.frontend.training_reference import train
from hyperparallel.frontend.training_step import Training
from hyperparallel.pipeline import make_context
from hyperparallel.plan import Plan

VOCABULARY, WIDTH, ROWS = 1009, 16, 192
PLANS = {
    "one device": Plan(mesh="dp=1", preset="data_parallel"),
    "batch split": Plan(mesh="dp=3", preset="data_parallel"),
    "vocabulary split": Plan.parse("mesh: {tp: 2}\nshard: {embed.weight: Shard(0)@tp, head.weight: Shard(0)@tp}\n"),
}


class Words(torch.nn.Module):
    """The next word from the last one alone."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.head = torch.nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.embed(tokens)))


@pytest.fixture(scope="module")
def words() -> tuple[Words, torch.Tensor, Training, ImportedModel]:
    torch.manual_seed(3)
    module = Words()
    tokens, labels = torch.randint(VOCABULARY, (2, ROWS))
    labels[5] = -100  # what cross-entropy leaves out
    training = Training(
        lambda logits, labels: torch.nn.functional.cross_entropy(logits, labels),
        torch.optim.SGD(module.parameters(), lr=0.5),
        targets={"labels": labels},
    )
    return module, tokens, training, import_training(module, (tokens,), training=training)


def check_types(text: str, rows: int, words: int) -> None:
    """What is as large as the logits is numbers (their gradient is dense), or which of them are the labels'."""
    shapes = [
        (tuple(map(int, dims.split("x")[:-1])), dtype) for dims, dtype in re.findall(r"tensor<((?:\d+x)+)(\w+)>", text)
    ]
    both = {dtype for shape, dtype in shapes if rows in shape and words in shape}
    assert both <= {"f32", "i1"}


@pytest.mark.parametrize("name", PLANS)
def test_no_product_with_one_hot_rows(
    name: str, words: tuple[Words, torch.Tensor, Training, ImportedModel], tmp_path: Path
) -> None:
    module, tokens, training, model = words
    program = compile_model(model, PLANS[name], None, tmp_path / "program")
    devices = program.mesh.num_devices
    rows = ROWS if "tp" in program.mesh.names else -(-ROWS // devices)
    words_here = -(-VOCABULARY // devices) if "tp" in program.mesh.names else VOCABULARY
    local = program.local_program_file
    assert "indexing.scatter_add" in model.mlir
    check_types(model.mlir, ROWS, VOCABULARY)
    check_types(str(ir.Module.parse(local.read_bytes(), make_context())), rows, words_here)
    # Logits, and the gradients of both of their factors; all else is by element.
    main = cost_of_file(local).function("main").total
    assert main.contraction_flops == 3 * 2 * rows * WIDTH * words_here

    inputs = {"tokens": tokens.numpy(), "labels": training.targets["labels"].numpy()}
    run = run_compiled(program, lambda key: inputs[key] if key in inputs else np.array(model.weight(key)), repeat=3)
    wanted = train(module, (tokens,), {}, training, 3)
    np.testing.assert_allclose(run.losses, wanted.losses, rtol=1e-5)
    for key, value in wanted.parameters.items():
        np.testing.assert_allclose(run.results[key], value.numpy(), rtol=1e-4, atol=1e-6, err_msg=key)
