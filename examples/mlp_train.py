# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The residual multilayer perceptron of mlp.py, trained to tell classes apart by SGD with momentum.

With ``fresh`` every step has a batch of its own; with ``warmup`` the learning rate grows for so many steps.
"""

import mlp
import torch

from hyperparallel.frontend.training_step import Training


def build(
    *,
    layers: int = 4,
    features: int = 32,
    width: int = 64,
    hidden: int = 256,
    classes: int = 10,
    batch: int = 8,
    lr: float = 0.1,
    momentum: float = 0.9,
    microbatches: int = 1,
    warmup: int = 0,
    fresh: bool = False,
    seed: int = 0,
):
    module, inputs = mlp.build(
        layers=layers, features=features, width=width, hidden=hidden, classes=classes, batch=batch, seed=seed
    )
    optimizer = torch.optim.SGD(module.parameters(), lr=lr, momentum=momentum)

    def batch_of(step: int):
        random = torch.Generator().manual_seed(step)
        return {
            "x": torch.randn(batch, features, generator=random),
            "labels": torch.randint(classes, (batch,), generator=random),
        }

    training = Training(
        loss=lambda scores, labels: torch.nn.functional.cross_entropy(scores, labels),
        optimizer=optimizer,
        targets={"labels": torch.randint(classes, (batch,))},
        microbatches=microbatches,
        batches=batch_of if fresh else None,
        scheduler=torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=warmup) if warmup else None,
    )
    return module, inputs, training
