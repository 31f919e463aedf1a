# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small BERT whose pooled output learns by SGD with Nesterov momentum what it is to be: 2 layers, width 48."""

import bert
import torch

from hyperparallel.frontend.training_step import Training


def build(
    *,
    layers: int = 2,
    width: int = 48,
    ff: int = 96,
    heads: int = 4,
    vocab: int = 128,
    positions: int = 512,
    batch: int = 8,
    seq: int = 12,
    lr: float = 0.1,
    microbatches: int = 1,
    seed: int = 0,
):
    model, args, kwargs = bert.build(
        layers=layers,
        width=width,
        ff=ff,
        heads=heads,
        vocab=vocab,
        positions=positions,
        batch=batch,
        seq=seq,
        seed=seed,
    )
    training = Training(
        loss=lambda output, wanted: torch.nn.functional.mse_loss(output.pooler_output, wanted),
        optimizer=torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, nesterov=True, weight_decay=1e-3),
        targets={"wanted": torch.randn(batch, width)},
        microbatches=microbatches,
    )
    return model, args, kwargs, training
