# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizers of ``torch.optim`` as pure functions.

An update takes a parameter, its gradient and its state, and gives their next values, with the arithmetic of PyTorch's
own loops over single tensors (``torch/optim/adam.py``, ``sgd.py``), operation by operation. What depends on the number
of the step alone (Adam's bias corrections) is computed once for all parameters. ``-expm1(t * log(beta))`` stands for
``1 - beta**t``, which in ``float32`` would lose half of its digits in the first steps.

An option that changes the arithmetic and is not known here is refused, never ignored.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from hyperparallel.errors import ImportModelError
from hyperparallel.frontend.feeding import rate_names

STEP = "optimizer.step"
"""The argument that counts the steps that were done."""

_IGNORED = frozenset(
    {"params", "foreach", "fused", "differentiable", "capturable", "decoupled_weight_decay", "initial_lr"}
)
"""Options that do not change what is computed (or say what the class says)."""


@dataclasses.dataclass(frozen=True, slots=True)
class Sgd:
    """The options of ``torch.optim.SGD``; the learning rate is a number, or the input that it is."""

    lr: float | str
    momentum: float
    dampening: float
    weight_decay: float
    nesterov: bool

    @property
    def state(self) -> tuple[str, ...]:
        """Names of the tensors that are kept for each parameter."""
        return ("momentum_buffer",) if self.momentum != 0 else ()

    @property
    def needs_step(self) -> bool:
        """Whether the first step differs from the others: it fills the buffer without dampening."""
        return self.momentum != 0 and self.dampening != 0

    def scalars(self, step: Tensor | None, lr: Tensor | None) -> list[Tensor]:
        """What all parameters share: of the number of this step, which begins at one, and its learning rate."""
        return [scalar for scalar in (step, lr) if scalar is not None]

    def update(self, param: Tensor, grad: Tensor, state: Sequence[Tensor], scalars: Sequence[Tensor]) -> list[Tensor]:
        """The next values of the parameter and of its state."""
        if self.weight_decay != 0:
            grad = grad + param * self.weight_decay
        rate = scalars[-1] if isinstance(self.lr, str) else self.lr
        if self.momentum == 0:
            return [param - grad * rate]
        (old,) = state
        buffer = old * self.momentum + grad * (1 - self.dampening)
        if self.needs_step:
            buffer = torch.where(scalars[0] == 1, grad, buffer)
        direction = grad + buffer * self.momentum if self.nesterov else buffer
        return [param - direction * rate, buffer]


@dataclasses.dataclass(frozen=True, slots=True)
class Adam:
    """The options of ``torch.optim.Adam`` and ``AdamW`` (``decoupled``); the learning rate as of ``Sgd``."""

    lr: float | str
    betas: tuple[float, float]
    eps: float
    weight_decay: float
    decoupled: bool

    @property
    def state(self) -> tuple[str, ...]:
        """Names of the tensors that are kept for each parameter."""
        return ("exp_avg", "exp_avg_sq")

    @property
    def needs_step(self) -> bool:
        """The averages are corrected by how many steps they hold."""
        return True

    def scalars(self, step: Tensor | None, lr: Tensor | None) -> list[Tensor]:
        """Step size, square root of the second moment's correction, and what decay leaves of a parameter."""
        assert step is not None
        rate = self._rate(lr)
        correction1, correction2 = (
            -torch.expm1(step * math.log(beta)) if beta > 0 else step * 0 + 1 for beta in self.betas
        )
        made = [rate / correction1, torch.sqrt(correction2)]
        return made if lr is None else [*made, 1 - lr * self.weight_decay]

    def _rate(self, lr: Tensor | None) -> float | Tensor:
        if lr is not None:
            return lr
        assert not isinstance(self.lr, str)
        return self.lr

    def update(self, param: Tensor, grad: Tensor, state: Sequence[Tensor], scalars: Sequence[Tensor]) -> list[Tensor]:
        """The next values of the parameter and of its state."""
        step_size, correction, *decayed = scalars
        average, square = state
        if self.weight_decay != 0:
            if self.decoupled:
                param = param * (decayed[0] if decayed else 1 - cast("float", self.lr) * self.weight_decay)
            else:
                grad = grad + param * self.weight_decay
        weight = 1 - self.betas[0]
        # torch.lerp, which takes the nearer end to start from.
        difference = grad - average
        average = average + difference * weight if weight < 0.5 else grad - difference * (1 - weight)
        square = square * self.betas[1] + (grad * grad) * (1 - self.betas[1])
        denominator = torch.sqrt(square) / correction + self.eps
        return [param - step_size * (average / denominator), average, square]


Rule = Sgd | Adam


def rules_of(
    optimizer: torch.optim.Optimizer, parameters: Mapping[str, Tensor], *, is_scheduled: bool = False
) -> dict[str, Rule]:
    """The update of every parameter that an optimizer trains, by name.

    Args:
        optimizer: The optimizer.
        parameters: The model's parameters by name.
        is_scheduled: Learning rates are inputs, other ones in every step.

    Raises:
        ImportModelError: The optimizer is of another class, has an option that is not supported, or holds a tensor that
            is no parameter of the model.
    """
    names = {id(tensor): name for name, tensor in parameters.items()}
    rules: dict[str, Rule] = {}
    for group, rate in zip(optimizer.param_groups, rate_names(optimizer), strict=True):
        rule = _rule(optimizer, group)
        if is_scheduled:
            rule = dataclasses.replace(rule, lr=rate)
        for tensor in cast("list[Tensor]", group["params"]):
            if id(tensor) not in names:
                raise ImportModelError(
                    f"the optimizer holds a tensor of shape {list(tensor.shape)} that is no parameter of the model; "
                    "make it from the parameters of the module that build() returns"
                )
            rules[names[id(tensor)]] = rule
    return {name: rules[name] for name in parameters if name in rules}


def _rule(optimizer: torch.optim.Optimizer, group: Mapping[str, Any]) -> Rule:
    kind = type(optimizer)
    options = {key: value for key, value in group.items() if key not in _IGNORED}

    def take(key: str) -> float:
        value = options.pop(key)
        if isinstance(value, Tensor):
            value = value.item()
        return float(value)

    if kind is torch.optim.SGD:
        rule: Rule = Sgd(
            take("lr"), take("momentum"), take("dampening"), take("weight_decay"), bool(options.pop("nesterov"))
        )
    elif kind in (torch.optim.Adam, torch.optim.AdamW):
        first, second = options.pop("betas")
        decoupled = kind is torch.optim.AdamW or bool(group.get("decoupled_weight_decay"))
        rule = Adam(take("lr"), (float(first), float(second)), take("eps"), take("weight_decay"), decoupled)
    else:
        raise ImportModelError(
            f"expected an optimizer of the class SGD, Adam or AdamW of torch.optim but got {kind.__qualname__}"
        )
    for key, value in options.items():
        if value not in (False, None):
            raise ImportModelError(f"{kind.__qualname__} with {key}={value} cannot be imported; leave that option out")
    return rule


def initial_state(optimizer: torch.optim.Optimizer, parameter: Tensor, rule: Rule) -> dict[str, Tensor]:
    """The state of one parameter as the optimizer holds it, and zeros where it has made none yet."""
    held = cast("Mapping[str, Any]", optimizer.state.get(parameter, {}))
    values: dict[str, Tensor] = {}
    for key in rule.state:
        found = held.get(key)
        values[key] = found if isinstance(found, Tensor) else torch.zeros_like(parameter, requires_grad=False)
    return values


def initial_step(optimizer: torch.optim.Optimizer) -> Tensor:
    """How many steps the optimizer has done."""
    steps = {float(entry["step"]) for entry in optimizer.state.values() if "step" in entry}
    if len(steps) > 1:
        raise ImportModelError("the optimizer's parameters have done different numbers of steps; begin with a new one")
    return torch.tensor(steps.pop() if steps else 0.0, dtype=torch.float32)


def named_optimizer_state(optimizer: torch.optim.Optimizer, parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The optimizer's state by the names that it has in the program."""
    rules = rules_of(optimizer, parameters)
    named: dict[str, Tensor] = {}
    if any(rule.needs_step for rule in rules.values()):
        named[STEP] = initial_step(optimizer)
    for name, rule in rules.items():
        held = initial_state(optimizer, parameters[name], rule)
        named |= {f"{name}.{key}": value for key, value in held.items()}
    return named


def add_squares(given: Sequence[Tensor]) -> Tensor:
    """The first, and the sum of the squares of all elements of the others."""
    total, *gradients = given
    for gradient in gradients:
        total = total + (gradient * gradient).sum()
    return total


def clip_factor(max_norm: float) -> Callable[[Tensor], Tensor]:
    """What gradients are multiplied with, as ``torch.nn.utils.clip_grad_norm_`` does, from the sum of their squares."""
    return lambda total: torch.clamp(max_norm / (torch.sqrt(total) + 1e-6), max=1.0)
