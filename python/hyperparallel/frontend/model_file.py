# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Model files: a Python file that builds a model and example inputs for it.

The contract: the file defines a function

    def build(**overrides): ...
        return module, example_args            # or
        return module, example_args, example_kwargs

with keyword parameters that all have defaults. ``module`` is a ``torch.nn.Module``, ``example_args`` a tuple and
``example_kwargs`` a dict for its ``forward``. A last entry of the class ``Training`` (``frontend/training_step.py``) says
how the model is trained: the program is a training step then; one of the class ``Decoding`` (``frontend/decoding.py``),
what a step of generation keeps for the next. A ``Composed`` (``frontend/composed.py``) in the place of all
of them is several programs wired into one. Equal overrides must give equal weights and inputs (fix the seeds): the
product builds a model once to import it and again to check a run against PyTorch. The files in ``examples/`` follow it.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import os
import sys
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hyperparallel.errors import ImportModelError, MissingDependencyError
from hyperparallel.frontend.composed import Composed

if TYPE_CHECKING:
    import torch

    from hyperparallel.frontend.decoding import Decoding
    from hyperparallel.frontend.training_step import Training

_CONTRACT = (
    "(module, example_args) or (module, example_args, example_kwargs), and a Training behind them to train it, or a "
    "Decoding to generate with it"
)
_INSTALL = {
    "torch": "pip install 'hyperparallel[torch]'",
    "transformers": "pip install 'hyperparallel[torch]'",
}


@dataclasses.dataclass(frozen=True, slots=True)
class LoadedModel:
    """What a model file built.

    Attributes:
        name: The file's name without its ending.
        module: The model.
        args: Example positional arguments.
        kwargs: Example keyword arguments.
        training: How it is trained, if it is.
        decoding: What a step keeps for the next, if it is one of generation.
    """

    name: str
    module: torch.nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    training: Training | None = None
    decoding: Decoding | None = None


def parse_overrides(entries: Iterable[str]) -> dict[str, Any]:
    """Turn ``key=value`` words into keyword arguments; a value is a Python literal, or else a string.

    Raises:
        ImportModelError: An entry is not of that form.

    Example:
        >>> parse_overrides(["layers=2", "activation=gelu", "scale=0.5"])
        {'layers': 2, 'activation': 'gelu', 'scale': 0.5}
    """
    overrides: dict[str, Any] = {}
    for entry in entries:
        key, equals, text = entry.partition("=")
        if not equals or not key.isidentifier():
            raise ImportModelError(f"expected a model argument of the form key=value but got {entry!r}")
        try:
            overrides[key] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            overrides[key] = text
    return overrides


def load_model_file(path: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None) -> LoadedModel:
    """Run the ``build`` function of a model file that builds one module.

    Raises:
        ImportModelError: As ``run_model_file``, or the file composes programs.
        MissingDependencyError: The file needs a package that is not installed.
    """
    built = run_model_file(path, overrides)
    if isinstance(built, Composed):
        raise ImportModelError(f"build() of {path} returned a Composed; expected {_CONTRACT}")
    return built


def run_model_file(path: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None) -> LoadedModel | Composed:
    """Run the ``build`` function of a model file.

    Args:
        path: The file.
        overrides: Keyword arguments for ``build``.

    Returns:
        What it built.

    Raises:
        ImportModelError: The file is missing, is not Python, has no ``build``, or ``build`` fails or returns something
            else.
        MissingDependencyError: The file needs a package that is not installed.
    """
    file = Path(path)
    build = _find_build(_execute(file), file)
    _check_overrides(build, overrides or {}, file)
    try:
        built = build(**(overrides or {}))
    except ModuleNotFoundError as error:
        raise _missing(error, file) from error
    except (Exception, SystemExit) as error:
        raise ImportModelError(f"build() failed in {_place(error, file)}: {_spell(error)}") from error
    return _check_built(built, file)


def _execute(file: Path) -> ModuleType:
    if not file.exists():
        raise ImportModelError(f"model file {file} does not exist")
    if not file.is_file():
        raise ImportModelError(f"model file {file} is a directory; expected a Python file that defines build()")
    try:
        source = file.read_bytes()
        code = compile(source, str(file), "exec")
    except OSError as error:
        raise ImportModelError(f"cannot read model file {file}: {error.strerror or error}") from error
    except SyntaxError as error:
        raise ImportModelError(f"model file {file} is not Python: line {error.lineno or 1}: {error.msg}") from error
    except ValueError as error:
        raise ImportModelError(f"model file {file} is not Python: {error}") from error
    module = ModuleType(f"hyperparallel_model_{file.stem}")
    module.__file__ = str(file)
    directory = str(file.resolve().parent)
    if directory not in sys.path:
        sys.path.append(directory)
    sys.modules[module.__name__] = module
    try:
        exec(code, module.__dict__)
    except ModuleNotFoundError as error:
        raise _missing(error, file) from error
    except (Exception, SystemExit) as error:
        raise ImportModelError(f"model file {_place(error, file)} failed: {_spell(error)}") from error
    return module


def _find_build(module: ModuleType, file: Path) -> Any:
    build = getattr(module, "build", None)
    if not callable(build):
        raise ImportModelError(f"model file {file} defines no function build(); it must return {_CONTRACT}")
    return build


def _check_overrides(build: Any, overrides: Mapping[str, Any], file: Path) -> None:
    parameters = inspect.signature(build).parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for key in overrides:
        if key not in parameters:
            known = ", ".join(parameters) or "none"
            raise ImportModelError(f"build() of {file} has no argument {key}; it has: {known}")


def _check_built(built: Any, file: Path) -> LoadedModel | Composed:
    if isinstance(built, Composed):
        return built
    import torch

    from hyperparallel.frontend.decoding import Decoding
    from hyperparallel.frontend.training_step import Training

    training: Training | None = None
    decoding: Decoding | None = None
    if isinstance(built, tuple) and built:
        if isinstance(built[-1], Training):
            training, built = built[-1], built[:-1]
        elif isinstance(built[-1], Decoding):
            decoding, built = built[-1], built[:-1]
    if not isinstance(built, tuple) or len(built) not in (2, 3):
        raise ImportModelError(f"build() of {file} returned a {type(built).__name__}; expected {_CONTRACT}")
    module, args = built[0], built[1]
    kwargs = built[2] if len(built) == 3 else {}
    for value, type_, what in (
        (module, torch.nn.Module, "module"),
        (args, (tuple, list), "example_args"),
        (kwargs, dict, "example_kwargs"),
    ):
        if not isinstance(value, type_):
            raise ImportModelError(f"build() of {file} returned a {type(value).__name__} as its {what}")
    return LoadedModel(file.stem, module, tuple(args), dict(kwargs), training, decoding)


def _missing(error: ModuleNotFoundError, file: Path) -> MissingDependencyError:
    package = (error.name or str(error)).partition(".")[0]
    return MissingDependencyError(
        package, needed_for=f"model file {file}", install=_INSTALL.get(package, f"pip install {package}")
    )


def _place(error: BaseException, file: Path) -> str:
    """Return the file with the line in it that was running."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return f"{file}:{lines[-1]}" if lines else str(file)


def _spell(error: BaseException) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
