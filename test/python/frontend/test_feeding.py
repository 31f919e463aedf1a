# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a model file says of its steps: batches that can be had again, and learning rates by any schedule of the number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from hyperparallel.errors import ImportModelError
from hyperparallel.frontend.feeding import Batches, Rates, checked_batch, rate_names

schedules: Any = torch.optim.lr_scheduler


class Listed(torch.utils.data.Dataset[Any]):
    """Examples from a list."""

    def __init__(self, examples: list[Any]) -> None:
        self.examples = examples

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, index: int) -> Any:
        return self.examples[index]


def optimizer(groups: int = 1) -> Any:
    parameters = [torch.nn.Parameter(torch.ones(2)) for _ in range(groups)]
    return torch.optim.SGD([{"params": [one], "lr": 0.1 * (n + 1)} for n, one in enumerate(parameters)], momentum=0.9)


@pytest.mark.parametrize(
    "make",
    [
        lambda of: schedules.LambdaLR(of, lambda step: 1 / (step + 1)),
        lambda of: schedules.StepLR(of, 2, gamma=0.5),
        lambda of: schedules.CosineAnnealingLR(of, 5),
        lambda of: schedules.OneCycleLR(of, 0.3, total_steps=8, cycle_momentum=False),
        lambda of: schedules.SequentialLR(
            of, [schedules.LinearLR(of, 0.1, total_iters=3), schedules.ExponentialLR(of, 0.9)], [3]
        ),
    ],
    ids=["lambda", "step", "cosine", "one cycle", "sequential"],
)
def test_rates_are_those_of_the_scheduler(make: Callable[[Any], Any]) -> None:
    of = optimizer(2)
    scheduler = make(of)
    rates = Rates(of, scheduler)
    assert rates.names == rate_names(of) == ("optimizer.lr.0", "optimizer.lr.1")
    later = rates(5)
    wanted: list[tuple[float, ...]] = []
    for _ in range(6):
        wanted.append(tuple(group["lr"] for group in of.param_groups))
        of.step()
        scheduler.step()
    assert [rates(step) for step in range(6)] == wanted
    assert later == wanted[5]


def test_schedules_that_cannot_be_fed() -> None:
    of = optimizer()
    with pytest.raises(ImportModelError, match="ReduceLROnPlateau goes by the losses"):
        Rates(of, schedules.ReduceLROnPlateau(of))
    with pytest.raises(ImportModelError, match="another optimizer"):
        Rates(of, schedules.StepLR(optimizer(), 1))
    with pytest.raises(ImportModelError, match=r"OneCycleLR changes momentum .*cycle_momentum=False"):
        Rates(of, schedules.OneCycleLR(of, 0.1, total_steps=8))(3)


def test_batches_begin_again() -> None:
    listed = [{"x": torch.tensor([number])} for number in range(3)]
    batches = Batches(listed)
    assert [int(batches(step)["x"]) for step in (0, 1, 2, 3, 7, 8, 1)] == [0, 1, 2, 0, 1, 2, 1]
    counted = Batches(lambda step: {"x": torch.tensor([step])})
    assert [int(counted(step)["x"]) for step in (4, 0)] == [4, 0]
    loader: Any = torch.utils.data.DataLoader(
        Listed([{"x": torch.tensor(number)} for number in range(4)]), batch_size=2
    )
    assert Batches(loader)(3)["x"].tolist() == [2, 3]
    with pytest.raises(ImportModelError, match="only once"):
        Batches(iter(listed))
    with pytest.raises(ImportModelError, match="batches are empty"):
        Batches([])(0)


def test_a_batch_of_another_shape() -> None:
    inputs = {"x": torch.zeros(2, 3)}
    with pytest.raises(ImportModelError, match=r"batch of step 4: expected x as torch.float32 of the shape \[2, 3\]"):
        checked_batch({"x": torch.zeros(1, 3)}, 4, inputs)
    with pytest.raises(ImportModelError, match="batch of step 0 has y, which is no input; the inputs are x"):
        checked_batch({"y": torch.zeros(2, 3)}, 0, inputs)
