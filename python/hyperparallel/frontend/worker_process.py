# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Starts the worker of ``worker.py``, feeds it, and turns its death into an error with its last words.

The worker is a fresh interpreter, not a fork: a fork of a process with running thread pools may hang, and would carry
our MLIR into the process that loads the other one. It is started before tracing begins, so that loading torch_mlir
costs no time on a second core.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from hyperparallel.errors import ImportModelError
from hyperparallel.frontend.worker import write_message

DEFAULT_TIMEOUT = 900.0
"""Seconds that one request may take."""

_shared: Worker | None = None


class Worker:
    """A running worker process; a context manager that ends it.

    Args:
        command: What to run instead of the worker; tests use it to stage failures.
    """

    def __init__(self, command: list[str] | None = None) -> None:
        package_root = str(Path(__file__).resolve().parents[2])
        inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        paths = [package_root, *(os.path.abspath(path) for path in inherited if path)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
        module = [sys.executable, "-X", "faulthandler", "-m", "hyperparallel.frontend.worker", str(os.getpid())]
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  (lives as long as the process)
        self._process = subprocess.Popen(
            command or module,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=environment,
            cwd=os.sep,  # a file torch.py where the user stands must not be taken for torch
        )

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The process id of the worker."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the worker can still take requests."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the worker, whatever it is doing."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def request(self, message: dict[str, Any], *, timeout: float = DEFAULT_TIMEOUT) -> dict[str, Any]:
        """Send a request and wait for the reply.

        Args:
            message: What ``worker.py`` understands.
            timeout: Seconds to wait.

        Raises:
            ImportModelError: The worker died, or did not answer in time.
        """
        assert self._process.stdin is not None
        try:
            write_message(self._process.stdin, message)
            return self._read_reply(time.monotonic() + timeout, timeout)
        except (BrokenPipeError, EOFError):
            raise self._death() from None
        except ValueError:
            self._process.kill()
            raise self._death("wrote what is no reply") from None

    def _read_reply(self, deadline: float, timeout: float) -> dict[str, Any]:
        import json

        data = bytearray()
        size: int | None = None
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while size is None or len(data) < size:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                self.close()
                raise ImportModelError(
                    f"lowering the model took longer than {timeout:g} s and was stopped; "
                    "import it blockwise, or allow more time"
                )
            chunk = os.read(descriptor, 1 << 20)
            if not chunk:
                raise EOFError
            data += chunk
            if size is None and b"\n" in data:
                head, _, rest = bytes(data).partition(b"\n")
                size, data = int(head), bytearray(rest)
        return json.loads(bytes(data))

    def _death(self, how: str | None = None) -> ImportModelError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        code = self._process.poll()
        if how is not None:
            pass
        elif code is None:
            how = "closed its output"
        elif code < 0:
            how = f"was ended by {signal.Signals(-code).name}"
            if -code == signal.SIGKILL:
                how += " (the machine may be out of memory)"
        else:
            how = f"ended with exit status {code}"
        self._stderr.seek(0)
        words = [line for line in self._stderr.read().decode(errors="replace").splitlines() if line.strip()]
        last = "\n".join(f"  {line}" for line in words[-12:]) or "  (it said nothing)"
        return ImportModelError(f"the import worker {how}; its last words:\n{last}")


def current_worker() -> Worker | None:
    """Return the worker of the session that is open, if it is alive."""
    return _shared if _shared is not None and _shared.alive else None


@contextlib.contextmanager
def worker_session() -> Generator[Worker]:
    """Keep one worker for all imports inside the ``with`` block, instead of one for each.

    Example:
        >>> from hyperparallel.frontend.worker_process import worker_session
        >>> with worker_session() as worker:  # import_model(...) any number of times
        ...     worker.alive
        True
    """
    global _shared
    if _shared is not None and _shared.alive:
        yield _shared
        return
    with Worker() as worker:
        _shared = worker
        try:
            yield worker
        finally:
            _shared = None
