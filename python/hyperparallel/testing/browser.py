# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chromium without a window, for tests and screenshots of pages: a small client of the DevTools protocol.

The protocol runs over two pipes (``--remote-debugging-pipe``: messages of JSON, each ended by a NUL), so that nothing
but the browser is needed and nothing listens on a port.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--disable-lcd-text",
    "--remote-debugging-pipe",
)
_SECONDS = 60.0
_KEYS = {
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
    "Enter": 13,
    "Escape": 27,
    "Home": 36,
    "End": 35,
}


def find_browser() -> str | None:
    """The path of an installed Chromium, or None."""
    return next((path for path in map(shutil.which, _NAMES) if path is not None), None)


class BrowserError(RuntimeError):
    """The browser ended, answered with an error, or did not answer in time."""


class Browser:
    """One page of a new Chromium with an empty profile.

    Attributes:
        console: What the page wrote to its console and every error that it did not catch, as (level, text).
        requests: The address of everything that the page asked for, itself included.
    """

    def __init__(self, path: str | None = None) -> None:
        found = path or find_browser()
        if found is None:
            raise BrowserError("no Chromium is installed")
        self.console: list[tuple[str, str]] = []
        self.requests: list[str] = []
        self._loaded = False
        self._number = 0
        self._profile = tempfile.TemporaryDirectory(prefix="hyperparallel-browser-", ignore_cleanup_errors=True)
        self._start(found)
        target = self._call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session: str | None = self._call("Target.attachToTarget", {"targetId": target, "flatten": True})[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _start(self, path: str) -> None:
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        # The browser reads from descriptor 3 and writes to 4; those that are duplicated must not be among them.
        high = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 16) for one in (theirs_in, theirs_out)]
        for one in (theirs_in, theirs_out):
            os.close(one)

        def place() -> None:
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self._session = None
        self._process = subprocess.Popen(
            [path, *_FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=place,
            pass_fds=(3, 4),
        )
        for one in high:
            os.close(one)
        self._in = os.fdopen(ours_in, "rb", buffering=0)
        self._out = os.fdopen(ours_out, "wb", buffering=0)
        os.set_blocking(ours_in, False)
        self._buffer = b""

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the browser."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._in.close()
        self._out.close()
        self._profile.cleanup()

    # The protocol ---------------------------------------------------------------------------------------------------

    def _message(self, end: float) -> dict[str, Any]:
        """The next message."""
        while b"\0" not in self._buffer:
            block = self._in.read(1 << 16)
            if block:
                self._buffer += block
            elif block == b"" or self._process.poll() is not None:
                raise BrowserError("the browser ended")
            elif time.monotonic() > end:
                raise BrowserError("the browser does not answer")
            else:
                time.sleep(0.002)
        text, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(text)

    def _call(self, method: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": dict(parameters)}
        if self._session is not None:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        end = time.monotonic() + _SECONDS
        while True:
            answer = self._message(end)
            if answer.get("id") == number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error'].get('message')}")
                return answer["result"]
            self._event(answer)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Calls a method of the protocol on the page."""
        return self._call(method, parameters)

    def _event(self, event: Mapping[str, Any]) -> None:
        parameters = event.get("params", {})
        match event.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Runtime.consoleAPICalled":
                text = " ".join(str(one.get("value", one.get("description"))) for one in parameters["args"])
                self.console.append((parameters["type"], text))
            case "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                self.console.append(("exception", details.get("exception", {}).get("description", details["text"])))
            case "Log.entryAdded":
                self.console.append((parameters["entry"]["level"], parameters["entry"]["text"]))
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])
            case _:
                pass

    # The page -------------------------------------------------------------------------------------------------------

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, promises awaited."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise BrowserError(f"{expression}: {details.get('exception', {}).get('description', details['text'])}")
        return result["result"].get("value")

    def wait_for(self, expression: str, seconds: float = _SECONDS) -> None:
        """Waits until an expression is true."""
        end = time.monotonic() + seconds
        while not self.evaluate(f"Boolean({expression})"):
            failed = any(level == "exception" for level, _ in self.console)
            if failed or time.monotonic() > end:
                raise BrowserError(f"it never came true: {expression}; console: {self.console}")
            time.sleep(0.02)

    def view(self, width: int, height: int, *, dark: bool = False, scale: float = 1.0, touch: bool = False) -> None:
        """Sets the size of the window in CSS pixels, and the colours that the system prefers."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=touch
        )
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def open(self, page: Path, ready: str = "document.documentElement.dataset.ready") -> None:
        """Opens a file and waits until it says that it is ready."""
        self.console.clear()
        self.requests.clear()
        self.call("Page.navigate", url=page.resolve().as_uri())
        self.wait_for(f"document.readyState === 'complete' && location.protocol === 'file:' && ({ready})")
        self.frame()

    def frame(self) -> None:
        """Waits until what was asked for is drawn."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def screenshot(self, path: Path, clip: Mapping[str, float] | None = None) -> None:
        """Writes a PNG of the window, or of a part of it: ``x``, ``y``, ``width``, ``height`` in CSS pixels."""
        options: dict[str, Any] = {"format": "png"}
        if clip is not None:
            options["clip"] = {**clip, "scale": 1}
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", **options)["data"]))

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Moves, presses, releases or turns the wheel: ``mouseMoved``, ``mousePressed``, ``mouseWheel``."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x: float, y: float) -> None:
        """Clicks at a place of the window."""
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1, buttons=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)
        self.frame()

    def key(self, name: str, *, shift: bool = False) -> None:
        """Presses a key: a letter, or a name such as ``ArrowLeft``."""
        common: dict[str, Any] = {"key": name, "modifiers": 8 if shift else 0}
        if name in _KEYS:
            common |= {"code": name, "windowsVirtualKeyCode": _KEYS[name]}
        text = {"text": "\r"} if name == "Enter" else {} if name in _KEYS else {"text": name}
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)
        self.frame()

    def type(self, text: str) -> None:
        """Types text into what has the focus."""
        self.call("Input.insertText", text=text)
        self.frame()


__all__ = ["Browser", "BrowserError", "find_browser"]
