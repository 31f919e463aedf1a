# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The headers are plain C11, and the public API works from C, with a back end loaded by name."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hyperparallel.runtime import find_library, find_openblas

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
HEADERS = ("hp_runtime.h", "hp_backend.h")


def compile_c(*arguments: str) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    warnings = ["-pedantic", "-Wall", "-Wextra", "-Wstrict-prototypes", "-Werror"]
    subprocess.run([compiler, "-std=c11", *warnings, f"-I{ROOT}", *arguments], check=True)


@pytest.mark.parametrize("header", HEADERS)
def test_headers_stand_alone(header: str, tmp_path: Path) -> None:
    source = tmp_path / "header.c"
    source.write_text(f'#include "lib/Runtime/{header}"\n#include "lib/Runtime/{header}"\n')
    compile_c("-fsyntax-only", str(source))


def test_public_api_from_c(tmp_path: Path) -> None:
    library = find_library()
    openblas = find_openblas()
    assert openblas is not None
    compile_c("-shared", "-fPIC", str(FOLDER / "test_backend.c"), "-o", str(tmp_path / "libhp_test.so"))
    program = tmp_path / "public_api"
    compile_c("-g", str(FOLDER / "public_api.c"), "-o", str(program), str(library), f"-Wl,-rpath,{library.parent}")
    ran = subprocess.run(
        [program, openblas],
        env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.stdout, ran.stderr, ran.returncode) == ("ok\n", "", 0)


def test_the_abi_is_exported_and_nothing_else() -> None:
    tool = shutil.which("nm")
    if tool is None:
        pytest.skip("no nm")
    listed = subprocess.run([tool, "-D", "--defined-only", find_library()], capture_output=True, text=True, check=True)
    exported = {line.split()[-1] for line in listed.stdout.splitlines()}
    headers = "".join((ROOT / "lib" / "Runtime" / header).read_text() for header in HEADERS)
    declared = set(re.findall(r"HP_API\s[^;()]*?\b(hp_\w+)\(", headers))
    assert exported == declared


def test_the_document_has_every_call_of_hosts() -> None:
    """Each once, in the table of ownership, order and errors; and none that is gone."""
    header = (ROOT / "lib" / "Runtime" / "hp_runtime.h").read_text()
    declared = {name for name in re.findall(r"\b(hp_\w+)\(", re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL))}
    declared = {name for name in declared if not name.startswith("hp_rt_")}
    page = (ROOT / "docs" / "Runtime.md").read_text()
    section = page.split("## Every call of hosts")[1].split("\n## ")[0]
    told = [
        name
        for line in section.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(hp_\w+)`", line.split("|")[1])
    ]
    assert sorted(told) == sorted(declared)
