# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the generated op classes ask for, from the stock package."""

from mlir.dialects._ods_common import (
    _cext,  # pyright: ignore[reportPrivateUsage]
    equally_sized_accessor,
    get_default_loc_context,
    get_op_result_or_op_results,
    get_op_result_or_value,
    get_op_results_or_values,
    segmented_accessor,
)

__all__ = [
    "_cext",
    "equally_sized_accessor",
    "get_default_loc_context",
    "get_op_result_or_op_results",
    "get_op_result_or_value",
    "get_op_results_or_values",
    "segmented_accessor",
]
