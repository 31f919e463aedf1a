# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One name by rule: a pass is found by its flag, in lib/ and in test/; files say what they know."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from source_tree import ROOT, Pass, files, name, passes

PASSES = passes()
FORBIDDEN = re.compile(r"(?<![a-z])(utils?|common|helpers?|misc|manager|impl)(?![a-z])", re.I)
NAMED_BY_OTHERS = {"python/hyperparallel/dialects/_ods_common.py"}  # mlir-tblgen's files import it under this name
# Passes whose one error stands for a failure of upstream's code that no program is known to cause.
NEVER_REFUSE = {
    "hp-fold-views-into-contractions",
    "hp-fuse-elementwise",
    "hp-pack-contraction-operands",
    "hypershard-optimize-collectives",
}
CODE = list(files(".h", ".cpp", ".c", ".td", ".py", ".pyi"))


def flag_id(one: Pass) -> str:
    return one.flag


def mirror(one: Pass) -> Path:
    """Where the pass's tests belong: its path without lib/."""
    return ROOT / "test" / one.source.parent.relative_to(ROOT / "lib")


def test_there_are_passes() -> None:
    assert len(PASSES) >= 5
    assert len({one.flag for one in PASSES}) == len(PASSES)


@pytest.mark.parametrize("one", PASSES, ids=flag_id)
class TestPass:
    def test_has_its_file(self, one: Pass) -> None:
        assert one.source.exists(), f"{one.flag} belongs into {name(one.source)}"

    def test_flag_follows_from_the_name(self, one: Pass) -> None:
        assert one.flag in one.flags

    def test_is_described(self, one: Pass) -> None:
        assert one.has_description

    def test_has_its_tests(self, one: Pass) -> None:
        if one.flag.startswith("test-"):  # it is there for the tests of an analysis
            assert any(f"-{one.flag}" in path.read_text() for path in files(".mlir", under=("test",)))
            return
        tests = {path.name for path in mirror(one).rglob("*.mlir")}
        assert one.tests() & tests, f"{name(mirror(one))} shows nowhere what {one.flag} does"

    def test_what_it_refuses_is_tested(self, one: Pass) -> None:
        if one.flag in NEVER_REFUSE:
            pytest.skip("no program reaches its error")
        text = one.source.read_text() if one.source.exists() else ""
        refuses = re.search(r"\bemit(Op)?Error\(", text)
        tests = {path.name for path in mirror(one).rglob("*.mlir")}
        assert not refuses or one.tests("-invalid") & tests, f"{one.flag} has errors and no -invalid.mlir"


def test_files_are_named_by_what_they_know() -> None:
    words = {name(path): re.sub(r"(?<=[a-z])(?=[A-Z])", "_", path.stem) for path in CODE}
    assert {path for path, stem in words.items() if FORBIDDEN.search(stem)} <= NAMED_BY_OTHERS


@pytest.mark.parametrize(
    ("stem", "is_forbidden"),
    [("ShardUtils", True), ("common", True), ("my_helpers", True), ("Commonwealth", False), ("Reutilize", False)],
)
def test_the_rule_for_names(stem: str, is_forbidden: bool) -> None:
    assert bool(FORBIDDEN.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", stem))) == is_forbidden


def test_every_source_has_its_licence() -> None:
    licence = "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"
    bare = [name(path) for path in CODE if licence not in "".join(path.read_text().splitlines(keepends=True)[:4])]
    assert bare == []


def test_no_file_is_longer_than_600_lines() -> None:
    lengths = {name(path): len(path.read_text().splitlines()) for path in CODE}
    assert {path: length for path, length in lengths.items() if length > 600} == {}


def test_nothing_is_left_for_later() -> None:
    later = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    found = [
        f"{name(path)}:{number}"
        for path in CODE
        if path != Path(__file__)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if later.search(line)
    ]
    assert found == []


def test_tests_lie_where_their_sources_do() -> None:
    known = {"EndToEnd", "Property", "python", "unit", "structure", "lib", "Inputs"}
    folders = {path.parent.relative_to(ROOT / "test") for path in files(".mlir", under=("test",))}
    lost = [
        folder.as_posix()
        for folder in folders
        if not known & set(folder.parts) and not ((ROOT / "lib" / folder).is_dir() or (ROOT / folder).is_dir())
    ]
    assert lost == []
