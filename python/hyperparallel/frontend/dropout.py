# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dropout that draws the same numbers wherever it runs: in PyTorch, on one device, and split over any number of them.

Which elements are kept is a function of a counter and of the element's place in the whole tensor, so that each device
makes the part of the mask that it needs, and a backward pass that is computed again makes the same one.

- Every module that drops something has a counter, a buffer (``dropout_counter``, one ``int64``): the number of the next random
  number of its own stream. A draw for n elements takes n of them, and adds n. As any buffer that forward changes, it is
  state of the training: it goes from microbatch to microbatch and is saved and resumed.
- Random number i is ``squares32(i, key)`` (B. Widynski, Squares: A Fast Counter-Based RNG, 2020, arXiv:2004.06278): four
  rounds of a product and a rotation, in 64-bit integers. The key is made of the training's seed, as the paper says: of
  hexadecimal digits that all differ in each half.
- Streams of different modules are 2^44 numbers apart.

What is traced and what ``--check`` compares with run the same calls of torch, under :class:`CountedDropout`. Covered are
``torch.nn.Dropout``, ``torch.nn.functional.dropout`` and ``scaled_dot_product_attention(dropout_p=...)`` in modules; other
random operators are refused.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

COUNTER = "dropout_counter"
"""The buffer of a module that drops something."""

_STREAM = 1 << 44
_LOW = (1 << 32) - 1

functional = torch.nn.functional


def make_key(seed: int) -> int:
    """The key of a seed, as a signed number of 64 bits."""
    generator = random.Random(seed)
    digits = [*generator.sample(range(1, 16), 8), *generator.sample(range(1, 16), 8)]
    last = next(index for index in range(15, 7, -1) if digits[index] % 2 == 1)
    digits[last], digits[15] = digits[15], digits[last]
    key = int("".join(f"{digit:x}" for digit in digits), 16)
    return key - (1 << 64) if key >= 1 << 63 else key


def squares32(counter: Tensor, key: int) -> Tensor:
    """The random numbers of counters, between 0 and 2^32 - 1; both ``int64``."""

    def turned(x: Tensor) -> Tensor:
        return ((x >> 32) & _LOW) | (x << 32)

    y = counter * key
    z = y + key
    x = turned(y * y + y)
    x = turned(x * x + z)
    x = turned(x * x + y)
    return ((x * x + z) >> 32) & _LOW


def kept(counter: Tensor, shape: Sequence[int], p: float, key: int) -> Tensor:
    """Which elements of a tensor are kept.

    Args:
        counter: The number of the first element's random number; a scalar.
        shape: The shape of the whole tensor.
        p: The probability that an element is dropped.
        key: The key of the stream.

    Returns:
        Booleans of the shape.
    """
    place, stride = counter, 1
    for dim in reversed(range(len(shape))):
        if shape[dim] > 1:
            along = torch.arange(shape[dim]) * stride
            place = place + along.view(shape[dim], *([1] * (len(shape) - dim - 1)))
        stride *= shape[dim]
    return (squares32(place, key) >= round(p * (1 << 32))).expand(list(shape))


class CountedDropout(TorchFunctionMode):
    """While it is active, modules that have a counter drop by it.

    Args:
        seed: The seed of the training.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.key = make_key(seed)
        self._running: list[torch.nn.Module] = []
        self._hooks: list[Any] = []

    def __enter__(self) -> CountedDropout:
        hooks = torch.nn.modules.module
        self._hooks = [
            hooks.register_module_forward_pre_hook(lambda module, _args: self._running.append(module)),
            hooks.register_module_forward_hook(lambda _module, _args, _output: self._leave(), always_call=True),
        ]
        super().__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        for hook in self._hooks:
            hook.remove()

    def _leave(self) -> None:
        self._running.pop()

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is functional.dropout or func is torch.dropout:
            x, p, training = _dropout_arguments(*args, **kwargs)
            if training and p > 0:
                dropped = self.drop(x, p)
                if dropped is not None:
                    return dropped
        elif func is functional.scaled_dot_product_attention:
            attended = _attention(self, *args, **kwargs)
            if attended is not None:
                return attended
        return func(*args, **kwargs)

    def drop(self, x: Tensor, p: float) -> Tensor | None:
        """``x`` without what is dropped; None if the running module has no counter."""
        module = self._running[-1] if self._running else None
        counter = getattr(module, COUNTER, None)
        if not isinstance(counter, Tensor):
            return None
        zero = torch.zeros([], dtype=x.dtype)
        if p >= 1:
            return x * zero
        keep = kept(counter.clone(), x.shape, p, self.key)
        counter.add_(x.numel())
        return torch.where(keep, x * (1 / (1 - p)), zero)


def _dropout_arguments(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, *, train: bool = True
) -> tuple[Tensor, float, bool]:
    return input, p, training and train and not inplace


def _attention(
    mode: CountedDropout,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor | None:
    """Attention with dropout, spelled out as torch documents it; None where it has none."""
    if dropout_p <= 0:
        return None
    if enable_gqa:
        groups = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
    scores = (query @ key.transpose(-2, -1)) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    weights = mode.drop(scores.softmax(-1), dropout_p)
    return None if weights is None else weights @ value


class _Sites(CountedDropout):
    """Notes the modules that drop something, and drops nothing."""

    def __init__(self) -> None:
        super().__init__(0)
        self.found: dict[int, torch.nn.Module] = {}

    def drop(self, x: Tensor, p: float) -> Tensor:
        if self._running:
            self.found.setdefault(id(self._running[-1]), self._running[-1])
        return x


def give_counters(module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Give every module that drops something a counter, unless it has one.

    Args:
        module: The model; nothing is computed.
        args: Example positional arguments of its ``forward``.
        kwargs: Example keyword arguments.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    from hyperparallel.frontend.signature import bind_call, name_inputs
    from hyperparallel.frontend.tracing import ModuleStack, fake_twin, named_state, tracing_state

    if not any(child.training for child in module.modules()):
        return
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    state = {entry.name: fake_twin(entry.tensor, mode) for entry in named_state(module)}
    call = bind_call(module, args, kwargs)
    inputs = [fake_twin(tensor, mode) for tensor in name_inputs(call, set(state)).values()]
    sites = _Sites()
    call_args, call_kwargs = call.with_tensors(inputs)
    # What fails here fails in the trace as well, which knows what to say.
    with contextlib.suppress(Exception), tracing_state(ModuleStack({}, frozenset(), None)), mode, sites:
        torch.func.functional_call(module, state, call_args, call_kwargs, tie_weights=True)
    for number, child in enumerate(sites.found.values()):
        if not hasattr(child, COUNTER):
            child.register_buffer(COUNTER, torch.tensor(number * _STREAM), persistent=False)


__all__ = ["COUNTER", "CountedDropout", "give_counters", "kept", "make_key", "squares32"]
