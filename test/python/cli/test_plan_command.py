# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``hp plan`` says what a plan does, and refuses what does not fit, with one message and exit status 1."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def test_explains(hp: Callable[..., Any], model_dir: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text('mesh: {tp: 2}\nshard:\n  "layers.*.w": Shard(1)@tp\n  layers.1: Replicate()\n')
    outcome = hp("plan", model_dir, "--plan", plan, "--explain")
    assert outcome.status == 0
    assert f"{plan}:3: layers.*.w -> Shard(1)@tp" in outcome.out
    assert 'layers.0.w and 1 more: 10x10 f32 [{}, {"tp"}], 200 B per device each' in outcome.out
    assert "layers.1: 6x10 f32 [{}, {}]" in outcome.out
    assert "input x 6x10 240 B" in outcome.out
    described = json.loads(hp("plan", model_dir, "--plan", plan, "--json").out)
    assert described["devices"] == 2
    assert [rule["matched"] for rule in described["rules"]] == [["layers.0.w", "layers.1.w"], ["layers.1"]]
    resolved = json.loads(hp("plan", model_dir, "--plan", plan, "--resolved").out)
    assert resolved["blocks"] == {"layers.1": {"0": "[{}, {}]"}}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--mesh", "tp=2"), "expected a plan: --plan FILE, or --preset"),
        (("--preset", "fsdp"), "the plan names no mesh"),
        (("--preset", "fsdp", "--mesh", "tp"), "expected axes with sizes"),
        (("--preset", "fdsp", "--mesh", "tp=2"), "unknown preset 'fdsp'"),
        (("--preset", "fsdp", "--mesh", "tp=2", "--devices", "4"), "mesh tp=2 is 2 = 2 devices but 4 were asked for"),
        (("--plan", "absent.yaml", "--mesh", "tp=2"), "absent.yaml: there is no such plan file"),
        (("--preset", "megatron", "--mesh", "dp=2"), "has no axis for tensor parallelism"),
    ],
)
def test_refuses(hp: Callable[..., Any], model_dir: Path, words: tuple[str, ...], message: str) -> None:
    outcome = hp("plan", model_dir, *words)
    assert outcome.status == 1
    assert message in outcome.err
    assert "Traceback" not in outcome.err
    assert outcome.out == ""


def test_a_plan_with_a_preset_takes_no_other(hp: Callable[..., Any], model_dir: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text("preset: fsdp\n")
    outcome = hp("plan", model_dir, "--plan", plan, "--preset", "megatron", "--mesh", "tp=2")
    assert outcome.status == 1
    assert "leave one out" in outcome.err


def test_usage(hp: Callable[..., Any], model_dir: Path) -> None:
    assert hp().status == 2
    assert hp("plan").status == 2
    assert hp("shard", model_dir).status == 2
    assert hp("run", model_dir, "--repeat", "0").status == 2
    help_text = hp("--help")
    assert help_text.status == 0
    assert "import" in help_text.out
    assert hp("--version").out.startswith("hp 0.")
