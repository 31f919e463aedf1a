# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``hp machine`` and ``hp cost``: what they print, and one message with file and line for what is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hyperparallel import machines

GOOD = """\
name: pair
groups:
  npu: {count: 2, memory: hbm, launch: 5 us, vector: 20 TFLOP/s, rates: {f32: 90 TFLOP/s}}
levels:
  node: {size: 2, latency: 1 us, bandwidth: 196 GB/s}
tiers:
  hbm: {scope: device, capacity: 64 GB, bandwidth: 1.6 TB/s}
segments:
  ub: {scope: device, bandwidth: 196 GB/s}
links:
  hbm -> hbm: {latency: 1 us, bandwidth: 180 GB/s, shared: [ub]}
"""
PROGRAM = """\
func.func @main(%a: tensor<8x16xf32>, %b: tensor<16x4xf32>, %c: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x4xf32>) outs(%c : tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""


def test_lists_the_presets(hp: Callable[..., Any]) -> None:
    outcome = hp("machine", "list")
    assert outcome.status == 0
    assert [line.partition(":")[0] for line in outcome.out.splitlines()] == list(machines.preset_names())
    listed = json.loads(hp("machine", "list", "--json").out)
    assert [entry["name"] for entry in listed] == list(machines.preset_names())


def test_shows_a_preset_with_its_standings(hp: Callable[..., Any]) -> None:
    shown = hp("machine", "show", "a3-node")
    assert shown.status == 0
    assert re.search(r"capacity: 64 GB +# V", shown.out)
    assert machines.parse_yaml(shown.out) == machines.load("a3-node")
    data = json.loads(hp("machine", "show", "a3-node", "--json").out)
    assert data["name"] == "a3-node"
    assert data["groups"][0]["count"] == 16


def test_checks_a_file(hp: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "pair.yaml"
    path.write_text(GOOD)
    outcome = hp("machine", "check", path)
    assert (outcome.status, outcome.out) == (0, "pair: 2 x npu; 1 network levels; tiers hbm; 1 links\n")
    assert json.loads(hp("machine", "check", path, "--json").out)["machine"] == "pair"


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("launch:", "lunch:", 3, "unknown key `lunch` of group `npu`; expected one of `count`, `memory`"),
        ("64 GB,", "64,", 7, "`capacity` of tier `hbm`: expected a size with its unit, such as `64 GB`, but got `64`"),
        ("180 GB/s", "-180 GB/s", 11, "expected `bandwidth` of link `hbm -> hbm` to be positive but got `-180 GB/s`"),
        ("hbm -> hbm", "pool -> hbm", 11, "expected link `pool -> hbm` to join tiers of `hbm` but got `pool`"),
        (
            "196 GB/s}\nlinks",
            "196 GB/s, within: ub}\nlinks",
            9,
            "segments not to lie within themselves but got ub -> ub",
        ),
    ],
)
def test_says_what_is_wrong_and_where(
    hp: Callable[..., Any], tmp_path: Path, old: str, new: str, line: int, message: str
) -> None:
    path = tmp_path / "pair.yaml"
    path.write_text(GOOD.replace(old, new))
    for command in ("check", "show"):
        outcome = hp("machine", command, path)
        assert (outcome.status, outcome.out) == (1, "")
        assert outcome.err.startswith(f"hp: error: {path}:{line}: ")
        assert message in outcome.err
        assert outcome.err.count("\n") == 1


def test_calibrate_refuses_a_place_that_is_not_there(hp: Callable[..., Any], tmp_path: Path) -> None:
    outcome = hp("machine", "calibrate", "-o", tmp_path / "none" / "x.yaml")
    assert (outcome.status, outcome.out) == (1, "")
    assert f"{tmp_path / 'none'} is no directory; make it first" in outcome.err


def test_costs_a_program(hp: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM)
    outcome = hp("cost", path, "--machine", "h200-node")
    assert outcome.status == 0
    assert outcome.out.startswith("machine h200-node\n")
    assert re.search(r"linalg.matmul +1.02 kFLOP +896 B +128 B", outcome.out)
    report = json.loads(hp("cost", path, "--json").out)
    assert report["machine"] == "cpu-supernode"
    assert report["functions"][0]["tasks"][0]["cost"]["flops"] == 1024


def test_cost_says_what_cannot_be_costed(hp: Callable[..., Any], tmp_path: Path) -> None:
    broken = tmp_path / "broken.mlir"
    broken.write_text("func.func @main(")
    for words, message in (
        ((tmp_path / "none.mlir",), "cannot read the file: No such file"),
        ((tmp_path,), "has no program to cost; expected a directory of hp compile or hp import"),
        ((broken,), "expected a program but it cannot be read"),
        ((broken, "--machine", "a4-node"), "expected"),
    ):
        outcome = hp("cost", *words)
        assert (outcome.status, outcome.out) == (1, "")
        assert message in outcome.err
        assert "Traceback" not in outcome.err
