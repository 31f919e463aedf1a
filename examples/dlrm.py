# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small recommendation model (DLRM, Naumov et al. 2019): tables of categories, a dense part, products of all pairs.

All tables are one parameter, [tables, rows, width]: to split its first dimension is to give each device its own tables.
Looking up is a module of its own, so that a plan can give it to other devices than the dense part.
"""

import torch
from torch import nn

from hyperparallel.frontend.weights import randomize


class Tables(nn.Module):
    """A row of each table."""

    def __init__(self, tables: int, rows: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(tables, rows, width) * 0.1)

    def forward(self, categories: torch.Tensor) -> torch.Tensor:
        """Map categories [batch, tables] to vectors [batch, tables, width]."""
        index = categories.t().unsqueeze(2).expand(-1, -1, self.weight.shape[2])
        return torch.gather(self.weight, 1, index).transpose(0, 1)


class DLRM(nn.Module):
    """Numbers and categories in, the logit of a click out."""

    def __init__(self, tables: int, rows: int, width: int, features: int, hidden: int) -> None:
        super().__init__()
        self.tables = Tables(tables, rows, width)
        self.bottom = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, width), nn.ReLU())
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(nn.Linear(width + pairs, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        first, second = torch.tril_indices(tables + 1, tables + 1, offset=-1)
        self.register_buffer("first", first, persistent=False)
        self.register_buffer("second", second, persistent=False)

    def forward(self, numbers: torch.Tensor, categories: torch.Tensor) -> torch.Tensor:
        """Map numbers [batch, features] and categories [batch, tables] to logits [batch]."""
        dense = self.bottom(numbers)
        vectors = torch.cat([dense.unsqueeze(1), self.tables(categories)], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        pairs = products[:, self.first, self.second]
        return self.top(torch.cat([dense, pairs], 1)).squeeze(1)


def build(
    *,
    tables: int = 8,
    rows: int = 100,
    width: int = 16,
    features: int = 13,
    hidden: int = 32,
    batch: int = 32,
    seed: int = 0,
):
    torch.manual_seed(seed)
    model = randomize(DLRM(tables, rows, width, features, hidden).eval(), seed=seed)
    return model, (torch.randn(batch, features), torch.randint(rows, (batch, tables)))
