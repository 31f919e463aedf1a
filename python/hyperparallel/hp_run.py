# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where hp-run is, and the console script that becomes it."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def path() -> Path:
    """The hp-run of this package.

    Raises:
        FileNotFoundError: The package's compiled parts are not there.
    """
    binary = Path(__file__).resolve().parent / "bin" / "hp-run"
    if not binary.exists():
        raise FileNotFoundError(f"{binary} is missing: build it with `make build`, or install the package")
    return binary


def main() -> None:
    """Becomes hp-run, with this process's arguments."""
    try:
        binary = path()
    except FileNotFoundError as error:
        print(f"hp-run: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    os.execv(binary, [str(binary), *sys.argv[1:]])
