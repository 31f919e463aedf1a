# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The proof of freedom from deadlock finds what was planted, and says who waits for whom."""

from __future__ import annotations

import random

from interleavings import can_end

from hyperparallel.schedules import (
    Action,
    Meet,
    Receive,
    ScheduleName,
    Send,
    actions_of,
    find_deadlock,
    pipeline,
    schedule,
)


def test_matching_programs_end() -> None:
    a: list[Action] = [Send(1, 7, 32), Receive(1, 8, 16)]
    b: list[Action] = [Receive(0, 7, 32), Send(0, 8, 16)]
    assert find_deadlock({"a": a, "b": b}) is None
    assert find_deadlock({"a": a, "b": b}, buffered=True) is None


def test_sends_that_cross_wait_only_for_a_rendezvous() -> None:
    programs = {"a": [Send(1, 1, label="h"), Receive(1, 2)], "b": [Send(0, 2, label="g"), Receive(0, 1)]}
    assert find_deadlock(programs, buffered=True) is None
    assert find_deadlock(programs) == (
        "expected every wait to end, but each waits for the next: 'a' sends 'h' (tag 1) to 'b'; "
        "'b' sends 'g' (tag 2) to 'a'; which is a circle"
    )


def test_receives_in_a_circle_wait_always() -> None:
    ring = {f"p{n}": [Receive((n + 1) % 3, n), Send((n - 1) % 3, (n - 1) % 3)] for n in range(3)}
    for buffered in (False, True):
        fault = find_deadlock(ring, buffered=buffered)
        assert fault is not None
        assert fault.count("receives") == 3
        assert fault.endswith("which is a circle")


def test_a_partner_that_never_comes() -> None:
    fault = find_deadlock({"a": [Receive(1, 5, label="loss")], "b": []})
    assert fault == (
        "expected every wait to end, but 'a' receives 'loss' (tag 5) from 'b', and 'b' comes to its end without it"
    )
    assert find_deadlock({"a": [Send(1, 5)], "b": []}, buffered=True) == (
        "expected every message to be received, but 'a' sends (tag 5) to 'b', which never receives it"
    )


def test_sizes_must_agree() -> None:
    fault = find_deadlock({"a": [Send(1, 0, 64)], "b": [Receive(0, 0, 32)]})
    assert fault is not None
    assert "'a' sends (tag 0, 64 bytes) to 'b', and 'b' receives (tag 0, 32 bytes) from 'a'" in fault


def test_collectives_meet() -> None:
    circles = [[0, 1]]
    good: dict[str, list[Action]] = {"a": [Meet(0, 1), Send(1, 3)], "b": [Meet(0, 1), Receive(0, 3)]}
    assert find_deadlock(good, circles) is None
    late: dict[str, list[Action]] = {"a": [Send(1, 3), Meet(0, 1)], "b": [Meet(0, 1), Receive(0, 3)]}
    fault = find_deadlock(late, circles)
    assert fault is not None
    assert "'b' is at the collective (tag 1)" in fault
    assert find_deadlock(late, circles, buffered=True) is None
    other: dict[str, list[Action]] = {"a": [Meet(0, 1)], "b": [Meet(0, 2)]}
    assert "do the same" in str(find_deadlock(other, circles))


def test_numbers_of_nobody_are_refused() -> None:
    assert "to name a process below 1 but got 4" in str(find_deadlock({"a": [Send(4)]}))
    assert "to name a group below 0 but got 0" in str(find_deadlock({"a": [Meet(0)]}))
    assert "meet with groups that it is in" in str(find_deadlock({"a": [Meet(0)], "b": []}, [[1]]))
    assert "different members" in str(find_deadlock({"a": []}, [[0, 0]]))


def test_every_planted_exchange_of_two_steps_is_judged_as_by_brute_force() -> None:
    """Swaps two actions of a proved schedule; the proof must agree with a search over all interleavings."""
    problem = pipeline(stages=3, microbatches=2)
    actions = actions_of(problem, schedule(problem, ScheduleName.ONE_F_ONE_B))
    names = list(actions)
    caught = 0
    random.seed(5)
    for _ in range(60):
        programs = {name: list(steps) for name, steps in actions.items()}
        victim = programs[random.choice(names)]
        one, two = random.sample(range(len(victim)), 2)
        victim[one], victim[two] = victim[two], victim[one]
        ends = can_end(tuple(map(tuple, programs.values())))
        assert (find_deadlock(programs) is None) == ends
        caught += not ends
    assert 10 < caught < 60
