# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``hp compile`` for chips by name, and damaged bundles of devices: one clear error, whoever runs them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes import fake_libraries

import hyperparallel
from hyperparallel import hp_run, ptxas
from hyperparallel.bishengir import find_tool
from hyperparallel.errors import MissingDependencyError

Hp = Callable[..., Any]


@pytest.fixture
def tools() -> None:
    """What assembles kernels is at hand."""
    try:
        ptxas.find_ptxas()
        find_tool("bishengir-compile")
    except MissingDependencyError as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("cuda", "--arch", "sm_95"), "knows, such as sm_80, sm_90, sm_100 or sm_120, but got sm_95"),
        (("cuda", "--arch", "sm_80a"), "but got sm_80a"),
        (("cuda", "--arch", "sm_80,sm_95"), "ptxas refused the kernels for sm_95"),
        (("cuda", "--arch", "sm_75"), "sm_75 has no bf16"),
        (("cuda", "--arch", "hopper"), "expected architectures such as sm_80,sm_90 but got 'hopper'"),
        (("cuda", "--arch", ""), "expected architectures such as sm_80,sm_90 but got ''"),
        (("cuda", "--soc", "Ascend910B1"), "--soc is for the target ascend but the target is cuda"),
        (("cpu", "--arch", "sm_90"), "--arch is for the target cuda but the target is cpu"),
        (("ascend", "--arch", "sm_90"), "--arch is for the target cuda but the target is ascend"),
        (("ascend", "--soc", ""), "expected an Ascend chip, such as Ascend910B1, but got ''"),
        (("ascend", "--soc", "Ascend999"), "compiles for (Ascend910B1, "),
    ],
)
def test_wrong_chips(hp: Hp, model_dir: Path, tmp_path: Path, tools: None, options: tuple[str, ...], told: str) -> None:
    target, *chip = options
    outcome = hp("compile", model_dir, "--target", target, *chip, "-o", tmp_path / "program")
    assert outcome.status == 1
    assert told in outcome.err
    assert outcome.err.count("hp: error:") == 1
    assert "Traceback" not in outcome.err
    assert outcome.out == ""
    assert not (tmp_path / "program").exists()


def test_every_architecture_that_ptxas_has(hp: Hp, model_dir: Path, tmp_path: Path, tools: None) -> None:
    """From sm_80 on; those of one family, and of one chip, too."""
    said = subprocess.run([ptxas.find_ptxas(), "--help"], capture_output=True, text=True, check=True).stdout
    chips = sorted(set(re.findall(r"'(sm_(?:[89]|1\d)\d[af]?)'", said)))
    assert {"sm_80", "sm_90", "sm_90a", "sm_100"} <= set(chips)
    for chip in chips:
        made = hp(
            "compile", model_dir, "--target", "cuda", "--arch", chip, "-o", tmp_path / chip, "-q", "--json"
        ).told()
        assert made["kernels"]["kernels"]
        assert (tmp_path / chip / f"kernels.{chip}.cubin").stat().st_size > 0


def ran(program: Path, *options: object) -> subprocess.CompletedProcess[str]:
    """``hp-run`` of a bundle."""
    words = [str(hp_run.path()), str(program), *map(str, options)]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(params=["cuda", "ascend"])
def bundle(request: pytest.FixtureRequest, hp: Hp, model_dir: Path, tmp_path: Path, tools: None) -> Path:
    """The model, compiled for one GPU or NPU."""
    outcome = hp("compile", model_dir, "--target", request.param, "-o", tmp_path / "bundle", "-q")
    assert outcome.status == 0, outcome.err
    return tmp_path / "bundle"


@pytest.fixture
def on_fakes(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With fake libraries for it."""
    target = json.loads((bundle / "manifest.json").read_text())["target"]
    for variable, path in fake_libraries(target).items():
        monkeypatch.setenv(variable, path)
    monkeypatch.setenv("HP_FAKE_ASCEND_TWIN", f"'{sys.executable}' -m hyperparallel.testing.hfusion")
    monkeypatch.setenv("PYTHONPATH", str(Path(hyperparallel.__file__).parents[1]))


def test_a_missing_library_is_named_with_the_remedy(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no driver is, by ``hp run`` and by ``hp-run``."""
    target = json.loads((bundle / "manifest.json").read_text())["target"]
    variable, library = {"cuda": ("HP_LIBCUDA", "libcuda.so.1"), "ascend": ("HP_LIBASCENDCL", "libascendcl.so")}[target]
    monkeypatch.setenv(variable, str(tmp_path / "nowhere.so"))
    # In processes of their own: a library that another test has loaded would stay.
    by_python = subprocess.run(
        [sys.executable, "-m", "hyperparallel.cli.main", "run", str(bundle)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    by_itself = ran(bundle)
    for outcome in (by_python, by_itself):
        assert outcome.returncode == 1
        assert "Traceback" not in outcome.stderr
    for told in (by_python.stderr, by_itself.stderr):
        assert library in told
        assert f"or name the library in {variable}" in told
        assert told.count("error:") == 1


@pytest.mark.parametrize(
    ("name", "kept", "told"),
    [
        ("program.so", 1000, "the file is truncated or no shared object; compile it again"),
        ("program.so", -3000, "the file is truncated or no shared object; compile it again"),
        ("program.so", 0, "the file is truncated or no shared object; compile it again"),
        ("manifest.json", 300, "the file is damaged"),
        ("model.safetensors", 100, "model.safetensors is damaged: it is cut off"),
        ("inputs.npz", 200, "inputs.npz is damaged"),
    ],
)
def test_cut_off_bundles(hp: Hp, bundle: Path, on_fakes: None, name: str, kept: int, told: str) -> None:
    """The loader would die of SIGBUS."""
    whole = ran(bundle)
    assert whole.returncode == 0, whole.stderr
    file = bundle / name
    file.write_bytes(file.read_bytes()[:kept])
    outcome = ran(bundle)
    assert outcome.returncode == 1
    assert told in outcome.stderr
    assert outcome.stderr.count("error:") == 1
    assert outcome.stdout == ""
    by_python = hp("run", bundle)
    assert by_python.status == 1
    assert by_python.err.count("hp: error:") == 1
    assert "Traceback" not in by_python.err


def test_bundles_of_another_version(hp: Hp, bundle: Path) -> None:
    manifest = json.loads((bundle / "manifest.json").read_text())
    (bundle / "manifest.json").write_text(json.dumps({**manifest, "version": 99}))
    by_itself, by_python = ran(bundle), hp("run", bundle)
    assert (by_itself.returncode, by_python.status) == (1, 1)
    assert "does not describe a program of this version; compile the program again" in by_itself.stderr
    assert "has version 99, expected 1; compile the program again" in by_python.err
