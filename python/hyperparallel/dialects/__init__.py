# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""HyperParallel's dialects, for the stock ``mlir`` package.

Importing this package registers the dialects with every ``mlir.ir.Context`` that is made afterwards, and the passes
with the process; a context that is older gets the dialects from ``register``. Then upstream's builders and ours mix:

>>> from mlir import ir
>>> from hyperparallel.dialects import hypershard
>>> with ir.Context(), ir.Location.unknown():
...     module = ir.Module.create()
...     with ir.InsertionPoint(module.body):
...         mesh = hypershard.mesh("m", {"dp": 2, "tp": 2})
...     print(module.operation.verify(), hypershard.sharding("m", [["dp"], []]))
True #hypershard.sharding<@m, [{"dp"}, {}]>

``torch_mlir`` carries an MLIR of its own and must never be loaded into a process that imports this package.
"""

from __future__ import annotations

import sys

if "torch_mlir" in sys.modules:
    raise ImportError(
        "torch_mlir is loaded in this process and must not share one with hyperparallel.dialects: its MLIR would "
        "change what ours compiles; import models with hyperparallel.frontend, which uses a worker process"
    )

from mlir import ir
from mlir._mlir_libs import get_dialect_registry

from hyperparallel import _hyperparallel

__all__ = ["register"]


def register(context: ir.Context) -> None:
    """Adds the dialects, and the interfaces that they give to upstream's ops, to a context made before the import.

    Args:
        context: Any context; adding twice does no harm.
    """
    registry = ir.DialectRegistry()
    _hyperparallel.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()


_hyperparallel.register_dialects(get_dialect_registry())
