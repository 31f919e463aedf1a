# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Testing split programs: run them on virtual devices, compare with the unsplit program, count what was moved.

run = run_sharded(text, [x, w], mesh={"a": 2, "b": 2}, arg_shardings=[[["a"], []], [[], ["b"]]])
run.results, run.collectives, run.bytes_moved
"""

from __future__ import annotations

from hyperparallel.testing.layout import Padding
from hyperparallel.testing.sharded import Executor, ShardedRun, Sharding, run_sharded, run_unsharded
from hyperparallel.testing.torch_models import check_torch

__all__ = ["Executor", "Padding", "ShardedRun", "Sharding", "check_torch", "run_sharded", "run_unsharded"]
