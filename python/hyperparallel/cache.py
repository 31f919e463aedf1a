# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where things that can be made again are kept."""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory() -> Path:
    """``$XDG_CACHE_HOME/hyperparallel``, or ``~/.cache/hyperparallel``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "hyperparallel"
