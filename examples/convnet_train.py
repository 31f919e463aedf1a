# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The residual conv net of convnet.py, which learns by SGD to tell classes apart; batch norms keep their running statistics."""

import convnet
import torch

from hyperparallel.frontend.training_step import Training


def build(
    *,
    layers: int = 2,
    channels: int = 16,
    classes: int = 10,
    image: int = 32,
    batch: int = 8,
    lr: float = 0.05,
    microbatches: int = 1,
    seed: int = 0,
):
    module, inputs = convnet.build(
        layers=layers, channels=channels, classes=classes, image=image, batch=batch, seed=seed
    )
    training = Training(
        loss=lambda scores, labels: torch.nn.functional.cross_entropy(scores, labels),
        optimizer=torch.optim.SGD(module.parameters(), lr=lr, momentum=0.9),
        targets={"labels": torch.randint(classes, (batch,))},
        microbatches=microbatches,
    )
    return module.train(), inputs, training
