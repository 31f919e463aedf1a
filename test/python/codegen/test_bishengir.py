# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ascend's compiler: found or named with the remedy, refused fragments shown, whole programs over the fake NPU."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ascend_fakes import use_fake_npu

from hyperparallel.bishengir import assemble_fragments, find_tool, object_file, read_soc, write_fragments
from hyperparallel.errors import CompilationError, MissingDependencyError

EXAMPLES = Path(__file__).parents[3] / "examples"
ATTRIBUTES = "attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>}"


def test_a_missing_compiler_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HP_BISHENGIR", str(tmp_path))
    with pytest.raises(MissingDependencyError, match=r"pip install ascendnpu-ir==1\.2\.0, or set HP_BISHENGIR"):
        find_tool("bishengir-compile")


def test_a_chip_is_asked_for_by_name() -> None:
    for name in ("Ascend910B1", "Ascend910B4-1", "Ascend910_9391"):
        assert read_soc(name) == name
    with pytest.raises(CompilationError, match="expected an Ascend chip, such as Ascend910B1, but got 'sm_90'"):
        read_soc("sm_90")


def test_a_program_without_fragments_needs_none(tmp_path: Path) -> None:
    if importlib.util.find_spec("ascendnpuir") is None and "HP_BISHENGIR" not in os.environ:
        pytest.skip("no ascendnpu-ir")
    (tmp_path / "kernels.mlir").write_text("module {\n}\n")
    assert assemble_fragments(tmp_path / "kernels.mlir", "Ascend910B1") == []
    assert (tmp_path / "kernels.launch").read_text() == ""


def test_the_fragment_that_is_refused_is_shown(tmp_path: Path) -> None:
    if importlib.util.find_spec("ascendnpuir") is None and "HP_BISHENGIR" not in os.environ:
        pytest.skip("no ascendnpu-ir")
    (tmp_path / "kernels.mlir").write_text(
        "module {\n"
        f"func.func @good(%a: tensor<8xf32>) -> (tensor<8xf32>) {ATTRIBUTES} {{\n"
        "  %0 = tensor.empty() : tensor<8xf32>\n"
        "  %1 = linalg.elemwise_unary {fun = #linalg.unary_fn<exp>} ins(%a : tensor<8xf32>)"
        " outs(%0 : tensor<8xf32>) -> tensor<8xf32>\n"
        "  return %1 : tensor<8xf32>\n}\n"
        f"func.func @bad(%a: tensor<8xf32>) -> (tensor<8xf32>) {ATTRIBUTES} {{\n"
        "  %0 = tensor.empty() : tensor<8xf32>\n"
        "  %1 = linalg.no_such_op ins(%a : tensor<8xf32>) outs(%0 : tensor<8xf32>) -> tensor<8xf32>\n"
        "  return %1 : tensor<8xf32>\n}\n"
        "}\n"
    )
    with pytest.raises(CompilationError, match="refused the fragment bad for Ascend910B1") as refused:
        assemble_fragments(tmp_path / "kernels.mlir", "Ascend910B1")
    assert any("linalg.no_such_op" in line for line in refused.value.diagnostics)


STAND_IN = """#!{python}
import pathlib, sys
here = pathlib.Path(__file__).parent
module, options = pathlib.Path(sys.argv[1]).read_text(), sys.argv[2:]
names = [line.split("@")[1].split("(")[0] for line in module.splitlines() if line.startswith("func.func")]
assert len(names) == 1, names
with (here / names[0]).open("a") as runs:
    runs.write("x")
if len((here / names[0]).read_text()) <= {refusals}.get(names[0], 0):
    sys.exit(f'loc("{{sys.argv[1]}}":3:1): error: operand #0 does not dominate this use')
folder = pathlib.Path(next(one for one in options if one.startswith("--save-temps=")).split("=")[1])
(folder / "module.hivm.opt.mlir").write_text(
    f"module {{{{\\n  func.func @{{names[0]}}(%a: i64) attributes {{{{hacc.block_dim = 4 : i64, "
    f"hivm.func_core_type = #hivm.func_core_type<AIV>}}}} {{{{\\n  }}}}\\n}}}}\\n"
)
pathlib.Path(options[options.index("-o") + 1]).write_text(names[0])
"""


def stand_in(folder: Path, refusals: dict[str, int]) -> None:
    """A compiler that refuses each fragment as often as it is told, and counts."""
    tool = folder / "bishengir-compile"
    tool.write_text(STAND_IN.format(python=sys.executable, refusals=refusals))
    tool.chmod(0o755)


def fragment(name: str, body: str = "") -> str:
    return f"func.func @{name}(%a: tensor<8xf32>) -> (tensor<8xf32>) {ATTRIBUTES} {{\n{body}  return %a : tensor<8xf32>\n}}\n"


def module_of(*fragments: str) -> str:
    return "module {\n" + "".join(fragments) + "}\n"


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a compiler that is looked for there, beside an empty cache."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("HP_BISHENGIR", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "bin"


def test_what_is_refused_by_accident_is_taken(tmp_path: Path, compiler: Path) -> None:
    """Each fragment is compiled alone, again where it was refused, and nothing is kept of what was refused by accident."""
    stand_in(compiler, {"first": 2, "second": 0})
    written: list[list[str]] = []

    def write(refused: list[str]) -> None:
        written.append(refused)
        (tmp_path / "kernels.mlir").write_text(module_of(fragment("first"), fragment("second", "  // other\n")))

    fragments = write_fragments(tmp_path / "kernels.mlir", "Ascend910B1", write)
    assert [(one.name, one.blocks, one.core) for one in fragments] == [("first", 4, "AIV"), ("second", 4, "AIV")]
    assert written == [[]]
    assert [len((compiler / name).read_text()) for name in ("first", "second")] == [3, 1]
    assert not (tmp_path / "cache").exists()
    assert (tmp_path / "kernels.launch").read_text() == "first 4\nsecond 4\n"
    assert [(tmp_path / object_file(name)).read_text() for name in ("first", "second")] == ["first", "second"]


def test_what_is_refused_three_times_is_cut_and_kept(tmp_path: Path, compiler: Path) -> None:
    """The next program knows. What was taken is not compiled again, but where its name changed."""
    stand_in(compiler, {"whole": 3})
    whole, half = fragment("whole", "  // whole\n"), fragment("half", "  // half\n")
    written: list[list[str]] = []

    def write(refused: list[str]) -> None:
        written.append(refused)
        parts = (half, fragment("renamed")) if refused else (whole, fragment("other"))
        (tmp_path / "kernels.mlir").write_text(module_of(fragment("same", "  // same\n"), *parts))

    assert len(write_fragments(tmp_path / "kernels.mlir", "Ascend910B1", write)) == 3
    assert [len(refused) for refused in written] == [0, 1]
    runs = {path.name: len(path.read_text()) for path in compiler.iterdir() if path.name != "bishengir-compile"}
    assert runs == {"same": 1, "whole": 3, "other": 1, "half": 1, "renamed": 1}
    assert len(write_fragments(tmp_path / "kernels.mlir", "Ascend910B1", write)) == 3
    assert [len(refused) for refused in written] == [0, 1, 1]


def test_what_does_not_come_to_an_end_is_refused_once(
    tmp_path: Path, compiler: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hyperparallel.bishengir._PATIENCE", 0.3)
    stand_in(compiler, {})
    (compiler / "bishengir-compile").write_text(
        f'#!/bin/sh\n[ "$1" = --help ] && exit\necho >>{tmp_path}/started\nexec sleep 100\n'
    )
    (tmp_path / "kernels.mlir").write_text(module_of(fragment("endless")))
    with pytest.raises(CompilationError, match=r"it did not come to an end within 0\.3 s"):
        assemble_fragments(tmp_path / "kernels.mlir", "Ascend910B1")
    assert len((tmp_path / "started").read_text()) == 1


def test_what_cannot_be_cut_is_an_error(tmp_path: Path, compiler: Path) -> None:
    stand_in(compiler, {"one": 100})

    def write(_: list[str]) -> None:
        (tmp_path / "kernels.mlir").write_text(module_of(fragment("one")))

    with pytest.raises(CompilationError, match="refused the fragment one for Ascend910B1") as refused:
        write_fragments(tmp_path / "kernels.mlir", "Ascend910B1", write)
    assert refused.value.diagnostics[0] == "operand #0 does not dominate this use"
    assert len((compiler / "one").read_text()) == 6


def hp(*words: str) -> str:
    """What a command prints, which succeeds."""
    command = [sys.executable, "-m", "hyperparallel.cli.main", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_perceptron_runs_over_the_fake_npu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_fake_npu(monkeypatch)
    program = tmp_path / "mlp"
    options = ["--preset", "megatron", "--mesh", "dp=1,tp=1", "--target", "ascend"]
    hp("compile", str(EXAMPLES / "mlp.py"), *options, "-o", str(program))
    report = json.loads((program / "kernels.json").read_text())
    coverage, called = report["coverage"], report["operations"]["library"]
    assert (coverage["host_fallbacks"], coverage["kernels"]) == (0, 2)
    assert called["add"] >= 1  # a bias that is all a launch would add
    told = json.loads(hp("run", str(program), "--check", "--tolerance", "1e-3", "--json"))
    assert told["max_rel_error"] < 1e-4
