# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small vision transformer that learns by AdamW what its pooled output is to be: 2 layers, width 48."""

import torch
import vit

from hyperparallel.frontend.training_step import Training


def build(
    *,
    layers: int = 2,
    width: int = 48,
    ff: int = 96,
    heads: int = 4,
    image: int = 32,
    patch: int = 8,
    batch: int = 8,
    lr: float = 1e-3,
    seed: int = 0,
):
    model, inputs = vit.build(
        layers=layers, width=width, ff=ff, heads=heads, image=image, patch=patch, batch=batch, seed=seed
    )
    training = Training(
        loss=lambda output, wanted: torch.nn.functional.mse_loss(output.pooler_output, wanted),
        optimizer=torch.optim.AdamW(model.parameters(), lr=lr, eps=1e-5),
        targets={"wanted": torch.randn(batch, width)},
    )
    return model, inputs, training
