# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Earlier imports of the same models.

A program depends on a model's structure, never on the values of its weights, so it is kept under a key of everything that
the structure comes from: local source files, the versions of the packages, every submodule's class and plain attributes,
shapes, and for a training the loss and the rules of the optimizer. Weights are taken from the module at hand.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import sys
import sysconfig
from collections.abc import Callable, Generator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hyperparallel.cache import cache_directory
from hyperparallel.enums import Role
from hyperparallel.errors import ImportModelError
from hyperparallel.frontend.artifact import ImportedModel

if TYPE_CHECKING:
    import torch

    from hyperparallel.frontend.decoding import Decoding
    from hyperparallel.frontend.training_step import Training


@dataclasses.dataclass(frozen=True, slots=True)
class Subject:
    """What is imported; the arguments of ``import_model`` and ``import_training``."""

    module: torch.nn.Module
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    name: str | None
    block_paths: Any
    training: Training | None = None
    decoding: Decoding | None = None

    @property
    def state(self) -> list[tuple[str, torch.Tensor]]:
        """Parameters and buffers, by all their names."""
        module = self.module
        return [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]


@dataclasses.dataclass(slots=True)
class Memory:
    """Imports that are remembered.

    Attributes:
        origin: What else they come from, such as the words of a command line.
        found: How many were there.
        made: How many were not.
    """

    origin: tuple[str, ...] = ()
    found: int = 0
    made: int = 0

    def get(self, subject: Subject, make: Callable[[], ImportedModel]) -> ImportedModel:
        """The import of a subject: an earlier one, or the one that ``make`` makes, which is kept."""
        key = _key(subject, self.origin)
        known = _find(key, subject)
        if known is not None:
            self.found += 1
            return known
        self.made += 1
        imported = make()
        with contextlib.suppress(OSError, ImportModelError):
            dataclasses.replace(imported, has_weights=False, _read_weight=None).save(_directory() / key)
        return imported


_current: ContextVar[Memory | None] = ContextVar("hyperparallel_imports", default=None)


def current_memory() -> Memory | None:
    """What remembers imports here; None if nothing does."""
    return _current.get()


@contextlib.contextmanager
def remembered_imports(*origin: str) -> Generator[Memory]:
    """Inside, imports are looked up among earlier ones, and kept.

    Args:
        *origin: What they come from beside modules and source files.
    """
    memory = Memory(origin)
    token = _current.set(memory)
    try:
        yield memory
    finally:
        _current.reset(token)


def _directory() -> Path:
    return cache_directory() / "imports"


def _find(key: str, subject: Subject) -> ImportedModel | None:
    """An earlier import of the same structure, with the weights of the module at hand."""
    from hyperparallel.frontend.torch import as_array, has_storage

    directory = _directory() / key
    if not directory.is_dir():
        return None
    try:
        imported = ImportedModel.load(directory)
    except ImportModelError:
        return None
    state = dict(subject.state)
    if subject.training is not None:
        from hyperparallel.frontend.optimizers import named_optimizer_state

        state |= named_optimizer_state(subject.training.optimizer, dict(subject.module.named_parameters()))
    for argument in imported.arguments:
        if argument.role is Role.INPUT:
            continue
        tensor = state.get(argument.name)
        if tensor is None or tuple(tensor.shape) != argument.shape:
            return None
        if not has_storage(tensor):
            return imported
    return dataclasses.replace(imported, has_weights=True, _read_weight=lambda name: as_array(state[name]))


def _key(subject: Subject, origin: Sequence[str]) -> str:
    """Everything that the program comes from."""
    parts: list[str] = [*origin, f"name={subject.name}", f"blocks={subject.block_paths}"]
    for package in ("torch", "torch-mlir", "transformers", "hyperparallel"):
        try:
            parts.append(f"{package}={importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            parts.append(f"{package}=absent")
    parts += sorted(f"{Path(file).name}={_hash_of(file)}" for file in _local_files())
    for name, module in subject.module.named_modules(remove_duplicate=False):
        parts.append(f"{name}: {type(module).__module__}.{type(module).__qualname__} {_plain(vars(module), 0)}")
    for name, tensor in subject.state:
        parts.append(f"{name}: {tuple(tensor.shape)} {tensor.dtype} {tensor.stride()}")
    # Tied weights are one argument.
    seen: dict[int, str] = {}
    parts += [f"{name} is {seen.setdefault(id(tensor), name)}" for name, tensor in subject.state]
    parts.append(_plain({"args": tuple(subject.args), "kwargs": dict(subject.kwargs)}, 0, values=False))
    parts.append(f"decoding: {subject.decoding}")
    if subject.training is not None:
        from hyperparallel.frontend.optimizers import rules_of

        training = subject.training
        is_scheduled = training.scheduler is not None
        rules = rules_of(training.optimizer, dict(subject.state), is_scheduled=is_scheduled)
        parts += [f"{name}: {rule}" for name, rule in rules.items()]
        described = {field.name: getattr(training, field.name) for field in dataclasses.fields(training)}
        left_out = ("optimizer", "scheduler", "batches")  # what they say is in the rules, or no part of the program
        parts.append(_plain({key: value for key, value in described.items() if key not in left_out}, 0, values=False))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _local_files() -> list[str]:
    """Source files of loaded modules that belong to no versioned package; the package's own front end among them."""
    versioned = [
        str(Path(sysconfig.get_paths()[kind]).resolve()) for kind in ("stdlib", "platstdlib", "purelib", "platlib")
    ]
    versioned += [sys.prefix, sys.base_prefix]
    import hyperparallel

    own = str(Path(hyperparallel.__file__).resolve().parent)
    files = {str(file) for file in Path(own, "frontend").glob("*.py")}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if not file or not str(file).endswith(".py"):
            continue
        if any(str(file).startswith(place + "/") for place in [*versioned, own]):
            continue
        resolved = str(Path(file).resolve())
        if not any(resolved.startswith(place + "/") for place in [*versioned, own]):
            files.add(resolved)
    return sorted(files)


def _hash_of(file: str) -> str:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return "absent"


def _plain(value: Any, depth: int, values: bool = True) -> str:
    """A value's text, without addresses.

    Of parameters, buffers and example inputs only the type counts: they are arguments of the program. The values of
    other tensors may have become part of it.
    """
    import torch

    if depth > 6:
        return type(value).__qualname__
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, torch.dtype, torch.device)):
        return repr(value)
    if isinstance(value, torch.Tensor):
        return f"tensor {tuple(value.shape)} {value.dtype} {_values_hash(value) if values else ''}"
    if isinstance(value, torch.nn.Module):
        return type(value).__qualname__
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value)
        state = ("_parameters", "_buffers")
        # transformers keeps hash() of an object in its configurations; that differs from process to process.
        kept = {str(key): item for key, item in items.items() if not str(key).endswith("_object_hash")}
        texts = [f"{key}: {_plain(item, depth + 1, values and key not in state)}" for key, item in kept.items()]
        return "{" + ", ".join(texts) + "}"
    if isinstance(value, (list, tuple, set, frozenset)):
        texts = [_plain(item, depth + 1, values) for item in cast("list[Any]", value)]
        return (
            type(value).__name__
            + "["
            + ", ".join(sorted(texts) if isinstance(value, (set, frozenset)) else texts)
            + "]"
        )
    if callable(value):
        name = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}"
        inner = [getattr(value, "__defaults__", None), *_enclosed(value)]
        return f"{name} {_plain(inner, depth + 1, values)}" if any(part is not None for part in inner) else name
    attributes = getattr(value, "__dict__", None)
    inner = _plain(attributes, depth + 1, values) if isinstance(attributes, dict) else ""
    return f"{type(value).__qualname__}{inner}"


def _enclosed(function: Any) -> list[Any]:
    """The values of the variables around a function that it uses."""
    found: list[Any] = []
    for cell in getattr(function, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # not bound yet
            found.append(cell.cell_contents)
    return found


def _values_hash(tensor: torch.Tensor) -> str:
    from hyperparallel.frontend.torch import as_array, has_storage

    if not has_storage(tensor):
        return "no values"
    return hashlib.sha256(as_array(tensor).tobytes()).hexdigest()


__all__ = ["Memory", "Subject", "current_memory", "remembered_imports"]
