# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recorded steps and memory instances, which lie beside the project (or where ``HP_DATA`` says), not in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_DATA = Path(os.environ.get("HP_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))

#: Of each recorded step: its name, how long it takes in seconds, the most memory that is live and that one operation
#: needs, in GiB.
RECORDED_STEPS = [
    ("bert-base-256", 7.285, 47.76, 2.25),
    ("vit-1280", 3.716, 57.39, 1.91),
    ("inceptionv3-1536", 59.694, 133.92, 31.65),
    ("resnet152-1280", 112.589, 273.46, 15.31),
]


def recorded_file(kind: str, name: str) -> Path:
    """A file of ``traces`` or ``arena``; the test is skipped where it is not there."""
    path = _DATA / kind / name
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return path


def recorded_step(name: str) -> Path:
    """The file of a recorded step; the test is skipped where it is not there."""
    return recorded_file("traces", f"{name}.json.gz")
