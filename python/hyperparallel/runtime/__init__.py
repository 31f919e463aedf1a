# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running compiled programs: a thin, typed layer over the ``hp_*`` C ABI.

A :class:`Runtime` owns virtual devices; :meth:`Runtime.load` opens a compiled shared object; :meth:`Program.run` gives
each device its arrays and returns :class:`RunStatistics`. Failures are :class:`hyperparallel.errors.RuntimeFailure`.

    >>> from hyperparallel.runtime import Runtime
    >>> with Runtime(devices=4) as runtime:
    ...     runtime.device_count
    4
"""

from __future__ import annotations

from hyperparallel.runtime.arrays import bfloat16_to_float32, empty, float32_to_bfloat16, numpy_dtype
from hyperparallel.runtime.engine import Launch, Program, Runtime, read_statistics
from hyperparallel.runtime.library import find_library, find_openblas
from hyperparallel.runtime.statistics import DeviceStatistics, RunStatistics, TierUsage
from hyperparallel.runtime.vocabulary import Collective, DataType, Tier

__all__ = [
    "Collective",
    "DataType",
    "DeviceStatistics",
    "Launch",
    "Program",
    "RunStatistics",
    "Runtime",
    "Tier",
    "TierUsage",
    "bfloat16_to_float32",
    "empty",
    "find_library",
    "find_openblas",
    "float32_to_bfloat16",
    "numpy_dtype",
    "read_statistics",
]
