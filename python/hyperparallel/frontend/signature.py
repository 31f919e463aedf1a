# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names for the tensors that go into a module's ``forward`` and come out of it.

A tensor inside lists, tuples and dicts is named by the way to it: ``past.0.key``. The names are what a user sees of an
imported program's inputs and results.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import torch

from hyperparallel.errors import ImportModelError

_PLAIN = (bool, int, float, str, torch.dtype, torch.device)


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """The arguments of one call of ``forward``.

    Attributes:
        args: Positional arguments.
        kwargs: Keyword arguments.
        tensors: The distinct tensors among them by name; a tensor that is passed twice has its first name.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tensors: dict[str, torch.Tensor]

    def with_tensors(self, tensors: Sequence[torch.Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with other tensors in the place of ``self.tensors``, in order."""
        place = {id(old): new for old, new in zip(self.tensors.values(), tensors, strict=True)}
        args = tuple(_replace(value, lambda tensor: place[id(tensor)]) for value in self.args)
        return args, {key: _replace(value, lambda tensor: place[id(tensor)]) for key, value in self.kwargs.items()}


def bind_call(module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call:
    """Name the tensors among the arguments by the parameters of ``module.forward``.

    Raises:
        ImportModelError: The arguments do not fit, or one is neither tensor nor plain value.
    """
    try:
        bound = inspect.signature(module.forward).bind(*args, **kwargs)
    except TypeError as error:
        raise ImportModelError(f"the example arguments do not fit {type(module).__name__}.forward: {error}") from error
    tensors: dict[str, torch.Tensor] = {}
    seen: set[int] = set()
    for name, value in bound.arguments.items():
        is_rest = bound.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD
        for path, leaf in _leaves("" if is_rest else name, value):
            if isinstance(leaf, torch.Tensor):
                if id(leaf) not in seen:
                    seen.add(id(leaf))
                    tensors[path] = leaf
            elif leaf is not None and not isinstance(leaf, _PLAIN):
                raise ImportModelError(
                    f"argument {path} is a {type(leaf).__name__}; "
                    "expected tensors, plain values, or lists, tuples and dicts of these"
                )
    return Call(tuple(args), dict(kwargs), tensors)


def name_inputs(call: Call, taken: Collection[str]) -> dict[str, torch.Tensor]:
    """Return the tensors of a call by the names that they have in the program.

    Args:
        call: The arguments.
        taken: Names of parameters and buffers; an input of such a name is called ``input.NAME``.
    """
    return {f"input.{name}" if name in taken else name: tensor for name, tensor in call.tensors.items()}


def name_results(result: Any) -> list[tuple[str, torch.Tensor]]:
    """Name the tensors of a result by their keys; a lone tensor is called ``output``.

    Raises:
        ImportModelError: There is no tensor in it, or something else than tensors.
    """
    named: list[tuple[str, torch.Tensor]] = []
    is_sequence = isinstance(result, list | tuple) and not hasattr(result, "_fields")
    for path, leaf in _leaves("output" if is_sequence else "", result):
        if isinstance(leaf, torch.Tensor):
            named.append((path or "output", leaf))
        elif leaf is not None:
            hint = "; pass use_cache=False to the model's configuration" if "Cache" in type(leaf).__name__ else ""
            raise ImportModelError(f"result {path or 'output'} is a {type(leaf).__name__}; expected tensors{hint}")
    if not named:
        raise ImportModelError("the model returns no tensor")
    return named


def _entries(value: Any) -> Iterator[tuple[str, Any]] | None:
    """Return the named parts of a container, or None for anything else."""
    if isinstance(value, Mapping):
        return iter([(str(key), entry) for key, entry in value.items()])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        fields: tuple[str, ...] = getattr(value, "_fields", ())
        return iter([(key, getattr(value, key)) for key in fields])
    if isinstance(value, list | tuple):
        return iter([(str(index), entry) for index, entry in enumerate(value)])
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return iter([(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)])
    return None


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    entries = _entries(value)
    if entries is None:
        yield path, value
        return
    for key, entry in entries:
        yield from _leaves(f"{path}.{key}" if path else key, entry)


def _replace(value: Any, replace: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Rebuild nested arguments around other tensors."""
    if isinstance(value, torch.Tensor):
        return replace(value)
    entries = _entries(value)
    if entries is None:
        return value
    parts = {key: _replace(entry, replace) for key, entry in entries}
    if isinstance(value, Mapping):
        return dict(zip(value, parts.values(), strict=True))
    if isinstance(value, list):
        return list(parts.values())
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(parts.values())
    return type(value)(**parts)
