# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two matrices with a ReLU between them: the model of docs/Tour.md, small enough to be read whole at every phase."""

import torch
from torch import nn

from hyperparallel.frontend.weights import randomize


class TwoLayers(nn.Module):
    """Widen, activate, narrow."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, hidden, bias=False)
        self.fc2 = nn.Linear(hidden, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map a batch to a batch."""
        return self.fc2(torch.relu(self.fc1(x)))


def build(*, batch: int = 8, width: int = 64, hidden: int = 256, seed: int = 0):
    torch.manual_seed(seed)
    return randomize(TwoLayers(width, hidden).eval(), seed=seed), (torch.randn(batch, width),)
