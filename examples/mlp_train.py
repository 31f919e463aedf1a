# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The residual multilayer perceptron of mlp.py, trained to tell classes apart by SGD with momentum."""

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
    seed: int = 0,
):
    module, inputs = mlp.build(
        layers=layers, features=features, width=width, hidden=hidden, classes=classes, batch=batch, seed=seed
    )
    training = Training(
        loss=lambda scores, labels: torch.nn.functional.cross_entropy(scores, labels),
        optimizer=torch.optim.SGD(module.parameters(), lr=lr, momentum=momentum),
        targets={"labels": torch.randint(classes, (batch,))},
        microbatches=microbatches,
    )
    return module, inputs, training
