# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where parameters live between steps: patterns, tiers, and when fetching costs nothing."""

from __future__ import annotations

import pytest

from hyperparallel import machines
from hyperparallel.errors import PlanError
from hyperparallel.plan import Plan, Program, ProgramTensor, TensorKind, explain, explain_json
from hyperparallel.plan.streaming import streaming_of

PROGRAM = Program(
    "net",
    (
        ProgramTensor(TensorKind.INPUT, "x", (8, 64), "bf16"),
        ProgramTensor(TensorKind.PARAMETER, "layers.0.fc.weight", (256, 64), "bf16"),
        ProgramTensor(TensorKind.PARAMETER, "layers.0.fc.bias", (256,), "bf16"),
        ProgramTensor(TensorKind.PARAMETER, "layers.1.fc.weight", (256, 64), "bf16"),
        ProgramTensor(TensorKind.PARAMETER, "layers.1.fc.bias", (256,), "bf16"),
    ),
)


def resolved(text: str):
    return Plan.parse(f"mesh: {{tp: 2}}\nshard:\n  'layers.*.fc.weight': Shard(0)@tp\n{text}", "p.yaml").resolve(
        PROGRAM
    )


def test_patterns_place_and_keep() -> None:
    plan = resolved("offload:\n  place: {'**.weight': pool, 'layers.1.fc.weight': disk}\n  keep: ['**.bias']")
    assert dict(plan.placements) == {
        "layers.0.fc.weight": "pool",
        "layers.1.fc.weight": "disk",
        "layers.0.fc.bias": None,
        "layers.1.fc.bias": None,
    }
    text = explain(plan)
    assert "in pool: layers.0.fc.weight" in text
    assert "in disk: layers.1.fc.weight" in text
    assert "on the device: layers.0.fc.bias, layers.1.fc.bias" in text
    assert "placements" not in plan.to_json()


def test_a_plan_without_placements_says_nothing_of_them() -> None:
    plan = resolved("")
    assert dict(plan.placements) == {}
    assert "between steps" not in explain(plan)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("offload: pool", r"p\.yaml:4: offload: expected place: patterns with tiers.*'pool'"),
        ("offload: {put: 1}", r"p\.yaml:4: offload: unknown key 'put'"),
        ("offload: {place: [a]}", r"expected place to be patterns with tiers but got \['a'\]"),
        ("offload: {keep: a}", r"expected keep to be a list of patterns but got 'a'"),
        ("offload: {place: {'**': 3}}", r"expected the name of a tier for '\*\*' but got 3"),
        ("offload: {place: {'**.wight': pool}}", r"p\.yaml:4: rule '\*\*\.wight' matches no parameter of net"),
        ("offload: {place: {'x': pool}}", r"matches no parameter of net"),
        (
            "offload: {place: {'**.weight': pool}, keep: ['layers.0.**']}",
            r"layers\.0\.fc\.weight is both placed in a tier.*leave one out",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        resolved(text)


def test_when_a_fetch_is_hidden() -> None:
    """At two bytes an element, FLOP/s over bandwidth tokens."""
    machine = machines.load("a3-node")
    plan = resolved("offload: {place: {'layers.*.fc.*': pool}}")
    weight, bias, *_ = streaming_of(plan, machine)
    group, link = machine.groups[0], machine.link("pool", machine.groups[0].memory)
    assert weight.local_bytes == 256 * 64 * 2 // 2
    assert weight.fetch_seconds == pytest.approx(link.latency + weight.local_bytes / link.bandwidth)
    rate = group.rates["bf16"] * group.efficiency
    assert weight.hidden_tokens == -(-rate // link.bandwidth)
    assert 0 < weight.exposed_seconds_per_fetch < weight.fetch_seconds
    assert bias.hidden_tokens is None
    assert f"if a fetch serves {weight.hidden_tokens} tokens or more" in explain(plan, machine=machine)
    data = explain_json(plan, machine)
    assert [entry["name"] for entry in data["streaming"]] == list(plan.placements)


def test_a_tier_that_the_machine_does_not_have() -> None:
    plan = resolved("offload: {place: {'layers.0.fc.weight': attic}}")
    with pytest.raises(PlanError, match=r"placed in attic, which no link of a3-node leads from.*place it in one of"):
        streaming_of(plan, machines.load("a3-node"))
