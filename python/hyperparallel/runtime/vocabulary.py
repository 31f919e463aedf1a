# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The closed choices of the runtime ABI, spelled as in ``hp_runtime.h``."""

from __future__ import annotations

from hyperparallel.enums import StrEnum


class DataType(StrEnum):
    """Element types, in the order of ``hp_dtype``."""

    I1 = "i1"
    I8 = "i8"
    I16 = "i16"
    I32 = "i32"
    I64 = "i64"
    F16 = "f16"
    BF16 = "bf16"
    F32 = "f32"
    F64 = "f64"


class Tier(StrEnum):
    """Memory tiers, in the order of ``hp_tier``."""

    DEVICE = "device"
    PINNED = "pinned"
    HOST = "host"
    FILE = "file"


class Collective(StrEnum):
    """Kinds of communication that are counted, in the order of ``hp_collective``."""

    ALL_GATHER = "all_gather"
    ALL_REDUCE = "all_reduce"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_TO_ALL = "all_to_all"
    PERMUTE = "permute"
    HALO_EXCHANGE = "halo_exchange"
    BROADCAST = "broadcast"
    BARRIER = "barrier"
    SEND = "send"
    RECV = "recv"


STATUS_NAMES = (
    "HP_OK",
    "HP_INVALID_ARGUMENT",
    "HP_NOT_FOUND",
    "HP_UNIMPLEMENTED",
    "HP_OUT_OF_MEMORY",
    "HP_DEADLOCK",
    "HP_MISMATCH",
    "HP_PROGRAM_ERROR",
    "HP_CANCELLED",
    "HP_INTERNAL",
    "HP_LOST",
)
"""Names of ``hp_status``, by value."""
