# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lets tests here share files."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))  # for device_models
