# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a plan sees of a program: the named tensors at its boundary and at the ends of its blocks."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Protocol

from hyperparallel.enums import StrEnum


class TensorKind(StrEnum):
    """Where a tensor stands in the program; also the prefix that narrows a rule (``input:x``)."""

    INPUT = "input"
    PARAMETER = "parameter"
    BUFFER = "buffer"
    OPTIMIZER = "optimizer"
    CACHE = "cache"
    OUTPUT = "output"
    BLOCK = "block"


STORED_KINDS = frozenset(
    {TensorKind.INPUT, TensorKind.PARAMETER, TensorKind.BUFFER, TensorKind.OPTIMIZER, TensorKind.CACHE}
)
"""The kinds that are arguments of the entry function."""

_BITS = {"bf16": 16, "f16": 16, "f32": 32, "f64": 64, "index": 64}


def element_bytes(dtype: str) -> int:
    """Bytes of one element of an MLIR element type, such as ``f32`` or ``i64``; a boolean takes one."""
    digits = "".join(character for character in dtype if character.isdigit())
    bits = _BITS.get(dtype) or (int(digits) if digits else 8)
    return max(1, bits // 8)


@dataclasses.dataclass(frozen=True, slots=True)
class ProgramTensor:
    """A tensor that a rule can name.

    Attributes:
        kind: Where it stands.
        name: Its ``hp.name``, or the path of the block whose result it is (``#1`` for the second result).
        shape: The global shape.
        dtype: MLIR's element type.
    """

    kind: TensorKind
    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def bytes(self) -> int:
        """Bytes of the whole tensor."""
        return math.prod(self.shape) * element_bytes(self.dtype)


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """All tensors that rules can name, in the order of the program.

    Attributes:
        name: What the program is called in messages.
        tensors: Arguments first, then results, then the results of blocks.
    """

    name: str
    tensors: tuple[ProgramTensor, ...]

    def of_kind(self, *kinds: TensorKind) -> tuple[ProgramTensor, ...]:
        """The tensors of these kinds, in order."""
        return tuple(tensor for tensor in self.tensors if tensor.kind in kinds)


class NamedTensor(Protocol):
    """What an argument or a result of an imported model looks like."""

    @property
    def name(self) -> str:
        """The tensor's name."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """The global shape."""
        ...

    @property
    def dtype(self) -> str:
        """MLIR's element type."""
        ...


class NamedArgument(NamedTensor, Protocol):
    """An argument of an imported model."""

    @property
    def role(self) -> str:
        """One of the values of ``hp.role``."""
        ...


def make_program(
    name: str,
    arguments: Iterable[NamedArgument],
    results: Iterable[NamedTensor],
    blocks: Iterable[tuple[str, Iterable[tuple[tuple[int, ...], str]]]] = (),
) -> Program:
    """Collect the tensors that rules can name.

    Args:
        name: What the program is called in messages.
        arguments: The entry's arguments.
        results: The entry's results.
        blocks: Path of each block and shape and element type of each of its results.
    """
    tensors = [ProgramTensor(TensorKind(item.role), item.name, tuple(item.shape), item.dtype) for item in arguments]
    tensors += [ProgramTensor(TensorKind.OUTPUT, item.name, tuple(item.shape), item.dtype) for item in results]
    for path, block_results in blocks:
        for index, (shape, dtype) in enumerate(block_results):
            tensors.append(
                ProgramTensor(TensorKind.BLOCK, path if index == 0 else f"{path}#{index}", tuple(shape), dtype)
            )
    return Program(name, tuple(tensors))
