# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Objects: cached by content, whole or not at all, the same for the same program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from codegen_cases import compile_text, run_program
from test_execution import elementwise, numbers

from hyperparallel import _hyperparallel
from hyperparallel.pipeline import make_context, parse_program

TEXT = elementwise("%m = arith.mulf %x, %x : f32 %r = math.tanh %m : f32", "40x33", "f32")


def compiled(text: str, path: Path, cache: Path) -> tuple[int, int]:
    """Objects of a program, and how many of them came from the cache."""
    return _hyperparallel.compile_program(parse_program(text, "test.mlir", make_context()), str(path), str(cache), 2)


def check(path: Path) -> None:
    x = numbers(40, 33)
    results, _ = run_program(path, [x])
    np.testing.assert_allclose(results[0][0], np.tanh(x * x), rtol=1e-6)


def test_the_second_time_nothing_is_compiled(tmp_path: Path) -> None:
    made, cached = compiled(TEXT, tmp_path / "a.so", tmp_path / "cache")
    assert made >= 1
    assert cached == 0
    assert compiled(TEXT, tmp_path / "b.so", tmp_path / "cache") == (made, made)
    check(tmp_path / "b.so")


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty"])
def test_damaged_entries_are_made_again(tmp_path: Path, damage: str) -> None:
    cache = tmp_path / "cache"
    made, _ = compiled(TEXT, tmp_path / "a.so", cache)
    entries = [path for path in cache.rglob("*") if path.is_file()]
    assert len(entries) == made
    for entry in entries:
        content = bytearray(entry.read_bytes())
        if damage == "flipped":
            content[len(content) // 2] ^= 0xFF
        entry.write_bytes({"truncated": content[: len(content) // 2], "flipped": content, "empty": b""}[damage])
    assert compiled(TEXT, tmp_path / "b.so", cache) == (made, 0)
    check(tmp_path / "b.so")
    assert compiled(TEXT, tmp_path / "c.so", cache) == (made, made)


def test_a_cache_that_cannot_be_written_is_no_cache(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("not a folder")
    assert compiled(TEXT, tmp_path / "a.so", blocker / "cache")[1] == 0
    check(tmp_path / "a.so")


def test_the_same_program_gives_the_same_bytes(tmp_path: Path) -> None:
    first = compile_text(TEXT, tmp_path / "a.so").read_bytes()
    assert compile_text(TEXT, tmp_path / "a.so").read_bytes() == first


def test_nothing_but_the_program_and_its_description_is_written(tmp_path: Path) -> None:
    compile_text(TEXT, tmp_path / "a.so")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.so"]


def test_without_a_c_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(ValueError, match="no C compiler to link with: 'no-such-compiler' is not on the PATH"):
        compile_text(TEXT, tmp_path / "a.so")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot write .*missing/a\.so"):
        compile_text(TEXT, tmp_path / "missing" / "a.so")


def test_entries_take_tensors_of_static_shape(tmp_path: Path) -> None:
    text = "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }"
    with pytest.raises(ValueError, match=r"tensors of static shape .* but got 'tensor<\?xf32>'"):
        compile_text(text, tmp_path / "a.so")
    assert list(tmp_path.iterdir()) == []
