# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The docs are true: generated pages are fresh, programs parse, commands print what is shown, links lead somewhere."""

from __future__ import annotations

import difflib
import doctest
import importlib
import importlib.util
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest
from source_tree import ROOT, files, name

from hyperparallel import hp_opt

PAGES = [ROOT / "README.md", *files(".md", under=("docs", "dialects"))]
WRITTEN = [page for page in PAGES if "docs/reference/" not in name(page)]
PROGRAM = re.compile(r"^([ \t]*)```mlir\n(.*?)^[ \t]*```", re.M | re.S)
LINK = re.compile(r"\[[^\]]+\]\(([^)#\s]+)[^)]*\)")
MODULES_WITH_EXAMPLES = [
    path for path in files(".py", under=("python/hyperparallel",)) if re.search(r"^\s*>>> ", path.read_text(), re.M)
]


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    """docs/generate.py, which is a script of no package."""
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def difference(page: str, is_there: str, should_be: str) -> str:
    lines = difflib.unified_diff(is_there.splitlines(), should_be.splitlines(), f"{page}", "anew", lineterm="", n=1)
    return "\n".join(lines)


def test_the_reference_is_fresh(generate: ModuleType) -> None:
    pages = generate.reference()
    there = {path.name: path.read_text() for path in generate.REFERENCE.glob("*.md")}
    assert sorted(there) == sorted(pages), "run `make docs`"
    stale = [difference(page, there[page], text) for page, text in pages.items() if there[page] != text]
    assert not stale, "docs/reference is not up to date; run `make docs`\n" + "\n".join(stale)


@pytest.mark.parametrize("page", ["README.md", "docs/Tour.md"])
def test_executed_blocks_show_what_happens(generate: ModuleType, page: str) -> None:
    text = (ROOT / page).read_text()
    assert generate.BLOCK.search(text), f"{page} shows nothing that was run"
    shown, anew = generate.comparable(text), generate.comparable(generate.executed(text))
    assert not difference(page, shown, anew), f"run `make docs`\n{difference(page, shown, anew)}"


@pytest.mark.parametrize("page", [*PAGES, *files(".td", under=("dialects", "lib"))], ids=name)
def test_programs_parse(page: Path, tmp_path: Path) -> None:
    for number, block in enumerate(PROGRAM.finditer(page.read_text())):
        program = tmp_path / f"{number}.mlir"
        program.write_text(textwrap.dedent(block[2]))
        run = subprocess.run(
            [hp_opt.path(), "--split-input-file", program], capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, f"a program of {name(page)} is wrong:\n{block[2]}\n{run.stderr}"


@pytest.mark.parametrize("page", WRITTEN, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = [target for target in LINK.findall(page.read_text()) if not target.startswith(("http", "mailto"))]
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", WRITTEN, ids=name)
def test_paths_that_are_named_exist(page: Path) -> None:
    """A path of the tree in backquotes, such as `lib/Pipelines/`."""
    named = re.findall(r"`((?:dialects|lib|python|test|docs|examples|benchmarks|cmake)/[\w./-]*)`", page.read_text())
    assert [path for path in named if "/X/" not in path and not (ROOT / path).exists()] == []  # X: any dialect


@pytest.mark.parametrize("path", MODULES_WITH_EXAMPLES, ids=name)
def test_examples_in_docstrings_run(path: Path) -> None:
    module = importlib.import_module(".".join(path.relative_to(ROOT / "python").with_suffix("").parts))
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("page", [page for page in WRITTEN if ">>> " in page.read_text()], ids=name)
def test_examples_in_pages_run(page: Path) -> None:
    """The ```python blocks of a page with prompts, from top to bottom in one namespace."""
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
    examples = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, name(page), str(page), 0)
    result = doctest.DocTestRunner().run(examples)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("folder", sorted((ROOT / "dialects").glob("*/*Dialect.td")), ids=name)
def test_every_dialect_says_why(folder: Path) -> None:
    rationale = folder.parent / "Rationale.md"
    assert rationale.exists()
    assert all(word in rationale.read_text().lower() for word in ("refused", "## relation to others"))
