# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What compiled programs compute on the CPU, their kernels compute on a GPU: the same tests, on the fake one.

The fake driver runs the PTX thread by thread and holds every access against all others (test/Runtime/fakes). Tests that
are left out are of f64's elementary functions, which kernels have no instructions for, and of what is slow to interpret.
"""

from __future__ import annotations

from pathlib import Path

import codegen_cases
import pytest
from test_collectives import (
    test_all_gather_in_the_order_of_the_axes,
    test_all_reduce,
    test_all_to_all,
    test_halo_exchange,
    test_permute,
    test_reduce_scatter,
    test_slice_local,
    test_started_collective_is_not_overwritten,
)
from test_contractions import test_adds_to_its_init, test_layouts, test_slices_are_read_in_place
from test_convolutions import test_depthwise, test_images_with_channels_first
from test_execution import (
    test_argmax_takes_the_first,
    test_assertion_ends_the_run,
    test_bfloat16,
    test_bfloat16_meets_every_kind_of_op,
    test_booleans_are_bytes,
    test_branches_and_loops,
    test_degenerate_shapes,
    test_functions_share_and_return,
    test_gather,
    test_math_is_accurate,
    test_pow_of_any_sign,
    test_reductions_along_either_dimension,
    test_scatter_through_a_loop,
    test_slices_pads_and_concatenations,
)

FAKES = Path(__file__).resolve().parents[3] / "build" / "test" / "Runtime" / "fakes"
LIBRARIES = {"HP_LIBCUDA": "cuda", "HP_LIBCUBLASLT": "cublaslt", "HP_LIBNCCL": "nccl"}
__all__ = [name for name in dir() if name.startswith("test_")]


@pytest.fixture(autouse=True)
def on_the_fake_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile for GPUs, and run on fake ones."""
    for variable, name in LIBRARIES.items():
        path = FAKES / f"libhp_fake_{name}.so"
        if not path.exists():
            pytest.skip(f"{path.name} is not built; run ninja -C build")
        monkeypatch.setenv(variable, str(path))
    monkeypatch.setattr(codegen_cases, "TARGET", "cuda")
