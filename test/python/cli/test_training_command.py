# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training on the command line: steps, the comparison with PyTorch, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

EXAMPLES = Path(__file__).parents[3] / "examples"
SMALL = ("--model-arg", "layers=2", "--model-arg", "hidden=32", "-q")


def test_steps_are_a_training(hp: Callable[..., Any], tmp_path: Path) -> None:
    """The same from the model file, and from what was compiled of it."""
    file = EXAMPLES / "mlp_train.py"
    words = ("--steps", "3", "--check", "--json", "--results", tmp_path / "state.npz")
    outcome = hp("run", file, *SMALL, "--preset", "data_parallel", "--mesh", "dp=2", *words)
    assert outcome.status == 0, outcome.err
    report = json.loads(outcome.out)
    assert len(report["losses"]) == len(report["reference_losses"]) == 3
    assert report["losses"] == sorted(report["losses"], reverse=True)
    np.testing.assert_allclose(report["losses"], report["reference_losses"], rtol=1e-5)
    assert report["max_rel_error"] < 1e-4
    assert "head.weight" in report["max_rel_error_by_result"]
    with np.load(tmp_path / "state.npz") as state:
        assert {"loss", "head.weight", "head.weight.momentum_buffer"} <= set(state.files)

    program = tmp_path / "program"
    assert hp("compile", file, *SMALL, "--preset", "data_parallel", "--mesh", "dp=2", "-o", program).status == 0
    again = hp("run", program, "-q", *words)
    assert again.status == 0, again.err
    assert json.loads(again.out)["losses"] == report["losses"]
    one = json.loads(hp("run", program, "-q", "--json").out)
    assert one["losses"] == report["losses"][:1], "a run changes nothing that is saved"


def test_words_that_do_not_fit(hp: Callable[..., Any], model_dir: Path, tmp_path: Path) -> None:
    outcome = hp("run", model_dir, "--preset", "fsdp", "--mesh", "dp=2", "--steps", "2")
    assert outcome.status == 1
    assert (
        "keeps nothing from step to step; --steps is for a model file whose build() returns a Training" in outcome.err
    )
    file = EXAMPLES / "mlp_train.py"
    outcome = hp("run", file, *SMALL, "--preset", "fsdp", "--mesh", "dp=2", "--repeat", "2")
    assert outcome.status == 1
    assert "give --steps, not --repeat" in outcome.err
    outcome = hp("import", EXAMPLES / "mlp.py", "--train", "-o", tmp_path / "trained")
    assert outcome.status == 1
    assert "does not say how it is trained; let build() return a Training" in outcome.err
    assert not (tmp_path / "trained").exists()


def test_a_plan_says_in_how_many_parts_the_batch_is_taken(hp: Callable[..., Any], tmp_path: Path) -> None:
    """The plan of two stages of two devices: 1F1B over four microbatches, equal to PyTorch."""
    file, plan = EXAMPLES / "gpt2_train.py", EXAMPLES / "gpt2_train_pp2_tp2.yaml"
    outcome = hp("run", file, "--plan", plan, "-q", "--devices", "4", "--steps", "2", "--check", "--json")
    assert outcome.status == 0, outcome.err
    report = json.loads(outcome.out)
    assert report["devices"] == 4
    assert report["max_rel_error"] < 1e-4

    whole = tmp_path / "whole"
    assert hp("import", file, "-q", "-o", whole).status == 0
    outcome = hp("run", whole, "--plan", plan)
    assert outcome.status == 1
    assert f"takes the batch in 4 microbatches but {whole} was imported for 1; give the model file" in outcome.err
    outcome = hp("compile", EXAMPLES / "mlp.py", "--plan", plan, "-o", tmp_path / "program")
    assert outcome.status == 1
    assert "mlp.py is no training step; leave the number out" in outcome.err
