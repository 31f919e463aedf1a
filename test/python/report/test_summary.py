# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Summaries: what a timeline's parts add up to, and how it is said in the terminal."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console
from timelines import GIB, pipeline, two_layers

from hyperparallel.report import print_comparison, print_summary, summarise
from hyperparallel.report.summary import kind_of
from hyperparallel.report.tracks import tracks_of
from hyperparallel.simulator.timeline import Exposed, TaskSpan, TierUse, Timeline


def test_causes_add_up_to_the_step() -> None:
    causes = {cause.name: cause.seconds for cause in summarise(two_layers()).causes}
    assert causes == {"kernels": 7.0, "communication": 1.0, "transfer": 0.5, "bubble": 0.5}


def test_what_is_unknown_stays_unknown() -> None:
    causes = {c.name: (c.seconds, c.share) for c in summarise(two_layers(exposed=Exposed(1.0, None, None))).causes}
    assert causes["kernels"] == causes["transfer"] == (None, None)
    assert causes["communication"] == (1.0, 1 / 9)


def test_operations_by_name_and_by_kind() -> None:
    summary = summarise(two_layers())
    operations = [(use.name, use.kind, use.count, use.seconds, use.flops, use.bytes) for use in summary.operations]
    assert operations == [
        ("linalg.matmul", "matmul", 2, 6.0, 6e9, 2e6),
        ("hypershard.all_reduce", "all_reduce", 2, 4.0, 0.0, 12e6),
        ("linalg.generic", "other kernels", 1, 1.0, 1e6, 2e6),
        ("offload.store", "copy out", 1, 0.5, None, 5e6),
    ]
    assert {use.name: use.seconds for use in summary.kinds} == {
        "matmul": 6.0,
        "all_reduce": 4.0,
        "other kernels": 1.0,
        "copy out": 0.5,
    }


def test_seconds_are_those_of_the_mean_device() -> None:
    """Two stages of a pipeline do three forwards of 2 ms each: a device does three of four layers, not six."""
    forward = next(use for use in summarise(pipeline(2, 3)).operations if use.name == "forward")
    assert forward.count == 12
    assert forward.seconds == pytest.approx(6e-3, rel=1e-12)


def test_the_fullest_tier_is_the_one_nearest_to_its_capacity() -> None:
    tiers = (TierUse("a", 0, 10 * GIB, 5 * GIB), TierUse("b", 0, GIB, 0.75 * GIB), TierUse("c", 0, None, 90 * GIB))
    fullest = summarise(two_layers(tiers=tiers)).fullest_tier
    assert fullest is not None
    assert (fullest.name, fullest.used) == ("b", 0.75)


@pytest.mark.parametrize(
    ("op", "stream", "kind"),
    [
        ("linalg.generic", "compute", "other kernels"),
        ("linalg.batch_matmul", "compute", "matmul"),
        ("linalg.conv_2d_nchw_fchw", "compute", "matmul"),
        ("matmul", "compute", "matmul"),
        ("GPT2Block_kernel_3", "compute", "other kernels"),
        ("hypershard.all_reduce", "communication", "all_reduce"),
        ("all_reduce", "communication", "all_reduce"),
        ("offload.prefetch", "h2d", "copy in"),
    ],
)
def test_kinds(op: str, stream: str, kind: str) -> None:
    assert kind_of(TaskSpan(op, "", 0, 0, 0.0, 1.0), stream) == kind


@pytest.mark.parametrize(("flops", "kind"), [(3e6, "other kernels"), (8e6, "matmul"), (None, "other kernels")])
def test_a_generic_op_is_what_its_operations_say(flops: float | None, kind: str) -> None:
    assert kind_of(TaskSpan("linalg.generic", "", 0, 0, 0.0, 1.0, flops, 1e6), "compute") == kind


def test_tracks_hold_spans_that_nest_or_are_apart() -> None:
    spans = [(0.0, 4.0), (1.0, 2.0), (2.0, 5.0), (4.0, 6.0), (0.0, 0.0)]
    assert tracks_of(spans) == [0, 0, 1, 0, 0]


def printed(*timelines: Timeline) -> str:
    console = Console(file=io.StringIO(), width=100, color_system=None)
    summaries = [summarise(timeline) for timeline in timelines]
    if len(summaries) == 1:
        print_summary(console, summaries[0])
    else:
        print_comparison(console, summaries, ("A", "B"))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def rows(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_the_summary_in_the_terminal() -> None:
    said = rows(printed(two_layers()))
    assert said[0] == "two_layers simulated on h200-node, 4 devices (dp=2,tp=2)"
    assert said[1] == "step 9.00 s, compute busy 77.8 %, MFU 50.0 %, 6.00 GFLOP a device"
    assert said[2].startswith("kernels 7.00 s 77.8 % █")
    assert "linalg.matmul 2 6.00 s 66.7 % 6.00 GFLOP 1.91 MiB" in said
    assert "all_reduce 2 8.58 MiB 4.00 s 1.00 s" in said
    assert "hbm 3.00 GiB 4.00 GiB 75.0 %" in said
    assert "pcie 4.77 MiB 0.01 GB/s 50.0 %" in said


def test_the_comparison_in_the_terminal() -> None:
    said = rows(printed(two_layers(), two_layers(seconds=18.0, exposed=Exposed(10.0, 0.5, 0.5))))
    assert "step 9.00 s 18.0 s 9.00 s 2.00" in said
    assert "exposed communication 1.00 s 10.0 s 9.00 s 10.00" in said
    assert "matmul 6.00 s 6.00 s 0 s 1.00" in said


def test_the_summary_as_json() -> None:
    data = json.loads(json.dumps(summarise(two_layers()).to_json()))
    assert data["seconds"] == 9.0
    assert data["causes"][1] == {"name": "communication", "seconds": 1.0, "share": 1 / 9}
    assert data["tiers"][0] == {"name": "hbm", "group": "main", "capacity": 4 * GIB, "peak": 3 * GIB, "used": 0.75}
