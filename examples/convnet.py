# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small residual conv net: strided and padded convolutions, batch norm, pooling; plain PyTorch."""

import torch
from torch import nn

from hyperparallel.frontend.weights import randomize


class Residual(nn.Module):
    """Two 3x3 convolutions with batch norm, and the input added."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map a batch to a batch."""
        y = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(x + self.norm2(self.conv2(y)))


class ConvNet(nn.Module):
    """Images in, class scores out."""

    def __init__(self, channels: int, classes: int, layers: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 5, stride=2, padding=2)
        self.pool = nn.MaxPool2d(2)
        self.blocks = nn.ModuleList(Residual(channels) for _ in range(layers))
        self.head = nn.Linear(channels, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map a batch to a batch."""
        x = self.pool(torch.relu(self.stem(images)))
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(dim=(2, 3)))


def build(
    *,
    layers: int = 2,
    channels: int = 16,
    classes: int = 10,
    image: int = 32,
    batch: int = 8,
    seed: int = 0,
):
    torch.manual_seed(seed)
    model = randomize(ConvNet(channels, classes, layers).eval(), seed=seed)
    return model, (torch.randn(batch, 3, image, image),)
