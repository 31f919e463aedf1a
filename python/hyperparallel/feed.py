# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a training is fed: the inputs that have other values in every step, such as batches and learning rates.

A feed is a function from the number of a step, from 0, to the values of these inputs. Where a training goes on from a saved
state, it goes on with the step that comes next.

A file of data holds, for each input of shape ``[rows, ...]``, the rows of many steps, one after the other: step ``s`` takes
``rows`` of them from row ``s * rows`` on. Of an input that is a single number it holds one element for each step. A file of
somebody's data begins again when it comes to its end. A file that was written of a feed knows for which steps it is (in its
metadata, ``first_step`` and ``steps``), and has nothing for others. hp-run reads it in the same way
(``lib/Runtime/Launcher/Feed.h``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hyperparallel.errors import RuntimeFailure
from hyperparallel.tensor_files import TYPES, TensorFile, open_tensors, write_safetensors

Array = NDArray[Any]
Feed = Callable[[int], Mapping[str, Array]]
"""From the number of a step to the values of the inputs that it has of its own."""

FIRST_STEP, STEPS = "first_step", "steps"
"""The metadata of a file that was written of a feed."""


class Input(Protocol):
    """What is known of an input of a program."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Its global shape."""
        ...

    @property
    def dtype(self) -> str:
        """Its element type, as MLIR spells it."""
        ...


@dataclass(frozen=True, slots=True)
class FileFeed:
    """The feed of a file of data.

    Attributes:
        file: The file.
        rows: How many rows a step takes of each input; 0 for one that is a single number.
        first_step: The step of the first row.
        steps: How many steps it is for; None if it begins again at its end.
    """

    file: TensorFile
    rows: Mapping[str, int]
    first_step: int = 0
    steps: int | None = None

    def __call__(self, step: int) -> dict[str, Array]:
        """The values of a step.

        Raises:
            RuntimeFailure: The file was not written for it.
        """
        index = step - self.first_step
        if index < 0 or (self.steps is not None and index >= self.steps):
            last = self.first_step + (self.steps or 0) - 1
            raise RuntimeFailure(
                f"{self.file.path} has data of the steps {self.first_step} to {last}, and step {step} is wanted; "
                "write it for more steps (hp compile --steps), or give a file of data"
            )
        values: dict[str, Array] = {}
        for name, rows in self.rows.items():
            array = self.file.tensors[name]
            if rows == 0:
                values[name] = np.asarray(array[index % len(array)])
            else:
                values[name] = np.take(array, np.arange(index * rows, (index + 1) * rows), axis=0, mode="wrap")
        return values


def open_feed(path: Path, inputs: Collection[Input]) -> FileFeed:
    """The feed of a file of data.

    Args:
        path: A safetensors or ``.npz`` file.
        inputs: The inputs of the program.

    Raises:
        RuntimeFailure: It is damaged, or holds something that is no input, or of another shape or type.
    """
    file = open_tensors(path)
    known = {entry.name: entry for entry in inputs}
    rows: dict[str, int] = {}
    for name, array in file.tensors.items():
        if name not in known:
            raise RuntimeFailure(f"{path} holds {name}, which is no input; the inputs are {', '.join(known)}")
        entry = known[name]
        rows[name] = entry.shape[0] if entry.shape else 0
        wanted = TYPES[entry.dtype][1]
        if array.ndim != max(1, len(entry.shape)) or array.shape[1:] != entry.shape[1:] or array.dtype != wanted:
            rest = "".join(f", {size}" for size in entry.shape[1:])
            raise RuntimeFailure(
                f"{path}: expected {name} as {wanted} of the shape [any number{rest}] but got {array.dtype} of the "
                f"shape {list(array.shape)}"
            )
        if len(array) < max(1, rows[name]):
            raise RuntimeFailure(
                f"{path} has {len(array)} rows of {name}, and a step takes {max(1, rows[name])}; give more, or a "
                "smaller batch"
            )
    if not rows:
        raise RuntimeFailure(f"{path} holds nothing; the inputs are {', '.join(known)}")
    if STEPS not in file.metadata:
        return FileFeed(file, rows)
    return FileFeed(file, rows, int(file.metadata.get(FIRST_STEP, "0")), int(file.metadata[STEPS]))


def write_feed(path: Path, feed: Feed, inputs: Collection[Input], steps: int, first_step: int = 0) -> None:
    """Write what a feed gives for some steps as a file of data.

    Args:
        path: The file.
        feed: The feed.
        inputs: The inputs of the program.
        steps: How many steps.
        first_step: The first of them.
    """
    types = {entry.name: entry.dtype for entry in inputs}
    gathered: dict[str, list[Array]] = {}
    for step in range(first_step, first_step + steps):
        for name, value in feed(step).items():
            gathered.setdefault(name, []).append(np.atleast_1d(value))
    tensors = {name: (types[name], np.concatenate(parts)) for name, parts in gathered.items()}
    write_safetensors(path, tensors, {FIRST_STEP: str(first_step), STEPS: str(steps)})


def without(feed: Feed, names: Collection[str]) -> Feed | None:
    """A feed without some of its inputs; None if nothing is left."""

    def rest(step: int) -> Mapping[str, Array]:
        return {name: value for name, value in feed(step).items() if name not in names}

    return rest if rest(0) else None


def together(first: Feed | None, second: Feed | None) -> Feed | None:
    """Both feeds; what both have comes from the second."""
    if first is None or second is None:
        return first or second

    def both(step: int) -> Mapping[str, Array]:
        return {**first(step), **second(step)}

    return both


__all__ = ["Feed", "FileFeed", "Input", "open_feed", "together", "without", "write_feed"]
