# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``hp schedule`` draws and judges schedules, and refuses what does not apply."""

from __future__ import annotations

import json

import pytest

from hyperparallel.cli.main import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["schedule", *arguments])
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


def test_drawing(capsys: pytest.CaptureFixture[str]) -> None:
    status, text, _ = run(capsys, "1f1b", "--stages", "2", "--microbatches", "2", "--width", "18")
    assert status == 0
    assert text.splitlines() == [
        "g0  F0F1....B0--..B1--",
        "g1  ..F0B0--F1B1--....",
        "",
        "1f1b: 9 s, bubble 33.3 %, free of deadlock",
        "live microbatches by stage: 2, 1",
    ]


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    status, text, _ = run(capsys, "auto", "--stages", "3", "--live", "2", "--split-backward", "--json")
    report = json.loads(text)
    assert status == 0
    assert report["free_of_deadlock"]
    assert max(report["peak_live_by_group"].values()) <= 2
    assert any(text.startswith("zero_bubble_h1: expected group 'g0' to hold 3 bytes") for text in report["declined"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("interleaved_1f1b", "--stages", "3", "--groups", "2"), "make the stages a multiple of the groups"),
        (("gpipe", "--stages", "0"), "--stages: expected a number of at least 1 but got 0"),
        (("1f1b", "--live", "1"), "expected group 'g0' to hold 4 bytes but its limit is 1"),
        (("gpipe", "--forward", "-1"), "zero or more seconds"),
    ],
)
def test_refusals(arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, text, said = run(capsys, *arguments)
    assert (status, text) == (1, "")
    assert message in said
