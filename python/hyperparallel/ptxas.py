# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Assembling kernels: PTX to cubins, one for each architecture, with what NVIDIA's ``ptxas`` says of each kernel.

``ptxas`` is looked for in ``$HP_PTXAS``, on the ``PATH``, in ``$CUDA_HOME/bin``, and in the ``nvidia-cuda-nvcc`` wheels.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hyperparallel.errors import CompilationError, MissingDependencyError

DEFAULT_ARCHITECTURE = "sm_90"
_KNOWN = re.compile(r"sm_(\d+)[af]?")
_OLDEST = 80
_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_KERNEL = re.compile(r"^\.visible \.entry (\w+)", re.MULTILINE)
_ACCESS = re.compile(r"\b(ld|st)\.global(?:\.(?!v\d)[a-z]\w*)*?(?:\.v(\d))?\.[a-z]+(\d+)\s")


@dataclasses.dataclass(frozen=True, slots=True)
class KernelResources:
    """What a kernel takes of a multiprocessor.

    Attributes:
        name: The kernel.
        architecture: Such as ``sm_90``.
        registers: Of each thread.
        spill_stores: Bytes that a thread spills to memory.
        spill_loads: Bytes that it reads back.
        shared_bytes: Memory that the threads of a block share.
        loads: Instructions that read the device's memory, by how many bytes a thread gets at once.
        stores: Those that write it.
    """

    name: str
    architecture: str
    registers: int
    spill_stores: int
    spill_loads: int
    shared_bytes: int
    loads: Mapping[int, int] = dataclasses.field(default_factory=dict[int, int])
    stores: Mapping[int, int] = dataclasses.field(default_factory=dict[int, int])


def read_architectures(text: str) -> tuple[str, ...]:
    """The architectures of ``sm_80,sm_90``, oldest first, each once.

    Raises:
        CompilationError: If one is malformed, or older than kernels can be made for.
    """
    found: dict[str, int] = {}
    for part in (piece.strip() for piece in text.split(",")):
        match = _KNOWN.fullmatch(part)
        if match is None:
            raise CompilationError(f"expected architectures such as sm_80,sm_90 but got {part!r}")
        if int(match.group(1)) < _OLDEST:
            raise CompilationError(f"{part} has no bf16; the oldest architecture that kernels are made for is sm_80")
        found[part] = int(match.group(1))
    return tuple(sorted(found, key=lambda name: (found[name], name)))


def find_ptxas() -> Path:
    """Where ``ptxas`` is.

    Raises:
        MissingDependencyError: If it is nowhere.
    """
    named = os.environ.get("HP_PTXAS") or shutil.which("ptxas")
    if named:
        return Path(named)
    home = os.environ.get("CUDA_HOME")
    places = [Path(home) / "bin" / "ptxas"] if home else []
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        places += sorted(Path(folder).glob("*/bin/ptxas"))
    for place in places:
        if place.is_file():
            return place
    raise MissingDependencyError(
        "ptxas", needed_for="compiling for the target cuda", install="pip install nvidia-cuda-nvcc, or set HP_PTXAS"
    )


def assemble(ptx: Path, architectures: Sequence[str], threads: int = 0) -> list[KernelResources]:
    """Writes ``NAME.sm_NN.cubin`` beside a file of PTX, for each architecture.

    Args:
        ptx: The kernels, for the oldest of the architectures.
        architectures: What to assemble for.
        threads: How many to assemble at a time; 0 for all cores.

    Returns:
        What each kernel takes on each architecture.

    Raises:
        MissingDependencyError: If there is no ``ptxas``.
        CompilationError: If it refuses the kernels.
    """
    tool, accesses = find_ptxas(), read_accesses(ptx.read_text(encoding="utf-8"))
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        jobs = [pool.submit(_assemble_for, tool, ptx, architecture) for architecture in architectures]
        found = [kernel for job in jobs for kernel in job.result()]
    return [dataclasses.replace(kernel, **accesses[kernel.name]) for kernel in found]


def read_accesses(ptx: str) -> dict[str, dict[str, Mapping[int, int]]]:
    """How wide the accesses of the device's memory are, by kernel: ``loads`` and ``stores``, each by bytes of a thread.

    Args:
        ptx: Kernels as text.
    """
    parts = _KERNEL.split(ptx)
    found: dict[str, dict[str, Mapping[int, int]]] = {}
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        counts: dict[str, Counter[int]] = {"ld": Counter(), "st": Counter()}
        for way, lanes, bits in _ACCESS.findall(body):
            counts[way][int(lanes or 1) * int(bits) // 8] += 1
        found[name] = {"loads": dict(sorted(counts["ld"].items())), "stores": dict(sorted(counts["st"].items()))}
    return found


def _assemble_for(tool: Path, ptx: Path, architecture: str) -> list[KernelResources]:
    target = ptx.with_name(f"{ptx.stem}.{architecture}.cubin")
    ran = subprocess.run(
        [tool, f"-arch={architecture}", "-v", ptx, "-o", target], capture_output=True, text=True, check=False
    )
    if ran.returncode != 0:
        raise CompilationError(
            f"ptxas refused the kernels for {architecture}", diagnostics=(ran.stderr or ran.stdout).splitlines()[:20]
        )
    return _read_resources(ran.stderr + ran.stdout, architecture)


def _read_resources(text: str, architecture: str) -> list[KernelResources]:
    found: list[KernelResources] = []
    for part in re.split(r"(?=ptxas info\s+: Compiling entry function)", text):
        entry = _ENTRY.search(part)
        if entry is None:
            continue
        spills, registers, shared = _SPILLS.search(part), _REGISTERS.search(part), _SHARED.search(part)
        found.append(
            KernelResources(
                entry.group(1),
                architecture,
                int(registers.group(1)) if registers else 0,
                int(spills.group(2)) if spills else 0,
                int(spills.group(3)) if spills else 0,
                int(shared.group(1)) if shared else 0,
            )
        )
    return sorted(found, key=lambda kernel: kernel.name)


__all__ = ["DEFAULT_ARCHITECTURE", "KernelResources", "assemble", "find_ptxas", "read_accesses", "read_architectures"]
