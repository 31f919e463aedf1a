# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finding the processes of a run over MPI, for tests that kill them."""

from __future__ import annotations

from pathlib import Path


def worker_of(rank: int, program: Path) -> int:
    """The process that does the work of a rank of hp-run: the child of the one that mpiexec started.

    Args:
        rank: The rank.
        program: The directory that hp-run was given.

    Raises:
        LookupError: There is no such process.
    """
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes().split(b"\0")
            environment = (entry / "environ").read_bytes().split(b"\0")
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        is_launcher = command[0].endswith(b"mpiexec")
        if not is_launcher and str(program).encode() in command and f"PMI_RANK={rank}".encode() in environment:
            parents[int(entry.name)] = parent
    for process, parent in parents.items():
        if parent in parents:
            return process
    raise LookupError(f"no hp-run of rank {rank} on {program}")


__all__ = ["worker_of"]
