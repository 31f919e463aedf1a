# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runtimes, programs and runs."""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
import weakref
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from numpy.typing import NDArray

from hyperparallel.errors import MissingDependencyError, RuntimeFailure
from hyperparallel.runtime import library as abi
from hyperparallel.runtime.staging import Staging
from hyperparallel.runtime.statistics import DeviceStatistics, RunStatistics, TierUsage
from hyperparallel.runtime.vocabulary import Collective, Tier

_STREAM_TO_DEVICE, _STREAM_FROM_DEVICE = 1, 2  # hp_stream_role
_POLL_MILLISECONDS = 50
_CANCEL_SECONDS = 5.0
_ALIGNMENT = 64

_abandoned: list[object] = []
"""Memory that a device which could not be stopped may still be using."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What one device does in a run.

    Attributes:
        program: The program.
        entry: Name of the entry, such as ``hp_entry_main``.
        arguments: The device's local tensors: C-contiguous arrays, only read.
        results: C-contiguous arrays that the entry fills.
        device: Ordinal of the device.
        group: Launches of one group form a mesh; groups may run different programs.
        rank: Linear id of the device in its mesh.
        argument_tiers: Tier in which each argument is accounted; all in ``device`` if None.
        updated: Those of the arguments that the entry writes to.
    """

    program: Program
    entry: str
    arguments: Sequence[NDArray[Any]]
    results: Sequence[NDArray[Any]]
    device: int = 0
    group: int = 0
    rank: int = 0
    argument_tiers: Sequence[Tier] | None = None
    updated: Sequence[NDArray[Any]] = ()


@dataclass(slots=True)
class _PackedLaunches:
    """Launches as C sees them, with everything that they point to."""

    array: Any
    alive: list[object]


class Program:
    """A loaded shared object of compiled entries; made by :meth:`Runtime.load`."""

    def __init__(self, runtime: Runtime, handle: ctypes.c_void_p, path: Path) -> None:
        self._runtime = runtime
        self._handle = handle
        self.path = path
        # Not at exit: a device that could not be stopped may still be inside.
        weakref.finalize(self, runtime.library.hp_program_unload, handle).atexit = False

    @property
    def handle(self) -> ctypes.c_void_p:
        """The ``hp_program*``."""
        return self._handle

    def has_entry(self, entry: str) -> bool:
        """Whether the program exports ``entry``."""
        return self._runtime.library.hp_program_has_entry(self._handle, entry.encode()) == 0

    def run(
        self,
        entry: str,
        arguments: Sequence[Sequence[NDArray[Any]]],
        results: Sequence[Sequence[NDArray[Any]]],
        *,
        argument_tiers: Sequence[Tier] | None = None,
    ) -> RunStatistics:
        """Runs ``entry`` on one mesh: device i gets ``arguments[i]`` and fills ``results[i]``.

        Raises:
            RuntimeFailure: The run was refused, or failed on a device; the results are unspecified then.
        """
        if len(arguments) != len(results):
            raise RuntimeFailure(
                f"expected arguments and results for the same devices but got {len(arguments)} and {len(results)}",
                status="HP_INVALID_ARGUMENT",
            )
        return self._runtime.run(
            [
                Launch(self, entry, args, outs, device=i, rank=i, argument_tiers=argument_tiers)
                for i, (args, outs) in enumerate(zip(arguments, results, strict=True))
            ]
        )


class Runtime:
    """Virtual devices of one back end in this process.

    Args:
        devices: Number of devices.
        backend: ``cpu``, or the name of an installed back end.
        threads: Cores to share out over the devices; all usable ones if None.
        watchdog_seconds: Period of the search for devices that wait for each other forever; 0 turns it off.
        tier_limits: Most bytes that each device may use in a tier.
        graphs: Let GPUs and NPUs capture a step that is run again with the same arrays, and replay it from then on.
        tf32: Let GPUs round the operands of products in f32 to 10 bits.

    Raises:
        RuntimeFailure: The library or the back end is missing, or an argument is out of range.
    """

    def __init__(
        self,
        devices: int = 1,
        *,
        backend: str = "cpu",
        threads: int | None = None,
        watchdog_seconds: float = 0.1,
        tier_limits: Mapping[Tier, int] | None = None,
        graphs: bool = True,
        tf32: bool = False,
    ) -> None:
        self.library = abi.load_library()
        self.backend = backend
        options: dict[str, str] = {}
        if backend == "cpu":
            options["watchdog_ms"] = str(max(0, round(watchdog_seconds * 1000)))
            if threads is not None:
                options["threads"] = str(threads)
            openblas = abi.find_openblas()
            if openblas is not None:
                options["openblas"] = str(openblas)
        else:
            options["graphs"] = str(int(graphs))
        if backend == "cuda":
            options["tf32"] = str(int(tf32))
        self._context = self._create(backend, devices, options)
        self._staging = Staging(self.library)
        self._finalizer = weakref.finalize(self, _close, self.library, self._context, self._staging)
        self.device_count = int(self.library.hp_device_count(self._context))
        for tier, limit in (tier_limits or {}).items():
            self.set_limit(tier, limit)

    def _create(self, backend: str, devices: int, options: Mapping[str, str]) -> ctypes.c_void_p:
        flat = [text.encode() for pair in options.items() for text in pair]
        desc = abi.ContextDesc(
            ctypes.sizeof(abi.ContextDesc),
            backend.encode(),
            devices,
            (ctypes.c_char_p * len(flat))(*flat),
            len(options),
        )
        context = ctypes.c_void_p()
        try:
            abi.check(self.library, self.library.hp_context_create(ctypes.byref(desc), ctypes.byref(context)))
        except RuntimeFailure as failure:
            if backend == "cuda" and failure.status == "HP_NOT_FOUND":
                raise MissingDependencyError(
                    "libcuda.so.1",
                    needed_for="running on the target cuda",
                    install="NVIDIA's driver for this machine's GPU (https://www.nvidia.com/drivers), "
                    f"or name the library in HP_LIBCUDA ({failure.message})",
                ) from None
            if backend == "ascend" and failure.status == "HP_NOT_FOUND":
                raise MissingDependencyError(
                    "libascendcl.so",
                    needed_for="running on the target ascend",
                    install="the CANN toolkit (https://www.hiascend.com/software/cann), source its set_env.sh, "
                    f"or name the library in HP_LIBASCENDCL ({failure.message})",
                ) from None
            raise
        return context

    def __enter__(self) -> Runtime:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the devices' threads and frees their memory; programs and this object cannot be used any more."""
        self._finalizer()

    def _check_open(self) -> None:
        if not self._finalizer.alive:
            raise RuntimeFailure("the runtime was closed", status="HP_INVALID_ARGUMENT")

    def load(self, path: str | os.PathLike[str]) -> Program:
        """Loads a compiled shared object.

        Raises:
            RuntimeFailure: The file is missing, no shared object, or compiled for another version of the runtime.
        """
        self._check_open()
        handle = ctypes.c_void_p()
        abi.check(self.library, self.library.hp_program_load(self._context, os.fsencode(path), ctypes.byref(handle)))
        return Program(self, handle, Path(path))

    def _device(self, ordinal: int) -> ctypes.c_void_p:
        self._check_open()
        device = ctypes.c_void_p()
        abi.check(self.library, self.library.hp_device_get(self._context, ordinal, ctypes.byref(device)))
        return device

    def set_limit(self, tier: Tier, limit: int | None, *, device: int | None = None) -> None:
        """Limits the bytes that may be in use in a tier, on one device or on each; None lifts the limit."""
        for ordinal in range(self.device_count) if device is None else (device,):
            status = self.library.hp_tier_set_limit(
                self._device(ordinal), list(Tier).index(tier), -1 if limit is None else limit
            )
            abi.check(self.library, status)

    def tier(self, tier: Tier, *, device: int = 0) -> TierUsage:
        """The books of a tier of a device."""
        limit, used, peak = ctypes.c_int64(), ctypes.c_int64(), ctypes.c_int64()
        status = self.library.hp_tier_info(
            self._device(device), list(Tier).index(tier), ctypes.byref(limit), ctypes.byref(used), ctypes.byref(peak)
        )
        abi.check(self.library, status)
        return TierUsage(None if limit.value < 0 else limit.value, used.value, peak.value)

    def time_copy(self, size: int, source: Tier, target: Tier, *, device: int = 0) -> float:
        """Seconds of one copy between two tiers of a device, from the call until the copy is done.

        Args:
            size: Bytes; at least 1.
            source: The tier to copy from.
            target: The tier to copy to.
            device: The device whose tiers they are, and whose stream of that direction copies.

        Raises:
            RuntimeFailure: A tier has no room, or the back end cannot copy between the two.
        """
        library, handle, stream = self.library, self._device(device), ctypes.c_void_p()
        role = _STREAM_TO_DEVICE if target is Tier.DEVICE else _STREAM_FROM_DEVICE
        held: list[ctypes.c_void_p] = []
        try:
            for tier in (source, target):
                pointer = ctypes.c_void_p()
                abi.check(library, library.hp_alloc(handle, list(Tier).index(tier), size, None, ctypes.byref(pointer)))
                held.append(pointer)
                ctypes.memset(pointer, 1, size)
            abi.check(library, library.hp_stream_create(handle, role, ctypes.byref(stream)))
            begin = time.perf_counter()
            abi.check(library, library.hp_copy(held[1], held[0], size, stream))
            abi.check(library, library.hp_stream_sync(stream))
            return time.perf_counter() - begin
        finally:
            if stream:
                library.hp_stream_destroy(stream)
            for pointer in held:
                library.hp_free(handle, pointer, None)

    @contextlib.contextmanager
    def trace(self, path: str | os.PathLike[str]) -> Generator[None, None, None]:
        """Records all runs inside the ``with`` block and writes them as Chrome-trace JSON."""
        self._check_open()
        abi.check(self.library, self.library.hp_trace_begin(self._context, os.fsencode(path)))
        try:
            yield
        finally:
            abi.check(self.library, self.library.hp_trace_end(self._context))

    def run(self, launches: Sequence[Launch]) -> RunStatistics:
        """Runs all launches at once and returns when every device has ended.

        Raises:
            RuntimeFailure: The run was refused, or failed on a device; the results are unspecified then.
            KeyboardInterrupt: The user ended the run; devices are stopped first.
        """
        self._check_open()
        if self.backend == "cpu":
            return self._run(_pack(launches), len(launches))
        # What the same launches had before stays where it is: a step is replayed with the buffers it was captured with.
        staging, handles = self._staging, {launch.device: self._device(launch.device) for launch in launches}
        try:
            staging.keep(
                {(launch.device, array.ctypes.data, array.nbytes) for launch in launches for array in _all(launch)}
            )
            packed = _pack(launches, staging, handles)
            staging.finish_copies()
            statistics = self._run(packed, len(launches))
            for launch in launches:
                staging.fetch(launch.device, handles[launch.device], [*launch.results, *launch.updated])
            staging.finish_copies()
            return statistics
        except BaseException:
            staging.close()
            raise

    def _run(self, packed: _PackedLaunches, count: int) -> RunStatistics:
        abi.check(self.library, self.library.hp_run_start(self._context, packed.array, count))
        devices = (abi.DeviceStats * count)()
        stats = abi.RunStats(ctypes.sizeof(abi.RunStats), 0, count, devices)
        done = ctypes.c_int32()
        try:
            while True:
                status = self.library.hp_run_wait(
                    self._context, _POLL_MILLISECONDS, ctypes.byref(done), ctypes.byref(stats)
                )
                if done.value or status:
                    break
        except BaseException:
            self._stop(packed)
            raise
        abi.check(self.library, status)
        return RunStatistics(
            stats.wall_ns / 1e9,
            tuple(_device_statistics(device) for device in devices),
            int(stats.replayed),
            stats.not_captured.decode() if stats.not_captured else None,
        )

    def _stop(self, packed: _PackedLaunches) -> None:
        """Cancels the run; leaves a device that does not stop to itself, with what it uses."""
        self.library.hp_run_cancel(self._context, b"interrupted")
        done = ctypes.c_int32()
        end = time.monotonic() + _CANCEL_SECONDS
        while not done.value and time.monotonic() < end:
            self.library.hp_run_wait(self._context, _POLL_MILLISECONDS, ctypes.byref(done), None)
        if not done.value:
            _abandoned.append(packed)
            self._finalizer.detach()


def _close(library: ctypes.CDLL, context: ctypes.c_void_p, staging: Staging) -> None:
    staging.close()
    library.hp_context_destroy(context)


def _all(launch: Launch) -> list[NDArray[Any]]:
    return [*launch.arguments, *launch.results]


def _pointers(arrays: Sequence[NDArray[Any]], what: str, writable: bool) -> Any:
    for index, array in enumerate(arrays):
        if not array.flags.c_contiguous or (writable and not array.flags.writeable):
            wanted = "a writable C-contiguous" if writable else "a C-contiguous"
            raise RuntimeFailure(
                f"{what} {index}: expected {wanted} array but got strides {array.strides} for shape {array.shape}",
                status="HP_INVALID_ARGUMENT",
            )
    return (ctypes.c_void_p * max(1, len(arrays)))(*(array.ctypes.data for array in arrays))


def _resident(launch: Launch) -> list[int]:
    """Bytes by tier that the launch's arrays occupy; an array that is argument and result counts once."""
    tiers = launch.argument_tiers or [Tier.DEVICE] * len(launch.arguments)
    if len(tiers) != len(launch.arguments):
        raise RuntimeFailure(
            f"expected a tier for each of {len(launch.arguments)} arguments but got {len(tiers)}",
            status="HP_INVALID_ARGUMENT",
        )
    seen: set[tuple[int, int]] = set()
    totals = [0] * len(Tier)
    placed = [*zip(launch.arguments, tiers, strict=True), *((array, Tier.DEVICE) for array in launch.results)]
    for array, tier in placed:
        key = (array.ctypes.data, array.nbytes)
        if key not in seen:
            seen.add(key)
            totals[list(Tier).index(tier)] += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    return totals


def _staged(
    launch: Launch, staging: Staging, handle: ctypes.c_void_p
) -> tuple[ctypes.Array[ctypes.c_void_p], ctypes.Array[ctypes.c_void_p]]:
    """Addresses of a launch's arguments and results on its device."""
    _pointers(launch.arguments, "argument", writable=False)
    _pointers(launch.results, "result", writable=True)
    tiers = launch.argument_tiers or [Tier.DEVICE] * len(launch.arguments)
    arguments = [
        staging.place(launch.device, handle, array, tier, upload=True)
        for array, tier in zip(launch.arguments, tiers, strict=True)
    ]
    results = [staging.place(launch.device, handle, array, Tier.DEVICE, upload=False) for array in launch.results]
    return (
        (ctypes.c_void_p * max(1, len(arguments)))(*arguments),
        (ctypes.c_void_p * max(1, len(results)))(*results),
    )


def _pack(
    launches: Sequence[Launch], staging: Staging | None = None, handles: Mapping[int, ctypes.c_void_p] | None = None
) -> _PackedLaunches:
    """Launches for C. With ``staging`` arrays are copied to the devices, where they count as allocated."""
    packed = _PackedLaunches((abi.LaunchDesc * max(1, len(launches)))(), [launches])
    for desc, launch in zip(packed.array, launches, strict=False):
        if staging is None or handles is None:
            arguments = _pointers(launch.arguments, "argument", writable=False)
            results = _pointers(launch.results, "result", writable=True)
            resident = _resident(launch)
        else:
            arguments, results = _staged(launch, staging, handles[launch.device])
            resident = [0] * len(Tier)
        entry = launch.entry.encode()
        packed.alive += [arguments, results, entry]
        desc.struct_size = ctypes.sizeof(abi.LaunchDesc)
        desc.device, desc.group, desc.rank = launch.device, launch.group, launch.rank
        desc.program = launch.program.handle
        desc.entry = entry
        desc.args, desc.results = arguments, results
        desc.resident[:] = resident
        desc.num_args, desc.num_results = len(launch.arguments), len(launch.results)
    return packed


def read_statistics(data: bytes) -> list[DeviceStatistics]:
    """The statistics that hp-run wrote: its ``hp_device_stats``, one after the other."""
    size = ctypes.sizeof(abi.DeviceStats)
    if len(data) % size:
        raise RuntimeFailure(f"expected statistics of {size} bytes for each device but got {len(data)} bytes")
    return [_device_statistics(abi.DeviceStats.from_buffer_copy(data, offset)) for offset in range(0, len(data), size)]


def _device_statistics(stats: abi.DeviceStats) -> DeviceStatistics:
    return DeviceStatistics(
        device=stats.device,
        group=stats.group,
        rank=stats.rank,
        wall_seconds=stats.wall_ns / 1e9,
        wait_seconds=stats.wait_ns / 1e9,
        peak_bytes=dict(zip(Tier, stats.peak, strict=True)),
        leaked_bytes=dict(zip(Tier, stats.leaked, strict=True)),
        allocations=stats.allocations,
        collectives=dict(zip(Collective, stats.collectives, strict=True)),
        moved_bytes=dict(zip(Collective, stats.moved, strict=True)),
        matmuls=stats.matmuls,
        matmul_seconds=stats.matmul_ns / 1e9,
        matmul_flops=stats.matmul_flops,
        prefetches=stats.copies[0],
        prefetched_bytes=stats.copied[0],
        stores=stats.copies[1],
        stored_bytes=stats.copied[1],
        copy_wait_seconds=stats.copy_wait_ns / 1e9,
    )


__all__ = ["Launch", "Program", "Runtime", "read_statistics"]
