# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""HyperParallel: from a PyTorch model to one checked program for a whole supernode.

Importing this package loads neither torch nor MLIR. What people touch lives in the submodules:

- ``hyperparallel.frontend``: PyTorch modules in, linalg on tensors out
- ``hyperparallel.plan``: how tensors are laid out over a device mesh
- ``hyperparallel.errors``: the one tree of errors
"""

from __future__ import annotations

from hyperparallel.errors import (
    CompilationError,
    HyperParallelError,
    ImportModelError,
    MissingDependencyError,
    PlanError,
    RuntimeFailure,
)

__version__ = "0.1.0"

__all__ = [
    "CompilationError",
    "HyperParallelError",
    "ImportModelError",
    "MissingDependencyError",
    "PlanError",
    "RuntimeFailure",
    "__version__",
]
