# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes every .mlir file under test/, and every C program of test/CAPI, an item of pytest, run by lit.

lit is started once, for all the selected files; each item then reports its own file's result.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

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
