# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans with groups of devices: what they say, and what is refused."""

from __future__ import annotations

import pytest

from hyperparallel.errors import PlanError
from hyperparallel.plan import GroupedPlan, Plan, Program, ProgramTensor, Schedule, TensorKind, explain_groups

PROGRAM = Program(
    "pair",
    (
        ProgramTensor(TensorKind.INPUT, "x", (8, 4), "f32"),
        ProgramTensor(TensorKind.PARAMETER, "h.0.w", (4, 4), "f32"),
        ProgramTensor(TensorKind.PARAMETER, "h.1.w", (4, 4), "f32"),
        ProgramTensor(TensorKind.BLOCK, "h.0", (8, 4), "f32"),
        ProgramTensor(TensorKind.BLOCK, "h.0#1", (8, 4), "f32"),
        ProgramTensor(TensorKind.BLOCK, "h.1", (8, 4), "f32"),
    ),
)


def fit(text: str, mesh: str | None = None, devices: int | None = None) -> GroupedPlan:
    plan = Plan.parse(text, "p.yaml").fit(PROGRAM, mesh, devices)
    assert isinstance(plan, GroupedPlan)
    return plan


def test_an_axis_stands_for_groups() -> None:
    plan = fit("mesh: {pp: 2, tp: 3}\nschedule: 1f1b\nmicrobatches: 4\n")
    assert [str(group.mesh) for group in plan.groups.groups] == ["tp=3", "tp=3"]
    assert plan.groups.first_device("stage1") == 3
    assert plan.groups.schedule is Schedule.ONE_F_ONE_B
    assert plan.mesh.num_devices == 6
    assert plan.to_json() == {
        "groups": [{"name": "stage0", "axes": [["tp", 3]]}, {"name": "stage1", "axes": [["tp", 3]]}],
        "stages": [{"group": "stage0"}, {"group": "stage1"}],
    }


def test_a_pipeline_alone_has_groups_of_one_device() -> None:
    assert fit("preset: data_parallel\n", "pp=3").groups.num_devices == 3


def test_groups_may_be_unequal_and_stages_are_found_by_path() -> None:
    plan = fit('groups: {a: tp=1, b: "dp=1,tp=3"}\nstages: {a: "*.0", b: [h.1]}\n', devices=4)
    assert plan.stage_paths == (("h.0",), ("h.1",))
    assert "stage 0 on a: h.0" in explain_groups(plan)


def test_more_stages_than_groups_are_dealt_out_in_turns() -> None:
    assert [stage.group for stage in fit("groups: {a: tp=1, b: tp=1}\nstages: 4\n").groups.stages] == list("abab")


def test_a_mesh_instead_of_groups_keeps_their_names() -> None:
    plan = fit("groups: {a: tp=1, b: tp=1}\n", "pp=2,dp=2")
    assert [(group.name, str(group.mesh)) for group in plan.groups.groups] == [("a", "dp=2"), ("b", "dp=2")]


def test_a_schedule_with_options() -> None:
    plan = fit('mesh: {pp: 2, tp: 1}\nschedule: {name: 1f1b, memory: 2MiB, before: ["F0.1 < B0.0"]}\n').groups
    assert (plan.schedule, plan.memory, plan.before) == (Schedule.ONE_F_ONE_B, 2 << 20, ("F0.1<B0.0",))
    assert fit("mesh: {pp: 2, tp: 1}\nschedule: {memory: 1000}\n").groups.schedule is Schedule.AUTO


def test_groups_may_have_less_memory_than_others() -> None:
    groups = fit("groups: {a: {mesh: tp=1, memory: 2MiB}, b: tp=1}\n").groups
    assert groups.memory_of(None) == {"a": 2 << 20}
    assert groups.memory_of(1000) == {"a": 2 << 20, "b": 1000}
    assert fit("mesh: {pp: 2, tp: 1}\n").groups.memory_of(None) == {}


def test_rules_are_for_what_a_group_has() -> None:
    plan = fit('mesh: {pp: 2, tp: 2}\nshard: {h.0.w: Shard(0)@tp, "input:x": Shard(0)@tp}\n')
    own = Program("pair (stage1)", (ProgramTensor(TensorKind.PARAMETER, "h.1.w", (4, 4), "f32"),))
    assert plan.for_group("stage1", own).tensors == ()
    assert len(plan.for_group("stage0", PROGRAM).tensors) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stages: 2\n", "p.yaml:1: stages needs groups of devices"),
        ("mesh: {dp: 2}\nschedule: 1f1b\n", "p.yaml:2: schedule needs groups of devices"),
        ("mesh: {dp: 2}\ngroups: {a: tp=1}\n", "groups have meshes of their own; leave out mesh"),
        ("groups: 3\n", "expected groups with their meshes"),
        ("groups: {a: 3}\n", "group a: expected a mesh, such as tp=2, but got 3"),
        ("groups: {a: {mesh: tp=1, memory: 0}}\n", "group a: memory: expected a size, such as 2GiB, but got 0"),
        ("groups: {a: {mesh: tp=1, size: 2}}\n", "group a: unknown key 'size'; expected mesh or memory"),
        ("groups: {a: tp}\n", "group a: mesh: expected axes with sizes"),
        (
            "groups: {a: tp=1, b: tp=1}\nstages: 3\n",
            "expected a multiple of the 2 groups as the number of stages but got 3",
        ),
        ("groups: {a: tp=1}\nstages: {c: h.0}\n", "stages: there is no group 'c'; there are a"),
        ("groups: {a: tp=1, a: tp=2}\n", "p.yaml:1: 'a' is written twice (first on line 1)"),
        ("mesh:\n  pp: 2\n  pp: 3\n", "p.yaml:3: 'pp' is written twice (first on line 2)"),
        ("groups: {a/../b: tp=1}\n", "expected a word of letters, digits, _ and - as the name of a group"),
        ("groups: {main: tp=1}\n", "other than main and ir, but got 'main'"),
        ("groups: {a: tp=1, b: tp=1}\nstages: {a: h.0}\n", "the group 'b' has no stage; give it one, or leave the"),
        ("groups: {a: tp=1}\nstages: {a: 3}\n", "stages: a: expected paths of blocks but got 3"),
        ("groups: {a: tp=1}\nstages: [a]\n", "expected each stage as {group: paths} but got 'a'"),
        ("groups: {a: tp=1}\nstages: nothing\n", "expected a number of stages, or groups with the paths"),
        ("groups: {a: tp=1}\nschedule: slow\n", "unknown schedule 'slow'; there are gpipe, 1f1b"),
        ("groups: {a: tp=1}\nschedule: {speed: 1}\n", "schedule: unknown key 'speed'; expected name, memory or before"),
        ("groups: {a: tp=1}\nschedule: {name: slow}\n", "unknown schedule 'slow'"),
        ("groups: {a: tp=1}\nschedule: {memory: much}\n", "schedule: memory: "),
        ("groups: {a: tp=1}\nschedule: {memory: 0}\n", "schedule: memory: expected a size, such as 2GiB, but got 0"),
        ("groups: {a: tp=1}\nschedule: {before: F0.1 < B0.0}\n", "schedule: before: expected a list of rules"),
        ("groups: {a: tp=1}\nschedule: {before: [F0 < B0.0]}\n", "expected a rule such as F0.3 < B1.0"),
        ("groups: {a: tp=1}\nmicrobatches: 0\n", "expected a number of microbatches of at least 1 but got 0"),
        ("groups: {a: tp=1}\nstages: {a: h.7}\n", "'h.7' matches no block of pair; its blocks are h.0, h.1"),
        ("groups: {a: tp=1, b: tp=1}\nstages: {a: h.0, b: 'h.*'}\n", "block h.0 is in two stages"),
        ("groups: {a: tp=1}\nshard: {y: Shard(0)@tp}\n", "rule 'y' matches nothing in pair"),
    ],
)
def test_refuses(text: str, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        fit(text)
    assert message in str(caught.value)


def test_refuses_another_number_of_devices_and_groups() -> None:
    with pytest.raises(PlanError, match="are 2 devices but 3 were asked for"):
        fit("groups: {a: tp=1, b: tp=1}\n", devices=3)
    with pytest.raises(PlanError, match="the plan has 2 groups but the mesh pp=3 makes 3"):
        fit("groups: {a: tp=1, b: tp=1}\n", "pp=3")
    with pytest.raises(PlanError, match="a mesh instead of them needs an axis pp, but got tp=2"):
        fit("groups: {a: tp=1, b: tp=1}\n", "tp=2")
