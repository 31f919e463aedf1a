# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A browser for the whole session, and pages opened in it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hyperparallel.report import page
from hyperparallel.simulator.timeline import Timeline
from hyperparallel.testing.browser import Browser, find_browser

sys.path.insert(0, str(Path(__file__).parent))
from screens import SCREENS, Screen


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, where it is installed."""
    if find_browser() is None:
        pytest.skip("no Chromium is installed (apt-get install chromium)")
    with Browser() as one:
        yield one


@pytest.fixture(params=SCREENS, ids=str)
def screen(request: pytest.FixtureRequest) -> Screen:
    """Each screen in turn."""
    return request.param


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Callable[..., Browser]:
    """Opens the page of some timelines."""

    def opened(*timelines: Timeline, screen: Screen = SCREENS[0], **options: Any) -> Browser:
        path = tmp_path / "report.html"
        path.write_text(page(timelines, **options), encoding="utf-8")
        browser.view(screen.width, screen.height, dark=screen.dark, touch=screen.width < 500)
        browser.open(path)
        return browser

    return opened
