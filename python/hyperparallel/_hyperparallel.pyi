# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C++ extension: HyperParallel's dialects and passes for the stock ``mlir`` package."""

from collections.abc import Sequence

from mlir import ir

def register_dialects(registry: ir.DialectRegistry) -> None: ...

class MeshAttr(ir.Attribute):
    @classmethod
    def get(
        cls,
        names: Sequence[str],
        sizes: Sequence[int],
        device_ids: Sequence[int] = ...,
        context: ir.Context | None = ...,
    ) -> MeshAttr: ...
    @property
    def axes(self) -> list[tuple[str, int]]: ...
    @property
    def num_devices(self) -> int: ...
    @property
    def device_ids(self) -> list[int]: ...

class AxisRefAttr(ir.Attribute):
    @classmethod
    def get(
        cls, name: str, pre_size: int = ..., size: int = ..., context: ir.Context | None = ...
    ) -> AxisRefAttr: ...
    @property
    def name(self) -> str: ...
    @property
    def pre_size(self) -> int: ...
    @property
    def size(self) -> int: ...

class DimShardingAttr(ir.Attribute):
    @classmethod
    def get(
        cls,
        axes: Sequence[ir.Attribute],
        is_open: bool = ...,
        priority: int = ...,
        context: ir.Context | None = ...,
    ) -> DimShardingAttr: ...
    @property
    def axes(self) -> list[AxisRefAttr]: ...
    @property
    def is_open(self) -> bool: ...
    @property
    def priority(self) -> int: ...

class ShardingAttr(ir.Attribute):
    @classmethod
    def get(
        cls,
        mesh: str,
        dims: Sequence[ir.Attribute],
        replicated: Sequence[ir.Attribute] = ...,
        partial_kind: str = ...,
        partial_axes: Sequence[ir.Attribute] = ...,
        context: ir.Context | None = ...,
    ) -> ShardingAttr: ...
    @property
    def mesh(self) -> str: ...
    @property
    def dims(self) -> list[DimShardingAttr]: ...
    @property
    def replicated(self) -> list[AxisRefAttr]: ...
    @property
    def partial_kind(self) -> str: ...
    @property
    def partial_axes(self) -> list[AxisRefAttr]: ...
