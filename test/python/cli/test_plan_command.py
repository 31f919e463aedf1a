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


def test_explains_what_leaves_the_device(hp: Callable[..., Any], model_dir: Path, tmp_path: Path) -> None:
    """Within a limit: what moves and what stays with the planner's figures, and what bounds the step."""
    words = ("--preset", "data_parallel", "--mesh", "dp=1", "--device-memory", "1MiB")
    roomy = json.loads(hp("plan", model_dir, *words, "--json").out)["memory"][""]
    assert {tensor["fate"] for tensor in roomy["plan"]["tensors"]} == {"kept"}
    limit = roomy["peak_bytes"] - 64
    words = (*words[:-1], f"{limit}B")
    outcome = hp("plan", model_dir, *words, "--explain", "--all")
    assert outcome.status == 0
    described = json.loads(hp("plan", model_dir, *words, "--json").out)
    report = described["memory"][""]
    program = tmp_path / "program"
    assert hp("compile", model_dir, *words, "-o", program).status == 0
    assert report == json.loads((program / "offload.json").read_text())
    assert report["device_memory"] == limit
    assert report["peak_bytes"] <= limit < report["unplanned_peak_bytes"] == roomy["peak_bytes"]
    plan = report["plan"]
    moved = {tensor["tensor"]: tensor for tensor in plan["tensors"] if tensor["fate"] == "moved"}
    kept = {tensor["tensor"] for tensor in plan["tensors"] if tensor["fate"] == "kept"}
    assert set(moved) == {move["tensor"] for move in plan["moves"]}
    assert set(moved) & {"layers.0.w", "layers.1.w"}
    assert f"{limit / 1024:.1f} KiB per device: peak {report['peak_bytes'] / 1024:.1f} KiB" in outcome.out
    assert f"(this one {plan['over_bound']:.2%} slower)" in outcome.out
    assert f"tightest is {plan['tightest_op_name']} (op {plan['tightest_op']}): " in outcome.out
    for name, tensor in moved.items():
        assert tensor["copy_s"] <= tensor["hidden_s"] + tensor["exposed_s"] + 1e-12
        assert f"    {name}: {tensor['bytes']} B to pool, " in outcome.out
    for name in kept:
        assert f"    {name}: " in outcome.out.split("kept on the device:")[1]
    # A limit that nothing fits is an error, as when it is compiled.
    refused = hp("plan", model_dir, *words[:-1], "512B")
    assert (refused.status, refused.out) == (1, "")
    assert "small does not fit into 512 bytes of device memory" in refused.err


def test_explains_what_leaves_the_devices_of_each_group(
    hp: Callable[..., Any], model_dir: Path, tmp_path: Path
) -> None:
    """A plan over groups has a report for each, the one that hp compile writes; a tensor is told of where it lives."""
    plan, program = tmp_path / "plan.yaml", tmp_path / "program"
    plan.write_text('mesh: {pp: 2}\noffload:\n  place: {"layers.1.w": pool}\n')
    words = ("--plan", plan, "--device-memory")
    limit = 1 << 20
    reports = json.loads(hp("plan", model_dir, *words, f"{limit}B", "--json").out)["memory"]
    first, second = reports
    assert hp("compile", model_dir, *words, f"{limit}B", "-o", program).status == 0
    weights = {first: ("layers.0.w", "kept"), second: ("layers.1.w", "moved")}
    for name, (weight, fate) in weights.items():
        report = reports[name]
        assert report == json.loads((program / name / "offload.json").read_text())
        assert report["device_memory"] == limit
        fates = {tensor["tensor"]: tensor["fate"] for tensor in report["plan"]["tensors"]}
        assert {key: value for key, value in fates.items() if key.startswith("layers.")} == {weight: fate}
    told = hp("plan", model_dir, *words, f"{limit}B", "--explain", "--all").out
    heads = [told.index(f"memory of {name}\n") for name in (first, second)]
    assert heads == sorted(heads)
    assert "    layers.0.w: " in told[heads[0] : heads[1]]
    assert "    layers.1.w: " in told[heads[1] :]
    # Which group it is that does not fit.
    refused = hp("plan", model_dir, *words, "512B")
    assert (refused.status, refused.out) == (1, "")
    assert f"small ({first}) does not fit into 512 bytes of device memory" in refused.err


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
