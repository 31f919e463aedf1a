# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Named schedules cost what theory says, fit in memory, and never wait in a circle; other orders are refused in words."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest

from hyperparallel.schedules import (
    Edge,
    Kind,
    Problem,
    ScheduleError,
    ScheduleName,
    Task,
    actions_of,
    check_order,
    draw,
    find_deadlock,
    pipeline,
    schedule,
)

GPIPE, ONE_F_ONE_B, INTERLEAVED, H1, AUTO = ScheduleName
STAGES, MICROBATCHES = range(2, 7), range(1, 10)


def split(name: ScheduleName) -> bool:
    return name is H1


@pytest.mark.parametrize("name", [GPIPE, ONE_F_ONE_B])
def test_bubble_of_balanced_stages(name: ScheduleName) -> None:
    for stages in STAGES:
        for microbatches in MICROBATCHES:
            result = schedule(pipeline(stages=stages, microbatches=microbatches), name)
            assert result.bubble == pytest.approx((stages - 1) / (microbatches + stages - 1))


@pytest.mark.parametrize("chunks", [1, 2, 3, 4])
def test_bubble_of_interleaved_stages_whether_or_not_rounds_divide(chunks: int) -> None:
    for groups in STAGES:
        for microbatches in range(groups, 2 * groups + 6):
            problem = pipeline(stages=groups * chunks, groups=groups, microbatches=microbatches)
            # One chunk runs further ahead than 1F1B does, to the same end.
            bubble = (groups - 1) / (chunks * microbatches + groups - 1)
            assert schedule(problem, INTERLEAVED).bubble == pytest.approx(bubble)


def test_bubble_of_zero_bubble_h1() -> None:
    for stages in STAGES:
        for microbatches in range(stages, 10):
            result = schedule(pipeline(stages=stages, microbatches=microbatches, split_backward=True), H1)
            assert result.bubble == pytest.approx((stages - 1) / (3 * microbatches + stages - 1))
            assert result.peak_live == (stages,) * stages


def test_live_microbatches() -> None:
    for stages in STAGES:
        for microbatches in MICROBATCHES:
            problem = pipeline(stages=stages, microbatches=microbatches)
            assert schedule(problem, GPIPE).peak_live == (microbatches,) * stages
            expected = tuple(min(microbatches, stages - stage) for stage in range(stages))
            result = schedule(problem, ONE_F_ONE_B)
            assert result.peak_live == expected
            assert tuple(group.peak_bytes for group in result.groups) == expected


def test_transfers_take_time() -> None:
    problem = pipeline(stages=3, microbatches=1, transfer=0.5)
    assert schedule(problem, ONE_F_ONE_B).seconds == 3 + 6 + 4 * 0.5


def test_uneven_stages_are_scheduled() -> None:
    problem = pipeline(stages=3, microbatches=4, forward=[1, 3, 1], backward_input=[1, 3, 1])
    result = schedule(problem, ONE_F_ONE_B)
    assert result.groups[1].busy_seconds == 4 * (3 + 3 + 1)
    assert result.seconds >= 28
    assert schedule(problem, AUTO).seconds <= result.seconds


@pytest.mark.parametrize("name", list(ScheduleName))
def test_every_schedule_is_free_of_deadlock(name: ScheduleName) -> None:
    for stages in STAGES:
        for microbatches in MICROBATCHES:
            for groups in {stages, stages // 2} if name is INTERLEAVED and stages % 2 == 0 else {stages}:
                problem = pipeline(
                    stages=stages, groups=groups, microbatches=microbatches, split_backward=split(name), transfer=0.25
                )
                result = schedule(problem, name)
                actions = actions_of(problem, result)
                assert sum(map(len, actions.values())) == (4 * (stages - 1) * microbatches if groups > 1 else 0)
                assert find_deadlock(actions) is None
                assert find_deadlock(actions, buffered=True) is None


@pytest.mark.parametrize("name", list(ScheduleName))
def test_order_respects_what_tasks_need(name: ScheduleName) -> None:
    problem = pipeline(stages=4, groups=2, microbatches=5, split_backward=split(name), transfer=0.1)
    result = schedule(problem, name)
    for edge in problem.edges:
        assert result.end[edge.source] + edge.seconds <= result.start[edge.to] + 1e-9
    for order in result.order:
        for before, after in itertools.pairwise(order):
            assert result.end[before] <= result.start[after]
    assert sorted(task for order in result.order for task in order) == list(range(len(problem.tasks)))
    assert check_order(problem, result.order).seconds == pytest.approx(result.seconds)


def test_forward_alone_is_scheduled() -> None:
    tasks = tuple(Task(stage, Kind.FORWARD, stage, m, 1.0) for stage in range(2) for m in range(3))
    problem = Problem(tasks, tuple(Edge(m, 3 + m) for m in range(3)), ("a", "b"), (None, None), 2, 3)
    for name in (GPIPE, ONE_F_ONE_B, INTERLEAVED, H1, AUTO):
        assert schedule(problem, name).seconds == 4


def test_updates_and_glue_follow_what_they_need() -> None:
    base = pipeline(stages=2, microbatches=2)
    count = len(base.tasks)
    last = [n for n, task in enumerate(base.tasks) if task.kind is Kind.BACKWARD and task.microbatch == 1]
    updates = tuple(Task(stage, Kind.UPDATE, seconds=0.5) for stage in range(2))
    problem = replace(
        base,
        tasks=base.tasks + updates,
        edges=base.edges + tuple(Edge(task, count + stage) for stage, task in enumerate(last)),
    )
    result = schedule(problem, ONE_F_ONE_B)
    assert [order[-1] for order in result.order] == [count, count + 1]


def test_auto_keeps_limits() -> None:
    for stages in (2, 4):
        for limit in range(1, stages + 2):
            problem = pipeline(stages=stages, microbatches=7, split_backward=True, limit=limit)
            result = schedule(problem, AUTO)
            assert max(group.peak_bytes for group in result.groups) <= limit
            assert result.declined
            free = schedule(replace(problem, limits=(None,) * stages), AUTO)
            assert free.seconds <= result.seconds


def test_auto_keeps_limits_where_a_group_has_several_stages() -> None:
    for limit in range(3, 9):
        problem = pipeline(stages=6, groups=2, microbatches=6, limit=limit)
        result = schedule(problem, AUTO)
        assert max(group.peak_bytes for group in result.groups) <= limit
        assert find_deadlock(actions_of(problem, result)) is None


def test_auto_is_as_fast_as_the_best() -> None:
    problem = pipeline(stages=4, microbatches=8, split_backward=True)
    result = schedule(problem, AUTO)
    assert result.seconds <= min(schedule(problem, name).seconds for name in (GPIPE, ONE_F_ONE_B, H1))
    assert any("interleaved" in text for text in result.declined)


def refusal(problem: Problem, name: ScheduleName) -> str:
    with pytest.raises(ScheduleError) as caught:
        schedule(problem, name)
    return str(caught.value)


def test_limits_are_refused_with_the_bytes() -> None:
    text = refusal(pipeline(stages=3, microbatches=4, limit=2), ONE_F_ONE_B)
    assert text.startswith("expected group 'g0' to hold 3 bytes but its limit is 2")
    text = refusal(pipeline(stages=2, microbatches=4, activation_bytes=5, limit=4), AUTO)
    assert text.startswith("expected group 'g0' to hold 5 bytes, which it needs at forward of microbatch 0 on stage 0")


def test_schedules_that_do_not_apply_are_refused() -> None:
    assert "5 stages; make the stages a multiple of the groups" in refusal(
        pipeline(stages=5, groups=2, microbatches=4), INTERLEAVED
    )
    assert "got backward of microbatch 0 on stage 0; split it" in refusal(pipeline(stages=2, microbatches=2), H1)


def test_faults_of_problems_are_named() -> None:
    base = pipeline(stages=2, microbatches=1)
    twice = replace(base, tasks=(*base.tasks, base.tasks[0]))
    assert refusal(twice, AUTO) == "expected one forward of microbatch 0 on stage 0 but got two"
    assert "group 7" in refusal(replace(base, tasks=(replace(base.tasks[0], group=7),)), AUTO)
    assert "between the 4 tasks but got 0 to 9" in refusal(replace(base, edges=(Edge(0, 9),)), AUTO)
    assert "zero or more seconds" in refusal(replace(base, tasks=(replace(base.tasks[0], seconds=-1.0),)), AUTO)
    assert "2 stages and 1 microbatches" in refusal(replace(base, tasks=(replace(base.tasks[0], stage=4),)), AUTO)
    split_stage = replace(base, tasks=(*base.tasks[:1], replace(base.tasks[1], group=1), *base.tasks[2:]))
    assert "all of stage 0 in one group but got 'g0' and 'g1'" in refusal(split_stage, ONE_F_ONE_B)


def test_a_circle_is_told_in_words() -> None:
    base = pipeline(stages=2, microbatches=2)
    backward = next(n for n, t in enumerate(base.tasks) if t.kind is Kind.BACKWARD and t.stage == 0)
    # The second forward of stage 0 needs the first backward: 1F1B's run ahead is not possible.
    forward = next(n for n, t in enumerate(base.tasks) if t.kind is Kind.FORWARD and (t.stage, t.microbatch) == (0, 1))
    text = refusal(replace(base, edges=(*base.edges, Edge(backward, forward))), ONE_F_ONE_B)
    assert (
        "forward of microbatch 1 on stage 0 must come before backward of microbatch 0 on stage 0 (a stage runs" in text
    )
    assert (
        "backward of microbatch 0 on stage 0 must come before forward of microbatch 1 on stage 0 (which needs" in text
    )


def test_given_orders_are_checked() -> None:
    problem = pipeline(stages=2, microbatches=2)
    order = [list(tasks) for tasks in schedule(problem, GPIPE).order]
    assert check_order(problem, order).method == "given"
    order[1][0], order[1][1] = order[1][1], order[1][0]
    assert check_order(problem, order).seconds >= schedule(problem, GPIPE).seconds
    for broken, message in [
        ([order[0][:-1], order[1]], "backward of microbatch 1 on stage 0 in the order of group 'g0' but it is missing"),
        ([order[0], [*order[1], order[1][0]]], "once in the order of group 'g1' but it is there twice"),
        ([[*order[0], order[1][0]], order[1][1:]], "in the order of group 'g1' but it is in that of 'g0'"),
        ([order[0]], "expected an order for each of 2 groups but got 1"),
        ([order[0], [99]], "tasks below 8 but got 99"),
        ([order[0][::-1], order[1]], "(the given order)"),
    ]:
        with pytest.raises(ScheduleError, match=re.escape(message)):
            check_order(problem, broken)


def test_schedules_of_many_tasks_take_little_time() -> None:
    problem = pipeline(stages=16, microbatches=400)
    assert schedule(problem, ONE_F_ONE_B).bubble == pytest.approx(15 / 415)


def drawing_in_source(name: str) -> list[list[str]]:
    """The rows of the drawing under a heading of NamedSchedules.cpp, cell by cell."""
    text = (Path(__file__).resolve().parents[3] / "lib" / "Scheduler" / "NamedSchedules.cpp").read_text()
    section = text[text.index(f"// {name}:") :]
    rows = re.findall(r"^//   \d  (.*)$", section[: section.index("===//")], re.M)
    return [row.split() for row in rows]


@pytest.mark.parametrize(
    ("heading", "name", "stages", "groups", "microbatches"),
    [
        ("GPipe", GPIPE, 3, 3, 4),
        ("1F1B", ONE_F_ONE_B, 3, 3, 4),
        ("Interleaved 1F1B", INTERLEAVED, 4, 2, 2),
        ("Zero bubble H1", H1, 3, 3, 4),
    ],
)
def test_drawings_of_the_rules_are_what_they_give(
    heading: str, name: ScheduleName, stages: int, groups: int, microbatches: int
) -> None:
    half = 1.0 if split(name) else 0.5
    problem = pipeline(
        stages=stages,
        groups=groups,
        microbatches=microbatches,
        split_backward=split(name),
        backward_input=half,
        backward_weight=half,
    )
    result = schedule(problem, name)
    rows = draw(problem, result, width=4 * round(result.seconds)).splitlines()
    cells = [[row[at : at + 4].replace("-", "") for at in range(4, len(row), 4)] for row in rows]
    assert [["" if set(cell) == {"."} else cell for cell in row] for row in drawing_in_source(heading)] == [
        ["" if set(cell) == {"."} else cell for cell in row] for row in cells
    ]


def test_drawing() -> None:
    problem = pipeline(stages=2, microbatches=2)
    assert draw(problem, schedule(problem, ONE_F_ONE_B), width=18) == "g0  F0F1....B0--..B1--\ng1  ..F0B0--F1B1--...."
