# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What compiled programs compute on the CPU, their kernels compute on a GPU: the same tests, on the fake one.

The fake driver runs the PTX thread by thread and holds every access against all others (test/Runtime/fakes). Tests that
are left out are of f64's elementary functions, which kernels have no instructions for, and of what is slow to interpret.
"""

from __future__ import annotations

from pathlib import Path

import codegen_cases
import pytest
import test_collectives
import test_contractions
import test_convolutions
import test_execution

FAKES = Path(__file__).resolve().parents[3] / "build" / "test" / "Runtime" / "fakes"
LIBRARIES = {"HP_LIBCUDA": "cuda", "HP_LIBCUBLASLT": "cublaslt", "HP_LIBNCCL": "nccl"}
LEFT_OUT = {"test_element_types", "test_large_kernels_run_in_pieces", "test_rows_share_one_kernel"}

for _module in (test_collectives, test_contractions, test_convolutions, test_execution):
    for _name, _test in vars(_module).items():
        if _name.startswith("test_") and callable(_test) and _name not in LEFT_OUT:
            # Tests of one name in two files are both taken.
            globals()[_name if _name not in globals() else f"{_name}_of_{_module.__name__[5:]}"] = _test


@pytest.fixture(autouse=True)
def on_the_fake_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile for GPUs, and run on fake ones."""
    for variable, name in LIBRARIES.items():
        path = FAKES / f"libhp_fake_{name}.so"
        if not path.exists():
            pytest.skip(f"{path.name} is not built; run ninja -C build")
        monkeypatch.setenv(variable, str(path))
    monkeypatch.setattr(codegen_cases, "TARGET", "cuda")
