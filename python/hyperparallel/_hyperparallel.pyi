# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C++ extension: HyperParallel's dialects and passes for the stock ``mlir`` package."""

from collections.abc import Sequence
from typing import Any

from mlir import ir

def register_dialects(registry: ir.DialectRegistry) -> None: ...
def cost_report(module: ir.Module) -> str: ...
def cache_directory() -> str: ...
def compile_program(
    module: ir.Module,
    path: str,
    cache_directory: str,
    threads: int = ...,
    kernels: str = ...,
    architecture: str = ...,
) -> tuple[int, int]: ...
def simulate_program(module: ir.Module, function: str, noise: float, seed: int) -> str: ...

class Simulation:
    def __init__(self, num_streams: int, segments: Sequence[float], tiers: Sequence[float]) -> None: ...
    def add(
        self,
        stream: int,
        seconds: float,
        bytes: float,
        rate: float,
        members: float,
        segments: Sequence[int],
        dependencies: Sequence[int],
        partner: int | None,
        residency: Sequence[tuple[int, float, float]],
    ) -> None: ...
    def run(self, noise: float, seed: int) -> None: ...
    @property
    def seconds(self) -> float: ...
    @property
    def spans(self) -> list[tuple[float, float]]: ...
    @property
    def busy(self) -> list[float]: ...
    @property
    def moved(self) -> list[float]: ...
    @property
    def peak(self) -> list[float]: ...
    def residency(self, tier: int) -> list[tuple[float, float]]: ...

def assign_offsets(
    buffers: Sequence[tuple[int, int, int]], alignment: int, goal: int, exact: bool
) -> tuple[list[int], int, int, str]: ...
def find_overlap(buffers: Sequence[tuple[int, int, int]], offsets: Sequence[int], alignment: int) -> str: ...

class Planner:
    def __init__(
        self, capacity: int, alignment: int, minimum_bytes: int, chunk_bytes: int, memory_bandwidth: float
    ) -> None: ...
    def add_segment(self, bandwidth: float) -> None: ...
    def add_tier(self, capacity: int, out: tuple[float, float, int], in_: tuple[float, float, int]) -> None: ...
    def add_operation(
        self, seconds: float, workspace: int, memory_bytes: int, reads: Sequence[int], writes: Sequence[int]
    ) -> None: ...
    def add_storage(
        self,
        bytes: int,
        persistent: bool,
        may_start_below: bool,
        clean: bool,
        pinned: bool,
        home_tier: int,
        recompute_seconds: float,
        recompute_from: Sequence[int],
    ) -> None: ...
    def plan(self) -> None: ...
    def take(self, spills: Sequence[tuple[int, int, int, int, int, int, bool, bool]]) -> None: ...
    @property
    def summary(self) -> dict[str, Any]: ...
    @property
    def spills(self) -> list[tuple[int, int, int, int, int, int, bool, bool]]: ...
    def times(self, which: int) -> list[float]: ...
    def bytes(self, tier: int) -> list[int]: ...

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
    def get(cls, name: str, pre_size: int = ..., size: int = ..., context: ir.Context | None = ...) -> AxisRefAttr: ...
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

class RateAttr(ir.Attribute):
    @classmethod
    def get(
        cls,
        element_type: ir.Type,
        rate: float,
        context: ir.Context | None = ...,
    ) -> RateAttr: ...
    @property
    def element_type(self) -> ir.Type: ...
    @property
    def rate(self) -> float: ...

class CoresAttr(ir.Attribute):
    @classmethod
    def get(cls, count: int, gain: float, cut: float, wake: float, context: ir.Context | None = ...) -> CoresAttr: ...
    @property
    def count(self) -> int: ...
    @property
    def gain(self) -> float: ...
    @property
    def cut(self) -> float: ...
    @property
    def wake(self) -> float: ...

class DeviceGroupAttr(ir.Attribute):
    @classmethod
    def get(
        cls,
        name: str,
        count: int,
        memory: str,
        launch: float,
        vector: float,
        efficiency: float,
        rates: Sequence[ir.Attribute],
        packing: float = ...,
        cache: str | None = ...,
        cores: ir.Attribute | None = ...,
        context: ir.Context | None = ...,
    ) -> DeviceGroupAttr: ...
    @property
    def name(self) -> str: ...
    @property
    def count(self) -> int: ...
    @property
    def memory(self) -> str: ...
    @property
    def launch(self) -> float: ...
    @property
    def vector(self) -> float: ...
    @property
    def efficiency(self) -> float: ...
    @property
    def packing(self) -> float: ...
    @property
    def cache(self) -> str | None: ...
    @property
    def cores(self) -> ir.Attribute | None: ...
    @property
    def rates(self) -> list[ir.Attribute]: ...

class LevelAttr(ir.Attribute):
    @classmethod
    def get(
        cls,
        name: str,
        size: int,
        latency: float,
        bandwidth: float,
        algorithms: Sequence[str] = ...,
        shared: Sequence[str] = ...,
        context: ir.Context | None = ...,
    ) -> LevelAttr: ...
    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def latency(self) -> float: ...
    @property
    def bandwidth(self) -> float: ...
    @property
    def algorithms(self) -> list[str]: ...
    @property
    def shared(self) -> list[str]: ...

class TierAttr(ir.Attribute):
    @classmethod
    def get(
        cls,
        name: str,
        scope: str,
        capacity: float,
        bandwidth: float,
        shared: Sequence[str] = ...,
        context: ir.Context | None = ...,
    ) -> TierAttr: ...
    @property
    def name(self) -> str: ...
    @property
    def scope(self) -> str: ...
    @property
    def capacity(self) -> float: ...
    @property
    def bandwidth(self) -> float: ...
    @property
    def shared(self) -> list[str]: ...

class SegmentAttr(ir.Attribute):
    @classmethod
    def get(
        cls,
        name: str,
        scope: str,
        bandwidth: float,
        within: str | None = ...,
        context: ir.Context | None = ...,
    ) -> SegmentAttr: ...
    @property
    def name(self) -> str: ...
    @property
    def scope(self) -> str: ...
    @property
    def bandwidth(self) -> float: ...
    @property
    def within(self) -> str | None: ...

class LinkAttr(ir.Attribute):
    @classmethod
    def get(
        cls,
        source: str,
        target: str,
        latency: float,
        bandwidth: float,
        shared: Sequence[str] = ...,
        context: ir.Context | None = ...,
    ) -> LinkAttr: ...
    @property
    def source(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def latency(self) -> float: ...
    @property
    def bandwidth(self) -> float: ...
    @property
    def shared(self) -> list[str]: ...

class MachineAttr(ir.Attribute):
    @classmethod
    def get(
        cls,
        name: str,
        groups: Sequence[ir.Attribute],
        levels: Sequence[ir.Attribute] = ...,
        tiers: Sequence[ir.Attribute] = ...,
        segments: Sequence[ir.Attribute] = ...,
        links: Sequence[ir.Attribute] = ...,
        context: ir.Context | None = ...,
    ) -> MachineAttr: ...
    @classmethod
    def preset(cls, name: str, context: ir.Context | None = ...) -> MachineAttr: ...
    @property
    def name(self) -> str: ...
    @property
    def groups(self) -> list[ir.Attribute]: ...
    @property
    def levels(self) -> list[ir.Attribute]: ...
    @property
    def tiers(self) -> list[ir.Attribute]: ...
    @property
    def segments(self) -> list[ir.Attribute]: ...
    @property
    def links(self) -> list[ir.Attribute]: ...
