# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared by the import tests: every example, imported once, and the comparison with PyTorch."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import upstream_run

from hyperparallel.frontend.artifact import ImportedModel
from hyperparallel.frontend.model_file import LoadedModel, load_model_file
from hyperparallel.frontend.torch import import_model

EXAMPLES = Path(__file__).parents[3] / "examples"

SMALL: dict[str, dict[str, int]] = {
    "gpt2": {"layers": 2, "width": 32, "heads": 4, "vocab": 96, "positions": 32, "batch": 2, "seq": 12},
    "llama": {"layers": 2, "width": 32, "ff": 56, "heads": 4, "kv_heads": 2, "vocab": 96, "batch": 2, "seq": 12},
    "bert": {"layers": 2, "width": 32, "ff": 48, "heads": 4, "vocab": 96, "batch": 2, "seq": 12},
    "vit": {"layers": 2, "width": 32, "ff": 48, "heads": 4, "image": 24, "patch": 8, "batch": 2},
    "mlp": {"layers": 3, "features": 6, "width": 16, "hidden": 24, "classes": 5, "batch": 4},
    "convnet": {"layers": 2, "channels": 4, "classes": 5, "image": 16, "batch": 2},
}

_NUMPY = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "i64": "int64",
    "i32": "int32",
    "ui8": "uint8",
    "i1": "bool",
}


@functools.cache
def example(name: str) -> LoadedModel:
    """Build an example at its small configuration."""
    return load_model_file(EXAMPLES / f"{name}.py", SMALL[name])


@functools.cache
def imported(name: str, *, flat: bool = False) -> ImportedModel:
    """Import an example, blockwise or as one function."""
    model = example(name)
    return import_model(model.module, model.args, model.kwargs, name=name, block_paths=None if flat else "auto")


def flatten(values: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Name the tensors of nested results or arguments as the import does."""
    named: dict[str, torch.Tensor] = {}

    def visit(name: str, value: Any) -> None:
        if isinstance(value, torch.Tensor):
            named[name] = value
        elif isinstance(value, Mapping):
            for key, entry in value.items():
                visit(f"{name}.{key}" if name else key, entry)
        elif isinstance(value, (tuple, list)):
            for key, entry in enumerate(value):
                visit(f"{name}.{key}", entry)

    visit("", values)
    return named


def eager(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
) -> dict[str, torch.Tensor]:
    """Run a module with PyTorch and name its results."""
    with torch.no_grad():
        result = module(*args, **(kwargs or {}))
    if isinstance(result, Mapping):
        return flatten(result)
    return flatten({"output": result})


def execute(
    model: ImportedModel, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
) -> dict[str, np.ndarray[Any, Any]]:
    """Run an imported model with upstream MLIR and name its results."""
    bound = inspect.signature(module.forward).bind(*args, **(kwargs or {}))
    inputs: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if bound.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            inputs.update(value)
        else:
            inputs[name] = value
    tensors = flatten(inputs)
    arrays = [
        tensors[entry.name].numpy() if entry.role == "input" else model.weight(entry.name) for entry in model.arguments
    ]
    outputs = upstream_run.run(model.mlir, arrays, [(entry.shape, _NUMPY[entry.dtype]) for entry in model.results])
    return {entry.name: output for entry, output in zip(model.results, outputs, strict=True)}


def relative_error(actual: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> float:
    """Return the largest difference, relative to the largest expected magnitude."""
    assert actual.shape == expected.shape
    if actual.size == 0:
        return 0.0
    scale = float(np.abs(expected.astype(np.float64)).max()) or 1.0
    return float(np.abs(actual.astype(np.float64) - expected.astype(np.float64)).max()) / scale


@dataclasses.dataclass(frozen=True)
class Comparison:
    """An imported module and its errors against PyTorch, by result name."""

    model: ImportedModel
    errors: dict[str, float]


def compare(module: torch.nn.Module, *args: Any, **options: Any) -> Comparison:
    """Import a module, run it with upstream MLIR and compare it with PyTorch."""
    model = import_model(module, args, **options)
    actual = execute(model, module, args)
    expected = eager(module, args)
    assert list(actual) == list(expected)
    return Comparison(model, {name: relative_error(actual[name], expected[name].numpy()) for name in expected})
