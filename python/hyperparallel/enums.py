# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""String enumerations, and the closed choices that several layers share.

``StrEnum`` is the standard library's from Python 3.11 on and a small equivalent on 3.10.
"""

from __future__ import annotations

import sys

if sys.version_info >= (3, 11):
    from enum import StrEnum
else:
    from enum import Enum

    class StrEnum(str, Enum):
        """An enumeration whose members are strings and print as their value."""

        def __str__(self) -> str:
            return str(self.value)

        @staticmethod
        def _generate_next_value_(name: str, start: int, count: int, last_values: list[str]) -> str:
            return name.lower()


class Role(StrEnum):
    """What an argument of the program's entry is: the values of ``hp.role``."""

    INPUT = "input"
    PARAMETER = "parameter"
    BUFFER = "buffer"
    OPTIMIZER = "optimizer"
    CACHE = "cache"


class StepPhase(StrEnum):
    """What part of a training step an operation belongs to: the values of ``hp.phase``."""

    FORWARD = "forward"
    BACKWARD = "backward"
    UPDATE = "update"


__all__ = ["Role", "StepPhase", "StrEnum"]
