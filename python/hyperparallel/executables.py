# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The package's executables: where they are, and console scripts that become them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn


def find(name: str) -> Path:
    """An executable of this package, such as ``hp-opt``.

    Raises:
        FileNotFoundError: The package's compiled parts are not there.
    """
    binary = Path(__file__).resolve().parent / "bin" / name
    if not binary.exists():
        raise FileNotFoundError(f"{binary} is missing: build it with `make build`, or install the package")
    return binary


def become(name: str) -> NoReturn:
    """Replaces this process by the executable, with this process's arguments."""
    try:
        binary = find(name)
    except FileNotFoundError as error:
        print(f"{name}: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    os.execv(binary, [str(binary), *sys.argv[1:]])
