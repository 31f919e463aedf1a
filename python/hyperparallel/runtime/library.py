# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finding ``libhp_runtime.so`` and OpenBLAS, and declaring the C ABI to ctypes."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
from pathlib import Path
from typing import ClassVar

import hyperparallel
from hyperparallel.errors import RuntimeFailure
from hyperparallel.runtime.vocabulary import STATUS_NAMES, Collective, Tier

ABI_VERSION = 1
LIBRARY_VARIABLE = "HP_RUNTIME_LIBRARY"
_LIBRARY_NAME = "libhp_runtime.so"

_Tiers = ctypes.c_int64 * len(Tier)
_Kinds = ctypes.c_int64 * len(Collective)


class ContextDesc(ctypes.Structure):
    """``hp_context_desc``."""

    _fields_: ClassVar = [
        ("struct_size", ctypes.c_uint64),
        ("backend", ctypes.c_char_p),
        ("num_devices", ctypes.c_int64),
        ("options", ctypes.POINTER(ctypes.c_char_p)),
        ("num_options", ctypes.c_int64),
    ]


class LaunchDesc(ctypes.Structure):
    """``hp_launch``."""

    _fields_: ClassVar = [
        ("struct_size", ctypes.c_uint64),
        ("device", ctypes.c_int64),
        ("group", ctypes.c_int64),
        ("rank", ctypes.c_int64),
        ("program", ctypes.c_void_p),
        ("entry", ctypes.c_char_p),
        ("args", ctypes.POINTER(ctypes.c_void_p)),
        ("results", ctypes.POINTER(ctypes.c_void_p)),
        ("resident", _Tiers),
        ("num_args", ctypes.c_int64),
        ("num_results", ctypes.c_int64),
    ]


class DeviceStats(ctypes.Structure):
    """``hp_device_stats``."""

    _fields_: ClassVar = [
        ("device", ctypes.c_int64),
        ("group", ctypes.c_int64),
        ("rank", ctypes.c_int64),
        ("status", ctypes.c_int64),
        ("wall_ns", ctypes.c_int64),
        ("wait_ns", ctypes.c_int64),
        ("peak", _Tiers),
        ("leaked", _Tiers),
        ("allocations", ctypes.c_int64),
        ("collectives", _Kinds),
        ("moved", _Kinds),
        ("matmuls", ctypes.c_int64),
        ("matmul_ns", ctypes.c_int64),
        ("matmul_flops", ctypes.c_double),
        ("copies", ctypes.c_int64 * 2),
        ("copied", ctypes.c_int64 * 2),
        ("copy_wait_ns", ctypes.c_int64),
    ]


class RunStats(ctypes.Structure):
    """``hp_run_stats``."""

    _fields_: ClassVar = [
        ("struct_size", ctypes.c_uint64),
        ("wall_ns", ctypes.c_int64),
        ("num_devices", ctypes.c_int64),
        ("devices", ctypes.POINTER(DeviceStats)),
        ("replayed", ctypes.c_int64),
        ("not_captured", ctypes.c_char_p),
    ]


def find_library() -> Path:
    """The path of ``libhp_runtime.so``: ``$HP_RUNTIME_LIBRARY``, or the file beside the package.

    Raises:
        RuntimeFailure: There is no such file.
    """
    named = os.environ.get(LIBRARY_VARIABLE)
    if named:
        path = Path(named)
        if path.is_file():
            return path
        raise RuntimeFailure(f"{LIBRARY_VARIABLE} names {named}, which is not a file", status="HP_NOT_FOUND")
    folders = [Path(folder) for folder in hyperparallel.__path__]
    for folder in folders:
        if (folder / _LIBRARY_NAME).is_file():
            return folder / _LIBRARY_NAME
    raise RuntimeFailure(
        f"{_LIBRARY_NAME} is not in {folders[0]}; install the package with 'pip install .', or name the library in "
        f"{LIBRARY_VARIABLE}",
        status="HP_NOT_FOUND",
    )


def find_openblas() -> Path | None:
    """The OpenBLAS of the ``scipy-openblas32`` distribution, or None if that is not installed."""
    spec = importlib.util.find_spec("scipy_openblas32")
    if spec is None or spec.origin is None:
        return None
    found = sorted((Path(spec.origin).parent / "lib").glob("libscipy_openblas*.so"))
    return found[0] if found else None


def _declare(library: ctypes.CDLL) -> None:
    pointer, integer, text = ctypes.c_void_p, ctypes.c_int64, ctypes.c_char_p
    place = ctypes.POINTER(ctypes.c_void_p)
    integers = ctypes.POINTER(ctypes.c_int64)
    signatures: dict[str, list[type]] = {
        "hp_context_create": [ctypes.POINTER(ContextDesc), place],
        "hp_device_get": [pointer, integer, place],
        "hp_tier_set_limit": [pointer, ctypes.c_int, integer],
        "hp_tier_info": [pointer, ctypes.c_int, integers, integers, integers],
        "hp_tier_reset_peak": [pointer, ctypes.c_int],
        "hp_program_load": [pointer, text, place],
        "hp_program_has_entry": [pointer, text],
        "hp_program_unload": [pointer],
        "hp_run_start": [pointer, ctypes.POINTER(LaunchDesc), integer],
        "hp_run_wait": [pointer, integer, ctypes.POINTER(ctypes.c_int32), ctypes.POINTER(RunStats)],
        "hp_run_cancel": [pointer, text],
        "hp_trace_begin": [pointer, text],
        "hp_trace_end": [pointer],
        "hp_alloc": [pointer, ctypes.c_int, integer, pointer, place],
        "hp_free": [pointer, pointer, pointer],
        "hp_stream_create": [pointer, ctypes.c_int, place],
        "hp_stream_sync": [pointer],
        "hp_stream_destroy": [pointer],
        "hp_copy": [pointer, pointer, integer, pointer],
    }
    for name, arguments in signatures.items():
        function = getattr(library, name)
        function.argtypes = arguments
        function.restype = ctypes.c_int
    library.hp_abi_version.argtypes = []
    library.hp_abi_version.restype = ctypes.c_uint32
    library.hp_last_error.argtypes = []
    library.hp_last_error.restype = text
    library.hp_device_count.argtypes = [pointer]
    library.hp_device_count.restype = integer
    library.hp_context_destroy.argtypes = [pointer]
    library.hp_context_destroy.restype = None


@functools.cache
def _open(path: Path) -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(str(path))
        _declare(library)
    except (OSError, AttributeError) as error:
        raise RuntimeFailure(f"cannot load the runtime library {path}: {error}", status="HP_NOT_FOUND") from error
    version = int(library.hp_abi_version())
    if version != ABI_VERSION:
        raise RuntimeFailure(
            f"{path} has ABI version {version}, but this package needs {ABI_VERSION}; install both from one source",
            status="HP_NOT_FOUND",
        )
    return library


def load_library() -> ctypes.CDLL:
    """The runtime library, loaded once and with all functions declared.

    Raises:
        RuntimeFailure: The library is missing, broken, or of another version.
    """
    return _open(find_library())


def check(library: ctypes.CDLL, status: int) -> None:
    """Raises RuntimeFailure with the runtime's message unless ``status`` is HP_OK."""
    if status == 0:
        return
    name = STATUS_NAMES[status] if 0 <= status < len(STATUS_NAMES) else f"status {status}"
    raise RuntimeFailure(library.hp_last_error().decode("utf-8", "replace"), status=name)
