# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models as the command line takes them: a model file, or the directory of an imported model.

Importing a model file is remembered: the program depends on the model's structure, never on the values of its
weights, so it is kept under a key of everything that the structure comes from (the file and the local modules it
loaded, the overrides, the versions of the packages, and every submodule's class and plain attributes), while weights
and inputs are taken from the module that the file has just built.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import json
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from hyperparallel.cli.console import Talk
from hyperparallel.enums import Role
from hyperparallel.errors import ImportModelError, PlanError, RuntimeFailure
from hyperparallel.frontend.artifact import WEIGHTS_FILE, ImportedModel

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    from hyperparallel.frontend.composed import Composed
    from hyperparallel.frontend.model_file import LoadedModel

SOURCE_FILE = "source.json"
INPUTS_FILE = "inputs.npz"


@dataclasses.dataclass(frozen=True, slots=True)
class Model:
    """A model that is at hand.

    Attributes:
        imported: The program, with access to the weights.
        inputs: Example inputs by name.
        source: ``model_file`` and ``overrides``, where they are known.
        loaded: The module, if the model file was run and built one.
        composed: What the model file composed, if it was run and did.
        weights_file: The saved weights, if there are any.
        was_cached: The program was taken from an earlier import.
    """

    imported: ImportedModel
    inputs: Mapping[str, NDArray[Any]]
    source: Mapping[str, Any]
    loaded: LoadedModel | None = None
    weights_file: Path | None = None
    was_cached: bool = False
    composed: Composed | None = None


def open_model(
    path: Path,
    overrides: Mapping[str, Any],
    talk: Talk,
    *,
    use_cache: bool = True,
    flat: bool = False,
    microbatches: int | None = None,
    blocks: Sequence[str] = (),
) -> Model:
    """Open a model file or an imported model.

    Args:
        path: A Python file with ``build()``, or a directory that ``hp import`` made.
        overrides: Keyword arguments of ``build()``.
        talk: Told about the steps.
        use_cache: Look for an earlier import of the same model, and remember this one.
        flat: One function, no blocks.
        microbatches: In how many parts a training step takes its batch; as the model file says if None.
        blocks: Modules that become functions of their own, too, so that they can be on devices of their own: patterns
            of which those count that are a module's path.

    Raises:
        ImportModelError: If there is no such model, or it is damaged or cannot be imported.
        PlanError: If the model is not trained, or was imported for another number of microbatches.
    """
    if path.is_dir():
        if overrides:
            raise ImportModelError(
                f"{path} is an imported model; --model-arg is for model files, import it again with them"
            )
        model = _open_directory(path)
        if microbatches not in (None, model.imported.microbatches):
            raise PlanError(
                f"the plan takes the batch in {microbatches} microbatches but {path} was imported for "
                f"{model.imported.microbatches}; give the model file, or import it with that number"
            )
        return model
    if not path.exists():
        raise ImportModelError(
            f"there is no model at {path}; expected a Python file with build(), or a directory that hp import made"
        )
    if path.suffix == ".mlir":
        raise ImportModelError(
            f"{path} is MLIR text; expected the directory of an imported model, {path.parent}, or a model file"
        )
    from hyperparallel.frontend.composed import Composed
    from hyperparallel.frontend.model_file import run_model_file

    source: dict[str, Any] = {"model_file": str(path.resolve()), "overrides": dict(overrides)}
    with talk.step("build"):
        loaded = run_model_file(path, overrides)
    if microbatches is not None:
        loaded = _in_microbatches(loaded, microbatches, path)
        source["microbatches"] = microbatches
    if not isinstance(loaded, Composed) and loaded.training is not None:
        source["fed"] = sorted(first_values(loaded))
    if isinstance(loaded, Composed):
        return Model(loaded.model, loaded.inputs, {**source, "composed": True}, composed=loaded)
    talk.begin("import")
    try:
        chosen = None if flat else _block_paths(loaded, blocks)
        key = _key(path, overrides, loaded, flat, chosen)
        cached = _from_cache(key, loaded) if use_cache else None
        if cached is None:
            imported = _import(loaded, talk, chosen)
            if use_cache:
                _to_cache(key, imported)
        else:
            imported = cached
    finally:
        talk.end()
    return Model(imported, example_inputs(loaded), source, loaded, was_cached=cached is not None)


def _in_microbatches(loaded: LoadedModel | Composed, microbatches: int, path: Path) -> LoadedModel:
    """The same model, whose step takes its batch in so many parts."""
    from hyperparallel.frontend.composed import Composed

    if isinstance(loaded, Composed) or loaded.training is None:
        raise PlanError(
            f"the plan takes the batch in {microbatches} microbatches but {path} is no training step; leave the number out"
        )
    return dataclasses.replace(loaded, training=dataclasses.replace(loaded.training, microbatches=microbatches))


def _block_paths(loaded: LoadedModel, named: Sequence[str]) -> Literal["auto"] | list[str]:
    """Repeated modules, and those that are named and neither in one of them nor around one."""
    from hyperparallel.frontend.torch import find_blocks

    found = find_blocks(loaded.module, "auto")
    added = [
        path
        for path, _ in loaded.module.named_modules()
        if path in named
        and not any(
            path == block or f"{path}.".startswith(f"{block}.") or block.startswith(f"{path}.") for block in found
        )
    ]
    return ["auto", *added] if added else "auto"


def _import(loaded: LoadedModel, talk: Talk, block_paths: Literal["auto"] | list[str] | None) -> ImportedModel:
    if loaded.training is not None:
        from hyperparallel.frontend.training import import_training

        return import_training(
            loaded.module,
            loaded.args,
            loaded.kwargs,
            training=loaded.training,
            name=loaded.name,
            block_paths=block_paths,
            progress=lambda _stage, done, total: talk.advance(done, total),
        )
    from hyperparallel.frontend.torch import import_model

    return import_model(
        loaded.module,
        loaded.args,
        loaded.kwargs,
        name=loaded.name,
        block_paths=block_paths,
        decoding=loaded.decoding,
        progress=lambda _stage, done, total: talk.advance(done, total),
    )


def save_model(model: Model, directory: Path) -> None:
    """Write an imported model with its example inputs and where it came from.

    Args:
        model: The model.
        directory: An existing directory.
    """
    from hyperparallel.compiled import write_arrays

    model.imported.save(directory)
    (directory / SOURCE_FILE).write_text(json.dumps(dict(model.source), indent=1, default=str) + "\n", encoding="utf-8")
    if model.inputs:
        with (directory / INPUTS_FILE).open("wb") as file:
            write_arrays(file, model.inputs)


def _open_directory(path: Path) -> Model:
    imported = ImportedModel.load(path)
    source: dict[str, Any] = {}
    described = path / SOURCE_FILE
    if described.exists():
        try:
            source = dict(json.loads(described.read_text(encoding="utf-8")))
        except (ValueError, OSError, TypeError) as error:
            raise ImportModelError(f"{described} is damaged ({error}); import the model again") from None
    inputs = read_inputs(path / INPUTS_FILE) if (path / INPUTS_FILE).exists() else {}
    weights = path / WEIGHTS_FILE if imported.has_weights else None
    return Model(imported, inputs, source, weights_file=weights)


def read_inputs(path: Path) -> dict[str, NDArray[Any]]:
    """Read inputs from a NumPy ``.npz`` file.

    Raises:
        RuntimeFailure: If there is no such file or it is damaged.
    """
    import zipfile

    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as file:
            if not hasattr(file, "files"):
                raise RuntimeFailure(f"{path} holds a lone array; expected an .npz file with one array for each input")
            return {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise RuntimeFailure(f"there is no inputs file {path}") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise RuntimeFailure(f"{path} is no inputs file: it is damaged or no .npz file ({error})") from None


# PyTorch --------------------------------------------------------------------------------------------------------------


def to_array(tensor: torch.Tensor) -> NDArray[Any]:
    """A tensor as a NumPy array; bf16 as its bits in ``uint16``."""
    import torch

    plain = tensor.detach().cpu().contiguous()
    if plain.dtype == torch.bfloat16:
        return plain.view(torch.int16).numpy().view("uint16")
    return plain.numpy()


def example_inputs(loaded: LoadedModel) -> dict[str, NDArray[Any]]:
    """The example inputs by the names that they have in the program; none for tensors without storage."""
    from torch._subclasses.fake_tensor import FakeTensor

    from hyperparallel.frontend.feeding import named_inputs

    inputs = named_inputs(loaded)
    if any(tensor.is_meta or isinstance(tensor, FakeTensor) for tensor in inputs.values()):
        return {}
    return {**{name: to_array(tensor) for name, tensor in inputs.items()}, **first_values(loaded)}


def first_values(loaded: LoadedModel) -> dict[str, NDArray[Any]]:
    """What a training is fed in its first step, of inputs that have other values in every step."""
    from hyperparallel.frontend.feeding import feed_of

    feed = feed_of(loaded)
    return {} if feed is None else feed(0)


def reference_results(model: Model) -> dict[str, NDArray[Any]]:
    """What PyTorch computes on the example inputs, by result name.

    An imported model is rebuilt from its model file and given the saved weights and inputs.

    Raises:
        ImportModelError: If the model file is not known or no longer there.
    """
    import torch

    from hyperparallel.frontend.signature import name_results

    loaded = rebuild(model)
    with torch.no_grad():
        named = name_results(loaded.module(*loaded.args, **loaded.kwargs))
    import numpy as np

    results: dict[str, NDArray[Any]] = {}
    for name, value in named:
        # Compared as numbers, and NumPy has no bf16.
        results[name] = value.float().numpy() if value.dtype == torch.bfloat16 else np.asarray(value.detach().numpy())
    return results


def recompose(model: Model) -> Composed | None:
    """What the model file of a model composes; None if it builds one module, or is not known.

    Raises:
        ImportModelError: If it is no longer there.
    """
    from hyperparallel.frontend.composed import Composed
    from hyperparallel.frontend.model_file import run_model_file

    if model.composed is not None or model.loaded is not None:
        return model.composed
    if not model.source.get("composed"):
        return None
    overrides = cast("Mapping[str, Any]", model.source.get("overrides", {}))
    built = run_model_file(Path(str(model.source["model_file"])), overrides)
    return built if isinstance(built, Composed) else None


def rebuild(model: Model) -> LoadedModel:
    """The module that was imported, with the values that the program is run with.

    Raises:
        ImportModelError: If the model file is not known or no longer there, or builds another model.
    """
    if model.loaded is not None:
        return model.loaded
    import torch

    from hyperparallel.frontend.model_file import load_model_file
    from hyperparallel.frontend.signature import bind_call, name_inputs

    file = model.source.get("model_file")
    if not file:
        raise ImportModelError(
            "comparing with PyTorch needs the model file, and this model does not say which it was; run the model file"
        )
    loaded = load_model_file(Path(str(file)), cast("Mapping[str, Any]", model.source.get("overrides", {})))
    if "microbatches" in model.source:
        loaded = _in_microbatches(loaded, int(model.source["microbatches"]), Path(str(file)))
    state = dict(_state(loaded.module))
    with torch.no_grad():
        for argument in model.imported.arguments:
            if argument.role in (Role.INPUT, Role.OPTIMIZER):
                continue
            if argument.name not in state or tuple(state[argument.name].shape) != argument.shape:
                raise ImportModelError(
                    f"the model file {file} no longer builds the model that was imported: {argument.name} differs"
                )
            state[argument.name].copy_(to_tensor(model.imported.weight(argument.name), state[argument.name].dtype))
        call = bind_call(loaded.module, loaded.args, loaded.kwargs)
        inputs = name_inputs(call, state)
        missing = [name for name in inputs if name not in model.inputs]
        if missing:
            raise ImportModelError(f"comparing with PyTorch needs a value for the input {missing[0]}")
        tensors = [to_tensor(model.inputs[name], tensor.dtype) for name, tensor in inputs.items()]
        args, kwargs = call.with_tensors(tensors)
        training = loaded.training
        if training is not None:
            targets = {name: to_tensor(model.inputs[name], kept.dtype) for name, kept in training.targets.items()}
            training = dataclasses.replace(training, targets=targets)
    return dataclasses.replace(loaded, args=args, kwargs=kwargs, training=training)


def to_tensor(array: NDArray[Any], dtype: torch.dtype) -> torch.Tensor:
    """The opposite of ``to_array``."""
    import numpy as np
    import torch

    tensor = torch.from_numpy(np.array(array))
    return tensor.view(torch.int16).view(dtype) if dtype == torch.bfloat16 else tensor.to(dtype)


def _state(module: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    return [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]


# The cache ------------------------------------------------------------------------------------------------------------


def _from_cache(key: str, loaded: LoadedModel) -> ImportedModel | None:
    """An earlier import of the same structure, with the weights of the module at hand."""
    from torch._subclasses.fake_tensor import FakeTensor

    directory = _cache_of_imports() / key
    if not directory.is_dir():
        return None
    try:
        imported = ImportedModel.load(directory)
    except ImportModelError:
        return None
    state = dict(_state(loaded.module))
    if loaded.training is not None:
        from hyperparallel.frontend.optimizers import named_optimizer_state

        state |= named_optimizer_state(loaded.training.optimizer, dict(loaded.module.named_parameters()))
    for argument in imported.arguments:
        if argument.role is Role.INPUT:
            continue
        tensor = state.get(argument.name)
        if tensor is None or tuple(tensor.shape) != argument.shape:
            return None
        if tensor.is_meta or isinstance(tensor, FakeTensor):
            return imported
    read: Callable[[str], np.ndarray[Any, Any]] = lambda name: to_array(state[name])  # noqa: E731
    return dataclasses.replace(imported, has_weights=True, _read_weight=read)


def _to_cache(key: str, imported: ImportedModel) -> None:
    import contextlib

    with contextlib.suppress(OSError, ImportModelError):
        dataclasses.replace(imported, has_weights=False, _read_weight=None).save(_cache_of_imports() / key)


def _cache_of_imports() -> Path:
    from hyperparallel.cache import cache_directory

    return cache_directory() / "imports"


def _key(path: Path, overrides: Mapping[str, Any], loaded: LoadedModel, flat: bool, block_paths: Any) -> str:
    """Everything that the program comes from."""
    parts: list[str] = [
        f"flat={flat}",
        f"blocks={block_paths}",
        path.name,
        repr(sorted(overrides.items(), key=lambda item: item[0])),
    ]
    parts.append(hashlib.sha256(path.read_bytes()).hexdigest())
    for package in ("torch", "torch-mlir", "transformers", "hyperparallel"):
        try:
            parts.append(f"{package}={importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            parts.append(f"{package}=absent")
    parts += sorted(f"{Path(file).name}={_hash_of(file)}" for file in _local_files())
    for name, module in loaded.module.named_modules(remove_duplicate=False):
        parts.append(f"{name}: {type(module).__module__}.{type(module).__qualname__} {_plain(vars(module), 0)}")
    for name, tensor in _state(loaded.module):
        parts.append(f"{name}: {tuple(tensor.shape)} {tensor.dtype} {tensor.stride()}")
    # Tied weights are one argument.
    seen: dict[int, str] = {}
    parts += [f"{name} is {seen.setdefault(id(tensor), name)}" for name, tensor in _state(loaded.module)]
    parts.append(_plain({"args": loaded.args, "kwargs": loaded.kwargs}, 0, values=False))
    parts.append(f"decoding: {loaded.decoding}")
    if loaded.training is not None:
        from hyperparallel.frontend.optimizers import rules_of

        training = loaded.training
        is_scheduled = training.scheduler is not None
        rules = rules_of(training.optimizer, dict(_state(loaded.module)), is_scheduled=is_scheduled)
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
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    attributes = getattr(value, "__dict__", None)
    inner = _plain(attributes, depth + 1, values) if isinstance(attributes, dict) else ""
    return f"{type(value).__qualname__}{inner}"


def _values_hash(tensor: torch.Tensor) -> str:
    from torch._subclasses.fake_tensor import FakeTensor

    if tensor.is_meta or isinstance(tensor, FakeTensor):
        return "no values"
    return hashlib.sha256(to_array(tensor).tobytes()).hexdigest()
