# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The worker process: its death, in every way, is one clear error, and it never outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from hyperparallel.errors import ImportModelError
from hyperparallel.frontend import worker_process
from hyperparallel.frontend.torch import import_model
from hyperparallel.frontend.worker_process import Worker, worker_session


def staged(script: str) -> Worker:
    return Worker([sys.executable, "-c", script])


def test_exit_reports_status_and_last_words() -> None:
    script = "import sys; sys.stdin.readline(); sys.stderr.write('out of ideas\\n'); sys.exit(7)"
    with staged(script) as worker, pytest.raises(ImportModelError) as caught:
        worker.request({"graphs": []})
    assert "the import worker ended with exit status 7" in str(caught.value)
    assert "out of ideas" in str(caught.value)


def test_crash_reports_the_signal() -> None:
    with (
        staged("import os, signal, sys; sys.stdin.readline(); os.kill(os.getpid(), signal.SIGSEGV)") as worker,
        pytest.raises(ImportModelError, match=r"was ended by SIGSEGV; its last words:\n  \(it said nothing\)"),
    ):
        worker.request({"graphs": []})


def test_kill_hints_at_memory() -> None:
    with Worker() as worker:
        os.kill(worker.pid, signal.SIGKILL)
        with pytest.raises(ImportModelError, match=r"ended by SIGKILL \(the machine may be out of memory\)"):
            worker.request({"graphs": []})


def test_reply_that_stops_half_way() -> None:
    script = "import sys; sys.stdin.readline(); sys.stdout.write('100\\n{'); sys.stdout.flush()"
    with staged(script) as worker, pytest.raises(ImportModelError, match="ended with exit status 0"):
        worker.request({"graphs": []})


def test_reply_that_is_none() -> None:
    with (
        staged("import sys; sys.stdin.readline(); print('hello'); sys.stdin.read()") as worker,
        pytest.raises(ImportModelError, match="the import worker wrote what is no reply"),
    ):
        worker.request({"graphs": []})


def test_silence_runs_into_the_time_limit() -> None:
    with staged("import time; time.sleep(60)") as worker:
        with pytest.raises(ImportModelError, match=r"took longer than 0\.2 s and was stopped"):
            worker.request({"graphs": []}, timeout=0.2)
        assert not worker.alive


def test_exception_inside_the_worker_is_an_error_and_the_worker_goes_on() -> None:
    module = torch.nn.Linear(3, 2)
    with worker_session() as worker:
        assert "error" in worker.request({"graphs": [{"name": "main"}]})
        assert worker.alive
        assert import_model(module, (torch.ones(1, 3),)).results[0].shape == (1, 2)


def test_death_during_an_import_is_an_import_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "_shared", None)
    monkeypatch.setattr(worker_process, "Worker", lambda: staged("raise SystemExit('cannot load')"))
    with pytest.raises(ImportModelError, match=r"exit status 1; its last words:\n  cannot load"):
        import_model(torch.nn.Linear(3, 2), (torch.ones(1, 3),))


def test_file_called_torch_beside_the_user_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch.py").write_text("raise RuntimeError('wrong torch')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(worker_process, "_shared", None)
    assert import_model(torch.nn.Linear(3, 2), (torch.ones(1, 3),)).results[0].shape == (1, 2)


def running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_worker_dies_with_its_parent() -> None:
    script = (
        "import time; from hyperparallel.frontend.worker_process import Worker\n"
        "worker = Worker(); print(worker.pid, flush=True); time.sleep(60)"
    )
    source = str(Path(worker_process.__file__).parents[2])
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": source}
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert running(pid)
    time.sleep(1.0)  # it may still be starting; a parent that is gone by then is noticed as well
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 20
    while running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running(pid)
