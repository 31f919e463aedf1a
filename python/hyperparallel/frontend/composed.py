# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What ``build()`` of a model file returns when it wires several programs into one (``hyperparallel.composition``)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hyperparallel.frontend.artifact import ImportedModel

if TYPE_CHECKING:
    import numpy as np
    import torch

    Array = np.ndarray[Any, np.dtype[Any]]


@dataclasses.dataclass(frozen=True, slots=True)
class Composed:
    """A composed program with its inputs, and the same in plain PyTorch.

    Attributes:
        model: What ``Composition.build`` gave.
        inputs: A value for every input, by name.
        reference: Does a number of steps in PyTorch, and returns results of the program after the last of them by name:
            those that ``--check`` is to compare.
    """

    model: ImportedModel
    inputs: Mapping[str, Array]
    reference: Callable[[int], Mapping[str, torch.Tensor]] | None = None
