# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes every .mlir file under test/, and every C program of test/CAPI, an item of pytest, run by lit.

lit is started once, for all the selected files; each item then reports its own file's result.

Several processes may share the tests (`pytest -n 2 --dist loadgroup`, what `make test` does): a file stays in one of
them, so do all the items of lit, the longest room goes first, and a test that measures time (`@pytest.mark.alone`) waits
until nothing else runs.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings

# Of PyTorch, for models that are all small: its threads wait for each other by spinning, and the cores are shared.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The same examples on every run; HP_PROPERTY_EXAMPLES asks for new ones.
settings.register_profile("same", derandomize=True)
settings.register_profile("new", derandomize=False)
settings.load_profile("new" if os.environ.get("HP_PROPERTY_EXAMPLES") else "same")

TEST_ROOT = Path(__file__).resolve().parent
RESULTS = pytest.StashKey[dict[Path, dict[str, str]]]()
GOOD = {"PASS", "XFAIL", "FLAKYPASS"}


def run_lit(files: list[Path]) -> dict[Path, dict[str, str]]:
    """Runs lit over the files; the result of each, as lit's JSON report has it."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "lit.json"
        command = [sys.executable, "-c", "from lit.main import main; main()", "-v", "--order=lexical"]
        ran = subprocess.run(
            [*command, f"--output={report}", *map(str, files)], capture_output=True, text=True, check=False
        )
        if not report.exists():
            raise RuntimeError(f"lit did not run:\n{ran.stdout}{ran.stderr}")
        tests = json.loads(report.read_text())["tests"]
    prefix = "HyperParallel :: "
    return {TEST_ROOT / test["name"].removeprefix(prefix): test for test in tests}


class LitFailure(Exception):
    """What lit printed about a file that failed."""


class LitItem(pytest.Item):
    """One file with RUN lines."""

    def runtest(self) -> None:
        stash = self.session.stash
        if RESULTS not in stash:
            stash[RESULTS] = run_lit([item.path for item in self.session.items if isinstance(item, LitItem)])
        result = stash[RESULTS].get(self.path)
        if result is None:
            raise LitFailure("lit did not report on this file")
        if result["code"] == "UNSUPPORTED":
            pytest.skip("unsupported here")
        if result["code"] not in GOOD:
            raise LitFailure(f"{result['code']}\n{result['output']}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        if isinstance(excinfo.value, LitFailure):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, str(self.path.relative_to(TEST_ROOT))


class LitFile(pytest.File):
    """A file with RUN lines: one item."""

    def collect(self) -> Iterator[LitItem]:
        yield LitItem.from_parent(self, name=self.path.name)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> LitFile | None:
    is_c_api = file_path.suffix == ".c" and file_path.parent.name == "CAPI"
    if (file_path.suffix == ".mlir" or is_c_api) and "Inputs" not in file_path.parts:
        return LitFile.from_parent(parent, path=file_path)
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Among several processes: which items stay together, and what is begun first."""
    if not config.pluginmanager.hasplugin("xdist"):
        return
    for item in items:
        group = "lit" if isinstance(item, LitItem) else str(item.path.relative_to(TEST_ROOT))
        item.add_marker(pytest.mark.xdist_group(group))
    if is_worker(config):
        items.sort(key=lambda item: "EndToEnd" not in item.path.parts)


def is_worker(config: pytest.Config) -> bool:
    """Whether this process is one of several that share the tests."""
    return hasattr(config, "workerinput")


@contextmanager
def locked(path: Path, how: int) -> Iterator[None]:
    """Holds a lock of the kind `how` on the file."""
    with path.open("w") as file:
        fcntl.flock(file, how)
        yield


@pytest.fixture(autouse=True)
def _alone(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Lets a test marked `alone` run while no other process runs a test.

    All tests share a lock, and this one holds it for itself. A gate that everyone passes first, and that it keeps shut
    while it waits, keeps the others from going ahead of it for ever.
    """
    if not is_worker(request.config):
        yield
        return
    folder = tmp_path_factory.getbasetemp().parent  # the one that the processes share
    how = fcntl.LOCK_EX if request.node.get_closest_marker("alone") else fcntl.LOCK_SH
    with (folder / "running").open("w") as running:
        with locked(folder / "gate", fcntl.LOCK_EX):
            fcntl.flock(running, how)
        yield
