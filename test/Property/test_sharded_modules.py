# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random PyTorch modules, imported and split over random meshes: what they compute is what PyTorch computes.

Modules are chains of views, broadcasts, reductions, products, sums and reads at computed places, writes in place, and
changes of type. Inputs are small multiples of 1/8, so that comparisons and roundings see the same numbers everywhere:
they are drawn only for values that sums and products alone led to. The same modules are drawn on every run;
HP_PROPERTY_EXAMPLES=1000 draws as many new ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

pytest.importorskip("torch")

import torch
from torch import Tensor
from torch.nn import functional

from hyperparallel.frontend.torch import import_model
from hyperparallel.testing import Executor, Padding, Sharding, run_sharded

EXAMPLES = os.environ.get("HP_PROPERTY_EXAMPLES")
SIZES = st.sampled_from([1, 2, 3, 4, 5, 7])
MESHES = st.sampled_from([{"a": 2}, {"a": 3}, {"a": 4}, {"a": 2, "b": 2}, {"a": 3, "b": 2}, {"a": 2, "b": 2, "c": 2}])

ROUNDED: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "gelu": functional.gelu,
    "exp": lambda x: torch.exp(-x.abs()),
    "rsqrt": lambda x: torch.rsqrt(x.abs() + 1),
    "half": lambda x: x.bfloat16().float(),
}
KEPT: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "rsub": lambda x: 2 - x,
    "clamp": lambda x: x.clamp(-1.5, 2),
    "double": lambda x: x.double().mul(0.5).float(),
}
EXACT: dict[str, Callable[[Tensor], Tensor]] = {
    "floor": torch.floor,
    "sign": torch.sign,
    "remainder": lambda x: torch.remainder(x, -1.25),
    "positive": lambda x: (x > 0).to(x.dtype),
    "integers": lambda x: (x.long() // 2 + (x.int() % 3) * 5).float(),
}


class Module(torch.nn.Module):
    """Replays what was drawn: each step is a function of earlier values."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[tuple[Callable[..., Tensor], tuple[int, ...], str]] = []
        self.results: list[int] = []

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """All results."""
        values = list(inputs)
        for function, operands, _ in self.steps:
            values.append(function(*(values[number] for number in operands)))
        return tuple(values[number] for number in self.results)


@dataclass
class Drawing:
    """A module under construction, and its values."""

    draw: st.DrawFn
    module: Module = field(default_factory=Module)
    values: list[Tensor] = field(default_factory=list)
    exact: list[bool] = field(default_factory=list)

    def input(self, shape: tuple[int, ...]) -> Tensor:
        """Numbers between -4 and 4, all different if they are less than 64."""
        count = int(np.prod(shape))
        values = torch.tensor([((i * 37 + 11) % 64 - 31.5) / 8 for i in range(count)]).reshape(shape)
        self.values.append(values)
        self.exact.append(True)
        return values

    def pick(self, fits: Callable[[Tensor], bool] = lambda _: True) -> int | None:
        """A value that fits."""
        numbers = [number for number, value in enumerate(self.values) if fits(value)]
        return self.draw(st.sampled_from(numbers)) if numbers else None

    def dim(self, value: Tensor) -> int:
        """A dimension."""
        return self.draw(st.integers(0, value.dim() - 1))

    def add(self, function: Callable[..., Tensor], operands: tuple[int, ...], name: str, *, exact: bool = True) -> None:
        """One more step; large values are made smaller, and what is too large is left out."""
        value = function(*(self.values[number] for number in operands))
        if value.numel() > 600 or value.dim() > 4 or value.dim() == 0:
            return
        if value.abs().max() > 32:
            whole = function
            function = lambda *given: whole(*given) * 0.03125  # noqa: E731
            value = function(*(self.values[number] for number in operands))
        self.module.steps.append((function, operands, name))
        self.values.append(value)
        self.exact.append(exact and all(self.exact[number] for number in operands))


def elementwise(d: Drawing) -> None:
    """A function of each element."""
    number = d.pick()
    assert number is not None
    table = {**ROUNDED, **KEPT, **(EXACT if d.exact[number] else {})}
    name = d.draw(st.sampled_from(list(table)))
    d.add(table[name], (number,), name, exact=name not in ROUNDED)


def binary(d: Drawing) -> None:
    """A function of two values that broadcast."""

    def fits(value: Tensor) -> bool:
        try:
            torch.broadcast_shapes(value.shape, d.values[first].shape)
        except RuntimeError:
            return False
        return True

    first = d.pick() or 0
    second = d.pick(fits)
    assert second is not None
    name, function = d.draw(
        st.sampled_from(
            [
                ("add", torch.add),
                ("mul", torch.mul),
                ("maximum", torch.maximum),
                ("subtract twice", lambda x, y: torch.sub(x, y, alpha=2)),
                ("select", lambda x, y: torch.where(torch.arange(x.shape[-1]) % 2 == 0, x, y)),
            ]
        )
    )
    d.add(function, (first, second), name)


def viewed(d: Drawing) -> None:
    """Another look at a value."""
    number = d.pick()
    assert number is not None
    value = d.values[number]
    dim, other, shift = d.dim(value), d.dim(value), d.draw(st.integers(-3, 3))
    begin = d.draw(st.integers(0, value.shape[dim] - 1))
    end = d.draw(st.integers(begin + 1, value.shape[dim]))
    step = d.draw(st.sampled_from([1, 2]))
    window = tuple(slice(begin, end, step) if i == dim else slice(None) for i in range(value.dim()))
    views: dict[str, Callable[[Tensor], Tensor]] = {
        "transpose": lambda x: x.transpose(dim, other),
        "flat": lambda x: x.transpose(dim, other).flatten(),
        "slice": lambda x: x[window],
        "flip": lambda x: x.flip(dim),
        "roll": lambda x: x.roll(shift, dim),
        "roll of all": lambda x: x.roll(shift),
        "expand": lambda x: x.unsqueeze(dim).expand(*x.shape[:dim], 2, *x.shape[dim:]),
        "repeat": lambda x: x.repeat_interleave(2, dim),
        "join": lambda x: torch.cat([x, x.flip(dim), x[window]], dim),
        "stack": lambda x: torch.stack([x, -x], dim),
        "pad": lambda x: functional.pad(x, (shift, 2), value=-1.5) if shift > -x.shape[-1] else x,
        "pieces": lambda x: torch.cat(x.tensor_split(3, dim)[::-1], dim),
        "triangle": lambda x: x.tril(shift) if x.dim() > 1 else x,
        "windows": lambda x: x.unfold(dim, min(2, x.shape[dim]), 1),
    }
    name = d.draw(st.sampled_from(list(views)))
    d.add(views[name], (number,), name)


def reduced(d: Drawing) -> None:
    """A reduction, or a scan."""
    number = d.pick()
    assert number is not None
    value = d.values[number]
    dim, keep = d.dim(value), d.draw(st.booleans())
    exact: dict[str, Callable[[Tensor], Tensor]] = {
        "sum": lambda x: x.sum(dim, keepdim=keep),
        "amax": lambda x: x.amax(dim, keepdim=keep),
        "cumsum": lambda x: x.cumsum(dim),
        "absolute": lambda x: x.abs().sum(dim),
    }
    if d.exact[number]:
        exact["argmax"] = lambda x: x.argmax(dim, keepdim=True).float()
        exact["sort"] = lambda x: x.sort(dim)[0]
        exact["count"] = lambda x: (x > 0).sum(dim, keepdim=True).float()
        exact["any"] = lambda x: (x > 3).any(dim, keepdim=True).float()
    rounded: dict[str, Callable[[Tensor], Tensor]] = {
        "mean": lambda x: x.mean(dim, keepdim=keep),
        "variance": lambda x: x.var(dim, correction=0, keepdim=keep),
        "softmax": lambda x: x.softmax(dim),
        "log-sum-exp": lambda x: x.logsumexp(dim),
        "norm": lambda x: functional.layer_norm(x, x.shape[-1:]),
    }
    name = d.draw(st.sampled_from([*exact, *rounded]))
    d.add((exact | rounded)[name], (number,), name, exact=name in exact)


def contracted(d: Drawing) -> None:
    """A product of matrices, or of many."""
    number = d.pick(lambda x: x.dim() > 1)
    if number is None:
        return
    inner = d.values[number].shape[-1]
    other = d.pick(lambda x: x.dim() == 2 and x.shape[0] == inner)
    if other is None:
        d.add(lambda x: x @ x.transpose(-1, -2), (number,), "gram")
    else:
        d.add(torch.matmul, (number, other), "matmul")


def indexed(d: Drawing) -> None:
    """Reads and sums at places that values say."""
    number = d.pick()
    where = d.pick()
    if number is None or where is None or not d.exact[where]:
        return
    dim = d.dim(d.values[number])

    def rows(x: Tensor, y: Tensor) -> Tensor:
        return y.flatten()[:6].floor().long().remainder(x.shape[dim])

    def places(x: Tensor, y: Tensor) -> Tensor:
        index = rows(x, y)
        return index.view([-1 if i == dim else 1 for i in range(x.dim())]).expand(
            [len(index) if i == dim else n for i, n in enumerate(x.shape)]
        )

    def parts(x: Tensor, y: Tensor) -> Tensor:
        return x.index_select(dim, rows(x, y)) * 0.5

    reads: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "rows": lambda x, y: x.index_select(dim, rows(x, y)),
        "gather": lambda x, y: x.gather(dim, places(x, y)),
        "embedding": lambda x, y: functional.embedding(y.long().remainder(len(x)), x.reshape(len(x), -1)),
        "sums": lambda x, y: x.index_add(dim, rows(x, y), parts(x, y)),
        "scatter": lambda x, y: x.scatter_add(dim, places(x, y), parts(x, y)),
        "classes": lambda x, y: functional.one_hot(rows(x, y), x.shape[dim]).float(),
    }
    name = d.draw(st.sampled_from(list(reads)))
    d.add(reads[name], (number, where), name)


def written(d: Drawing) -> None:
    """Writes in place, through views."""
    number = d.pick()
    assert number is not None
    value = d.values[number]
    dim = d.dim(value)
    at = d.draw(st.integers(0, value.shape[dim] - 1))
    step = d.draw(st.sampled_from([1, 2]))
    window = tuple(slice(at, None, step) if i == dim else slice(None) for i in range(value.dim()))

    def update(x: Tensor) -> Tensor:
        y = x.clone()
        y[window] = y[window] * -2 + 1
        y.select(dim, at).add_(x.select(dim, 0))
        return y

    def through_a_view(x: Tensor) -> Tensor:
        y = x * 1
        view = y.transpose(0, -1)
        view.mul_(2)
        view[0] = -1
        return y

    def read_before(x: Tensor) -> Tensor:
        y = x.clone()
        z = y.unsqueeze(0).expand(2, *x.shape) + 1
        y[window].zero_()
        return y + z.sum(0)

    function = d.draw(st.sampled_from([update, through_a_view, read_before]))
    d.add(function, (number,), function.__name__)


KINDS = [elementwise, binary, binary, viewed, viewed, reduced, contracted, indexed, written]


def splits(draw: st.DrawFn, mesh: dict[str, int], rank: int) -> Sharding:
    """Any split over any of the axes, or none."""
    layout: list[list[str]] = [[] for _ in range(rank)]
    for axis in draw(st.permutations(list(mesh))):
        place = draw(st.integers(0, rank))
        if place < rank:
            layout[place].append(axis)
    return draw(st.sampled_from([layout, layout, None]))


@st.composite
def cases(
    draw: st.DrawFn,
) -> tuple[Module, tuple[Tensor, ...], dict[str, int], list[Sharding], list[Sharding] | None, list[bool]]:
    """A module, its inputs, a mesh, shardings, and whether results are exact."""
    drawing = Drawing(draw)
    shape = tuple(draw(st.lists(SIZES, min_size=1, max_size=3)))
    inputs = (drawing.input(shape), drawing.input(tuple(draw(st.lists(SIZES, min_size=1, max_size=2)))))
    for _ in range(draw(st.integers(2, 7))):
        draw(st.sampled_from(KINDS))(drawing)
    used = {number for _, operands, _ in drawing.module.steps for number in operands}
    last = len(drawing.values) - 1
    drawing.module.results = [n for n in range(2, last + 1) if n not in used] or [last]
    mesh = draw(MESHES)
    arguments = [splits(draw, mesh, value.dim()) for value in inputs]
    values = [drawing.values[number] for number in drawing.module.results]
    results = [splits(draw, mesh, value.dim()) for value in values] if draw(st.booleans()) else None
    return drawing.module, inputs, mesh, arguments, results, [drawing.exact[n] for n in drawing.module.results]


@settings(
    max_examples=int(EXAMPLES or 25),
    derandomize=EXAMPLES is None,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # each takes a second: shrinking would not end
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
@given(cases(), st.sampled_from(list(Executor)), st.sampled_from(list(Padding)))
def test_split_modules_compute_what_pytorch_does(case: Any, executor: Executor, padding: Padding) -> None:
    module, inputs, mesh, arguments, results, exact = case
    note(f"{[tuple(x.shape) for x in inputs]} {[(name, operands) for _, operands, name in module.steps]}")
    note(f"results {module.results}, mesh {mesh}, arguments {arguments}, results {results}")
    wanted = module(*(value.clone() for value in inputs))
    model = import_model(module, inputs)
    given = {f"inputs.{number}": value.numpy() for number, value in enumerate(inputs)}
    order = [entry.name for entry in model.arguments]
    values = [given[name] if name in given else np.asarray(model.weight(name)) for name in order]
    shardings = [arguments[int(name.split(".")[1])] if name in given else None for name in order]
    run = run_sharded(model.mlir, values, mesh, shardings, results, executor=executor, padding=padding)
    for result, want, is_exact in zip(run.results, wanted, exact, strict=True):
        tolerance = 1e-6 if is_exact else 2e-2 if "half" in {name for _, _, name in module.steps} else 1e-4
        scale = max(1.0, float(want.abs().max()))
        np.testing.assert_allclose(result, want.numpy(), rtol=0, atol=tolerance * scale, err_msg=run.program)
