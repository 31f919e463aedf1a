# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The windows in which pages are looked at."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Screen:
    """A size of window and the colours that the system prefers."""

    width: int
    height: int
    dark: bool

    def __str__(self) -> str:
        return f"{self.width}-{'dark' if self.dark else 'light'}"


SCREENS = [Screen(width, height, dark) for width, height in ((1280, 900), (390, 844)) for dark in (False, True)]
