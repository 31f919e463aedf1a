# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A residual multilayer perceptron: plain PyTorch, no transformers."""

import torch
from torch import nn

from hyperparallel.frontend.weights import randomize


class Block(nn.Module):
    """Norm, widen, activate, narrow, add."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map a batch to a batch."""
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class MLP(nn.Module):
    """Features in, class scores out."""

    def __init__(self, features: int, width: int, hidden: int, classes: int, layers: int) -> None:
        super().__init__()
        self.embed = nn.Linear(features, width)
        self.blocks = nn.ModuleList(Block(width, hidden) for _ in range(layers))
        self.head = nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map a batch to a batch."""
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def build(
    *,
    layers: int = 4,
    features: int = 32,
    width: int = 64,
    hidden: int = 256,
    classes: int = 10,
    batch: int = 8,
    seed: int = 0,
):
    torch.manual_seed(seed)
    model = randomize(MLP(features, width, hidden, classes, layers).eval(), seed=seed)
    return model, (torch.randn(batch, features),)
