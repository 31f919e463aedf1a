# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The recommendation model of dlrm.py, which learns by Adam what is clicked."""

import dlrm
import torch

from hyperparallel.frontend.training_step import Training


def build(*, tables: int = 8, rows: int = 100, batch: int = 32, lr: float = 1e-2, microbatches: int = 1, seed: int = 0):
    model, inputs = dlrm.build(tables=tables, rows=rows, batch=batch, seed=seed)
    training = Training(
        loss=lambda logits, clicked: torch.nn.functional.binary_cross_entropy_with_logits(logits, clicked),
        optimizer=torch.optim.Adam(model.parameters(), lr=lr, eps=1e-5),
        targets={"clicked": torch.randint(2, (batch,)).float()},
        microbatches=microbatches,
    )
    return model, inputs, training
