# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where hp-opt is, and the console script that becomes it."""

from __future__ import annotations

from pathlib import Path

from hyperparallel.executables import become, find


def path() -> Path:
    """The hp-opt of this package.

    Raises:
        FileNotFoundError: The package's compiled parts are not there.
    """
    return find("hp-opt")


def main() -> None:
    """Becomes hp-opt, with this process's arguments."""
    become("hp-opt")
