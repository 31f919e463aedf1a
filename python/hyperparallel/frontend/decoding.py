# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generation: one step of a language model whose caches are state of the program.

``build()`` of a model file returns a ``Decoding`` behind the model and its inputs. The buffers that it calls caches may be
written in place; they become arguments of the role ``cache``, and what the step leaves in them is their next value
(``hp.updates``). Inputs that are carried take the value of the result of the same name, so that a step that says the next
token and its position can be repeated as it is.
"""

from __future__ import annotations

import copy
import dataclasses
import fnmatch
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from hyperparallel.errors import ImportModelError
from hyperparallel.frontend.signature import bind_call, name_inputs, name_results
from hyperparallel.frontend.threads import fitting_threads


@dataclasses.dataclass(frozen=True, slots=True)
class Decoding:
    """What a step keeps for the next one.

    Attributes:
        caches: The buffers that the step writes in place, by name or as globs such as ``cache.*``.
        carried: Inputs whose next value the step returns as a result of the same name.
    """

    caches: tuple[str, ...] = ("cache.*",)
    carried: tuple[str, ...] = ()

    def written(self, buffers: Sequence[str]) -> frozenset[str]:
        """The buffers that may be written.

        Args:
            buffers: The names of all.

        Raises:
            ImportModelError: An entry of ``caches`` matches none.
        """
        found: set[str] = set()
        for pattern in self.caches:
            matched = fnmatch.filter(buffers, pattern)
            if not matched:
                raise ImportModelError(f"cache {pattern!r} matches no buffer of the model; register it as a buffer")
            found.update(matched)
        return frozenset(found)


class GreedyDecoder(torch.nn.Module):
    """A causal language model of ``transformers`` with a static cache, as a step that says the next token.

    ``forward(token [B, S], position [])`` takes S tokens that begin at ``position``, puts their keys and values into the
    cache, and returns ``logits`` of the last of them [B, V], the likeliest next ``token`` [B, 1] and the next ``position``.
    With S = 1 it is a step of decoding; with more, of prefill.
    """

    def __init__(self, model: torch.nn.Module, batch: int, length: int) -> None:
        """Make caches for ``batch`` sequences of up to ``length`` tokens."""
        super().__init__()
        self.model = model
        self.length = length
        config: Any = model.config
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        dtype = next(model.parameters()).dtype
        self.cache = torch.nn.ModuleList(
            _KeysAndValues((batch, heads, length, width), dtype) for _ in range(config.num_hidden_layers)
        )
        parameters = inspect.signature(model.forward).parameters
        self.keyword = "cache" if "cache" in parameters else "past_key_values"

    def forward(self, token: torch.Tensor, position: torch.Tensor) -> dict[str, torch.Tensor]:
        """Take tokens, say the next one."""
        from transformers import StaticCache

        config: Any = self.model.config
        cache: Any = StaticCache(config=config, max_cache_len=self.length)
        for layer, held in zip(cache.layers, self.cache, strict=True):
            layer.keys, layer.values = held.keys, held.values
            layer.device, layer.dtype = held.keys.device, held.keys.dtype
            layer.cumulative_length = position.clone()
            layer.is_initialized = True
        output = self.model(token, **{self.keyword: cache}, use_cache=True, logits_to_keep=1)
        logits = output.logits[:, -1]
        return {
            "logits": logits,
            "token": logits.argmax(-1, keepdim=True),
            "position": position + token.shape[1],
        }


class _KeysAndValues(torch.nn.Module):
    """The cache of one layer: keys and values [B, heads, length, width]."""

    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self, shape: Sequence[int], dtype: torch.dtype) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(shape, dtype=dtype))
        self.register_buffer("values", torch.zeros(shape, dtype=dtype))


def decode(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], decoding: Decoding, steps: int
) -> dict[str, torch.Tensor]:
    """The same steps in PyTorch alone, on one device: what a compiled step is compared with.

    Args:
        module: The module; it is not changed.
        args: Positional arguments of its ``forward`` in the first step.
        kwargs: Keyword arguments.
        decoding: What is kept from step to step.
        steps: How many.

    Returns:
        The results of the last step, and the caches after it, by name.
    """
    module = copy.deepcopy(module)
    buffers = dict(module.named_buffers())
    call = bind_call(module, args, kwargs)
    tensors = name_inputs(call, [name for name, _ in module.named_parameters()] + list(buffers))
    results: dict[str, torch.Tensor] = {}
    with torch.no_grad(), fitting_threads(module):
        for _ in range(steps):
            step_args, step_kwargs = call.with_tensors(list(tensors.values()))
            results = dict(name_results(module(*step_args, **step_kwargs)))
            tensors = {name: results[name] if name in decoding.carried else value for name, value in tensors.items()}
    return results | {name: buffers[name] for name in sorted(decoding.written(list(buffers)))}


__all__ = ["Decoding", "GreedyDecoder", "decode"]
