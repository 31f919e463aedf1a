# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_torch: a module and a plan in, how far the split run is from PyTorch out."""

from __future__ import annotations

from typing import Any

import pytest

from hyperparallel.errors import PlanError
from hyperparallel.testing import check_torch

torch = pytest.importorskip("torch")


def two_layers() -> tuple[Any, Any]:
    """A module, and inputs of both signs."""
    torch.manual_seed(7)
    module = torch.nn.Sequential(torch.nn.Linear(12, 20), torch.nn.ReLU(), torch.nn.Linear(20, 6))
    return module, torch.randn(6, 12)


def test_a_split_module_gives_pytorchs_numbers() -> None:
    """Columns, then rows, on a mesh that divides neither evenly."""
    module, x = two_layers()
    plan = {"mesh": {"a": 2, "b": 3}, "shard": {"0.weight": {"0": "b"}, "2.weight": {"1": "b"}, "input": {"0": "a"}}}
    comparison = check_torch(module, [x], None, plan)
    assert comparison.ok, comparison
    assert 0 < comparison.max_rel_error < 1e-4


def test_a_plan_that_does_not_fit_is_refused() -> None:
    """As it is by the compiler."""
    module, x = two_layers()
    with pytest.raises(PlanError, match="nothing"):
        check_torch(module, [x], {"a": 2}, {"mesh": {"a": 2}, "shard": {"no.such.weight": {"0": "a"}}})
