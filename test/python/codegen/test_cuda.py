# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What compiled programs compute on the CPU, their kernels compute on a GPU: the same tests, on the fake one.

The fake driver runs the PTX thread by thread and holds every access against all others (test/Runtime/fakes). One test is left
out: that large loops are cut in pieces for the cores of a CPU. Two are taken with other parameters: without elementary functions
of f64, which kernels have no instructions for and which are refused, and with rows of thousands, not tens of thousands.
"""

from __future__ import annotations

from typing import Any

import codegen_cases
import numpy as np
import pytest
import test_collectives
import test_contractions
import test_convolutions
import test_execution
from codegen_cases import Execute
from fakes import fake_libraries

LEFT_OUT = {"test_large_kernels_run_in_pieces"}
OTHERWISE = {"test_element_types", "test_rows_share_one_kernel"}

for _module in (test_collectives, test_contractions, test_convolutions, test_execution):
    for _name, _test in vars(_module).items():
        if _name.startswith("test_") and callable(_test) and _name not in LEFT_OUT | OTHERWISE:
            # Tests of one name in two files are both taken.
            globals()[_name if _name not in globals() else f"{_name}_of_{_module.__name__[5:]}"] = _test


@pytest.fixture(autouse=True)
def on_the_fake_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile for GPUs, and run on fake ones."""
    for variable, path in fake_libraries("cuda").items():
        monkeypatch.setenv(variable, path)
    monkeypatch.setattr(codegen_cases, "TARGET", "cuda")


ELEMENT_TYPES = test_execution.test_element_types.pytestmark[0].args[1]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("element", "dtype", "op", "reference"),
    [case for case in ELEMENT_TYPES if not (case[0] == "f64" and "math." in case[2])],
)
def test_element_types(execute: Execute, element: str, dtype: Any, op: str, reference: Any) -> None:
    test_execution.test_element_types(execute, element, dtype, op, reference)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (5, 3), (64, 129), (2, 5000)])
def test_rows_share_one_kernel(execute: Execute, rows: int, columns: int) -> None:
    """The last rows do not fit the memory that a block's threads share."""
    test_execution.test_rows_share_one_kernel(execute, rows, columns)


def test_functions_without_instructions_are_refused(execute: Execute) -> None:
    text = test_execution.elementwise("%r = math.exp %x : f64", "8", "f64")
    with pytest.raises(ValueError, match=r"got llvm\.exp\.f64; compute it in f32, or on the CPU"):
        execute(text, np.zeros(8))
