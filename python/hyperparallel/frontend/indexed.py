# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrites of operators that write, or choose, at computed places.

- What adds rows to a table (the backward of embeddings, of ``x[i]``, ``index_add``) becomes one operator of our own,
  ``hyperparallel::scatter_add(updates [N, ...], indices [N], table [V, ...])``, which ``indexing.scatter_add`` is in
  MLIR. It is never a product with a one-hot matrix.
- What replaces rows of a table (the update of a key-value cache) selects, for each row of it, between that and the new
  one: elementwise, so that it can be done in the table's place and is split as the table is.
- What writes a few places of each row (the backward of ``topk``, ``scatter`` with a short index) compares places and
  selects: elementwise, so that it fuses and is split as its tensor is.
- ``topk`` and ``sort`` find the rank of each element by counting those before it: n^2 comparisons for rows of n, without
  a loop whose order depends on data. Routers have tens of experts. Equal elements keep their order, and NaN is not
  ordered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

SCATTER_ADD = "hyperparallel.scatter_add.default"

_FEW_PLACES = 16
"""Up to how many places of a row are written by comparing each with all."""


@torch.library.custom_op("hyperparallel::scatter_add", mutates_args=())
def scatter_add(updates: Tensor, indices: Tensor, table: Tensor) -> Tensor:
    """Return ``table`` with update n added to row ``indices[n]``; updates whose row is not there are dropped."""
    inside = (indices >= 0) & (indices < table.shape[0])
    return table.index_add(0, indices[inside], updates[inside])


@scatter_add.register_fake
def _(updates: Tensor, indices: Tensor, table: Tensor) -> Tensor:
    return table.new_empty(table.shape)


def indexed_decompositions() -> dict[Any, Callable[..., Any]]:
    """The decompositions, by operator overload."""
    return {
        aten.embedding_dense_backward.default: _embedding_backward,
        aten.index_put.default: _index_put,
        aten._unsafe_index_put.default: _index_put,
        aten.index_add.default: _index_add,
        aten.index_copy.default: _index_copy,
        aten.scatter_add.default: _scatter_add,
        aten.scatter.src: _scatter,
        aten.scatter.value: _scatter,
        aten.value_selecting_reduction_backward.default: _selected_backward,
        aten.max_pool2d_with_indices_backward.default: _max_pool2d_backward,
        aten.topk.default: _topk,
        aten.sort.default: _sort,
        aten.sort.stable: _stable_sort,
    }


def _embedding_backward(
    grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    if scale_grad_by_freq:
        return NotImplemented
    rows = indices.reshape(-1)
    if padding_idx >= 0:
        rows = torch.where(rows == padding_idx, -1, rows)
    updates = grad.reshape(rows.shape[0], grad.shape[-1])
    return torch.ops.hyperparallel.scatter_add(updates, rows, grad.new_zeros([num_weights, grad.shape[-1]]))


def _from_start(index: Tensor, size: int) -> Tensor:
    """Indices that count from the end count from the start."""
    return torch.where(index < 0, index + size, index)


def _index_put(x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    places = list(indices)
    while places and places[-1] is None:
        places.pop()
    lead = next((number for number, place in enumerate(places) if place is not None), 0)
    tensors = [place for place in places[lead:] if place is not None]
    if not accumulate or not tensors or len(tensors) < len(places) - lead:
        return NotImplemented
    if any(place.dtype == torch.bool for place in tensors):
        return NotImplemented
    # x[:, i, j] becomes a table of the rows that i and j name; what stands in front of them is part of each row.
    indexed = range(lead, lead + len(tensors))
    rest = [*range(lead), *range(lead + len(tensors), x.dim())]
    broadcast = torch.broadcast_tensors(*tensors)
    row = _from_start(broadcast[0], x.shape[lead])
    for place, dim in zip(broadcast[1:], indexed[1:], strict=True):
        row = row * x.shape[dim] + _from_start(place, x.shape[dim])
    width = [x.shape[dim] for dim in rest]
    whole = values.expand(*x.shape[:lead], *row.shape, *x.shape[lead + len(tensors) :])
    in_front = [*range(lead, lead + row.dim()), *range(lead), *range(lead + row.dim(), whole.dim())]
    updates = whole.permute(in_front).reshape(row.numel(), *width)
    order = [*indexed, *rest]
    table = x.permute(order)
    count = math.prod(x.shape[dim] for dim in indexed)
    added = torch.ops.hyperparallel.scatter_add(updates, row.reshape(-1), table.reshape(count, *width))
    return added.reshape(table.shape).permute([order.index(dim) for dim in range(x.dim())])


def _index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    if x.dim() == 0:
        return NotImplemented
    updates = source if alpha == 1 else source * alpha
    moved = torch.ops.hyperparallel.scatter_add(
        updates.movedim(dim, 0), _from_start(index.reshape(-1), x.shape[dim]), x.movedim(dim, 0)
    )
    return moved.movedim(0, dim)


def _index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    if x.dim() == 0:
        return NotImplemented
    dim, count = dim % x.dim(), index.numel()
    place = _from_start(index.reshape(-1), x.shape[dim])
    if count == 1:
        return torch.where(_places(x, dim) == place, source, x)
    # Each place looks for the last of the rows that go there: a gather, which costs what is copied.
    hit = torch.arange(x.shape[dim]).unsqueeze(1) == place
    row = torch.where(hit, torch.arange(count), -1).amax(1)
    shape = [1] * x.dim()
    shape[dim] = x.shape[dim]
    return torch.where((row >= 0).view(shape), source.index_select(dim, row.clamp(min=0)), x)


def _places(x: Tensor, dim: int) -> Tensor:
    shape = [1] * x.dim()
    shape[dim] = x.shape[dim]
    return torch.arange(x.shape[dim]).view(shape)


def _has_whole_rows(x: Tensor, dim: int, index: Tensor) -> bool:
    """Whether there are indices for every row of ``x`` along ``dim``."""
    return x.dim() > 0 and all(
        index.shape[other] == x.shape[other] for other in range(x.dim()) if other != dim % x.dim()
    )


def _scatter_add(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    if not _has_whole_rows(x, dim, index):
        return NotImplemented
    dim = dim % x.dim()
    source = source[tuple(slice(0, size) for size in index.shape)]
    if index.shape[dim] <= _FEW_PLACES:
        for number in range(index.shape[dim]):
            hit = _places(x, dim) == index.narrow(dim, number, 1)
            x = x + torch.where(hit, source.narrow(dim, number, 1), torch.zeros([], dtype=x.dtype))
        return x
    # A row is what the same index stands for: the dimensions behind, as far as the index was expanded along them.
    rank = x.dim()
    while rank > dim + 1 and index.stride(rank - 1) == 0:
        rank -= 1
    places = index[(..., *([0] * (x.dim() - rank)))]
    row = torch.zeros([1] * rank, dtype=torch.int64)
    for other, size in enumerate(x.shape[:rank]):
        row = row * size + (_from_start(places, size) if other == dim else _places(places, other))
    width = x.shape[rank:]
    flat = torch.ops.hyperparallel.scatter_add(
        source.reshape(row.numel(), *width), row.reshape(-1), x.reshape(math.prod(x.shape[:rank]), *width)
    )
    return flat.reshape(x.shape)


def _scatter(x: Tensor, dim: int, index: Tensor, source: Tensor | float) -> Tensor:
    if not _has_whole_rows(x, dim, index) or index.shape[dim] > _FEW_PLACES:
        return NotImplemented
    for number in range(index.shape[dim]):
        hit = _places(x, dim % x.dim()) == index.narrow(dim, number, 1)
        value = source.narrow(dim, number, 1) if isinstance(source, Tensor) else torch.full([], source, dtype=x.dtype)
        x = torch.where(hit, value, x)
    return x


def _selected_backward(grad: Tensor, dim: int, indices: Tensor, sizes: Sequence[int], keepdim: bool) -> Tensor:
    if not sizes:
        return grad
    if not keepdim:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return _scatter_add(grad.new_zeros(sizes), dim, indices, grad)


def _max_pool2d_backward(grad: Tensor, x: Tensor, *others: Any) -> Tensor:
    """What reached a maximum goes to the place that it was taken from; a plane is one row of places."""
    indices: Tensor = others[-1]
    planes = grad.new_zeros([*x.shape[:-2], x.shape[-2] * x.shape[-1]])
    return _scatter_add(planes, -1, indices.flatten(-2), grad.flatten(-2)).reshape(x.shape)


def _ranked(x: Tensor, k: int, largest: bool) -> tuple[Tensor, Tensor]:
    """The first k of the last dimension, in order."""
    n = x.shape[-1]
    mine, other = x.unsqueeze(-1), x.unsqueeze(-2)
    number = torch.arange(n)
    is_earlier = number.view(1, n) < number.view(n, 1)
    before = (other > mine) if largest else (other < mine)
    rank = (before | ((other == mine) & is_earlier)).to(torch.int64).sum(-1)
    chosen = rank.unsqueeze(-2) == torch.arange(k).view(k, 1)
    values = torch.where(chosen, x.unsqueeze(-2), torch.zeros([], dtype=x.dtype)).sum(-1, dtype=x.dtype)
    return values, torch.where(chosen, number, 0).sum(-1)


def _topk(x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:
    if x.dim() == 0 or x.dtype == torch.bool:
        return NotImplemented
    values, indices = _ranked(x.movedim(dim, -1), k, largest)
    return values.movedim(-1, dim), indices.movedim(-1, dim)


def _sort(x: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    return NotImplemented if x.dim() == 0 else _topk(x, x.shape[dim], dim, largest=descending)


def _stable_sort(
    x: Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[Tensor, Tensor]:
    return _sort(x, dim, descending)
