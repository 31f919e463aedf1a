# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``hp`` on PyTorch model files: checked runs, what is remembered of an import, and files that are no models."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

SOURCE = """
import torch
from torch import nn
from scale import SCALE

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        # As in the configurations of transformers: differs from process to process, and here from call to call.
        self._original_object_hash = id(object()) + int(torch.randint(1 << 40, ()))
        self.first = nn.Linear(6, width)
        self.second = nn.Linear(width, 5)
    def forward(self, x):
        return {"y": self.second(torch.tanh(self.first(x) * SCALE))}

def build(*, width: int = 8):
    # No seed: weights and inputs differ from run to run, which nothing that is remembered may depend on.
    return Net(width).eval(), (torch.randn(3, 6),)
"""


@pytest.fixture
def model_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model file with a module of its own beside it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "scale.py").write_text("SCALE = 3.0\n")
    path = tmp_path / "net.py"
    path.write_text(SOURCE)
    return path


def test_a_checked_run_and_what_is_remembered(
    hp: Callable[..., Any], model_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    def run(*words: object) -> dict[str, Any]:
        for name in ("scale", "hyperparallel_model_net"):
            sys.modules.pop(name, None)
        outcome = hp("run", model_file, "--preset", "megatron", "--mesh", "tp=3", "--check", "--json", *words)
        assert outcome.status == 0, outcome.err
        report: dict[str, Any] = json.loads(outcome.out)
        assert report["ok"]
        assert 0 < report["max_rel_error"] < 1e-5
        return report

    assert run()["cached"] == {"import": False, "compile": False}
    assert run()["cached"] == {"import": True, "compile": True}
    assert run("--model-arg", "width=10")["cached"] == {"import": False, "compile": False}
    assert run("--no-cache")["cached"] == {"import": False, "compile": False}
    # Another size too: Python's own cache of compiled modules goes by size and whole seconds.
    (tmp_path / "scale.py").write_text("SCALE = -5.25\n")
    assert run()["cached"] == {"import": False, "compile": False}
    model_file.write_text(SOURCE.replace("torch.tanh", "torch.sigmoid"))
    assert run()["cached"] == {"import": False, "compile": False}


def test_an_imported_model_is_checked_with_its_own_weights(
    hp: Callable[..., Any], model_file: Path, tmp_path: Path
) -> None:
    imported = tmp_path / "imported"
    assert hp("import", model_file, "-o", imported, "--model-arg", "width=9").status == 0
    outcome = hp("run", imported, "--preset", "fsdp", "--mesh", "dp=2", "--check", "--json")
    assert outcome.status == 0, outcome.err
    assert json.loads(outcome.out)["max_rel_error"] < 1e-5
    compiled = tmp_path / "compiled"
    assert hp("compile", imported, "--preset", "fsdp", "--mesh", "dp=2", "-o", compiled).status == 0
    outcome = hp("run", compiled, "--check", "--json")
    assert outcome.status == 0, outcome.err
    assert json.loads(outcome.out)["max_rel_error"] < 1e-5
    # A tolerance that float32 cannot meet is a failed check: the report is printed, and the status says so.
    outcome = hp("run", compiled, "--check", "--json", "--tolerance", "1e-30")
    assert outcome.status == 1
    assert json.loads(outcome.out)["ok"] is False
    assert "the results differ from PyTorch's" in outcome.err
    model_file.write_text(
        SOURCE.replace("width: int = 8", "width: int = 8, depth: int = 1").replace("Net(width)", "Net(7)")
    )
    outcome = hp("run", compiled, "--check")
    assert outcome.status == 1
    assert "no longer builds the model that was imported" in outcome.err


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "defines no function build()"),
        (SOURCE[: len(SOURCE) // 2], "net.py"),
        ("def build(:\n", "is not Python: line 1"),
        ("\x00", "is not Python"),
        ("build = 3\n", "defines no function build()"),
        ("def build():\n    raise ValueError('no such checkpoint')\n", "ValueError: no such checkpoint"),
        ("import no_such_package_here\n", "needs no_such_package_here, which is not installed"),
        ("def build():\n    return 1\n", "returned a int"),
    ],
)
@pytest.mark.parametrize("verb", ["import", "run"])
def test_files_that_are_no_models(
    hp: Callable[..., Any], model_file: Path, tmp_path: Path, verb: str, source: str, message: str
) -> None:
    model_file.write_text(source)
    target = tmp_path / "out"
    words = ("-o", target) if verb == "import" else ("--preset", "fsdp", "--mesh", "dp=2")
    outcome = hp(verb, model_file, *words)
    assert outcome.status == 1
    assert message in outcome.err
    assert outcome.err.count("hp: error:") == 1
    assert "Traceback" not in outcome.err
    assert not target.exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".out")]


def test_arguments_of_build(hp: Callable[..., Any], model_file: Path) -> None:
    words = ("--preset", "fsdp", "--mesh", "dp=2")
    assert "has no argument depth" in hp("plan", model_file, *words, "--model-arg", "depth=2").err
    assert "of the form key=value" in hp("plan", model_file, *words, "--model-arg", "width").err
