# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models as the command line takes them: a model file, or the directory of an imported model.

Importing a model file is remembered (``frontend/import_cache.py``).
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from hyperparallel.cli.console import Talk
from hyperparallel.enums import Role
from hyperparallel.errors import ImportModelError, PlanError, RuntimeFailure
from hyperparallel.frontend.artifact import WEIGHTS_FILE, ImportedModel

if TYPE_CHECKING:
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
    from hyperparallel.frontend.import_cache import Memory, remembered_imports

    with contextlib.ExitStack() as stack:
        memory: Memory | None = None
        if use_cache:
            written = repr(sorted(overrides.items(), key=lambda item: item[0]))
            memory = stack.enter_context(remembered_imports(path.name, written))
        model = _open_file(path, overrides, talk, flat, microbatches, blocks)
        was_cached = memory is not None and memory.found > 0 and memory.made == 0
        return dataclasses.replace(model, was_cached=was_cached)


def _open_file(
    path: Path,
    overrides: Mapping[str, Any],
    talk: Talk,
    flat: bool,
    microbatches: int | None,
    blocks: Sequence[str],
) -> Model:
    """Run a model file, and import what it builds, if it has not done so itself."""
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
        imported = _import(loaded, talk, None if flat else _block_paths(loaded, blocks))
    finally:
        talk.end()
    return Model(imported, example_inputs(loaded), source, loaded)


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
    from hyperparallel.frontend.threads import fitting_threads

    loaded = rebuild(model)
    with torch.no_grad(), fitting_threads(loaded.module):
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
