# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where hp-run is, and the console script that becomes it."""

from __future__ import annotations

from pathlib import Path

from hyperparallel.executables import become, find


def path() -> Path:
    """The hp-run of this package.

    Raises:
        FileNotFoundError: The package's compiled parts are not there.
    """
    return find("hp-run")


def main() -> None:
    """Becomes hp-run, with this process's arguments."""
    become("hp-run")
