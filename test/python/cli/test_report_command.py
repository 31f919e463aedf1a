# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``hp report``, and ``hp run`` that records for it: what is written, what is said, what is refused."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hyperparallel.simulator.timeline import Exposed, Group, Stream, StreamKind, TaskSpan, Timeline, TimelineKind

TIMELINE = Timeline(
    kind=TimelineKind.SIMULATED,
    name="small",
    machine="h200-node",
    mesh={"tp": 2},
    devices=2,
    seconds=0.004,
    first_step_seconds=None,
    flops=1e9,
    mfu=None,
    utilisation=0.75,
    exposed=Exposed(0.001, 0.0, 0.0),
    groups=(Group("main", 2, (Stream("compute", StreamKind.COMPUTE, 0.003),), Exposed(0.001, 0.0, 0.0)),),
    tasks=(TaskSpan("linalg.matmul", "layers.0", 0, 0, 0.0, 0.003, 1e9, 1e6, 0.0, "compute"),),
)


@pytest.fixture
def timeline(tmp_path: Path) -> Path:
    path = tmp_path / "timeline.json"
    TIMELINE.write(path)
    return path


def test_a_page_and_a_trace_are_written(hp: Callable[..., Any], timeline: Path, tmp_path: Path) -> None:
    page, trace = tmp_path / "report.html", tmp_path / "trace.json.gz"
    outcome = hp("report", timeline, "-o", page, "--perfetto", trace)
    assert (outcome.status, outcome.out) == (0, f"{page}\n{trace}\n"), outcome.err
    assert page.read_text().startswith("<!doctype html>")
    assert json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_the_summary(hp: Callable[..., Any], timeline: Path) -> None:
    outcome = hp("report", timeline)
    assert outcome.status == 0, outcome.err
    assert outcome.out.startswith("small simulated on h200-node, 2 devices (tp=2)\n  step 4.00 ms, compute busy 75.0 %")
    assert json.loads(hp("report", timeline, "--json").out)["seconds"] == 0.004


def test_two_inputs_are_compared(hp: Callable[..., Any], timeline: Path, tmp_path: Path) -> None:
    zipped = tmp_path / "again.json.gz"
    zipped.write_bytes(gzip.compress(timeline.read_bytes()))
    outcome = hp("report", timeline, zipped)
    assert "timeline: small simulated" in outcome.out, "inputs of one kind are called by their files"
    assert "again: small simulated" in outcome.out
    assert [one["name"] for one in json.loads(hp("report", timeline, zipped, "--json").out)] == ["small", "small"]


def test_a_run_records_what_reports_read(hp: Callable[..., Any], model_dir: Path, tmp_path: Path) -> None:
    trace, timeline = tmp_path / "run.trace.json", tmp_path / "run.json"
    words = ("run", model_dir, "--preset", "fsdp", "--mesh", "dp=2", "--json")
    outcome = hp(*words, "--trace", trace, "--timeline", timeline)
    assert outcome.status == 0, outcome.err
    run = json.loads(outcome.out)
    measured = json.loads(hp("report", timeline, "--json").out)
    assert (measured["name"], measured["kind"], measured["mesh"]) == ("small", "measured", {"dp": 2})
    assert 0 < measured["seconds"] <= run["run_seconds"][0]
    assert run["masked_communication"] == measured["masked_communication"]
    assert 0 <= run["masked_communication"] <= 1
    assert sum(cause["seconds"] for cause in measured["causes"]) == pytest.approx(measured["seconds"])
    assert measured["flops"] == 2 * (2 * 3 * 10 * 10)  # two layers, on three of the six rows
    counts = {use["op"]: use["count"] for use in measured["collectives"]}
    assert counts == run["collectives"]
    received = {use["op"]: 2 * use["bytes_received"] for use in measured["collectives"]}
    assert received == run["moved_bytes"]
    assert [tier["peak"] for tier in measured["tiers"]] == run["peak_bytes_per_device"]
    tensors = {tensor["name"]: tensor for tensor in json.loads(timeline.read_text())["tensors"]}
    assert tensors["layers.0.w"]["local_bytes"] == 10 * 10 * 4 / 2
    assert set(tensors) == {"x", "layers.0.w", "layers.1.w", "y"}
    bare = json.loads(hp("report", trace, "--json").out)
    assert (bare["name"], bare["flops"], bare["mesh"]) == ("run", None, {})
    assert bare["seconds"] == pytest.approx(measured["seconds"])


def test_a_timeline_alone_leaves_no_trace_behind(hp: Callable[..., Any], model_dir: Path, tmp_path: Path) -> None:
    timeline = tmp_path / "out" / "run.json"
    timeline.parent.mkdir()
    outcome = hp("run", model_dir, "--preset", "fsdp", "--mesh", "dp=2", "--timeline", timeline)
    assert outcome.status == 0, outcome.err
    assert [path.name for path in timeline.parent.iterdir()] == ["run.json"]


def test_a_compiled_program_is_simulated(hp: Callable[..., Any], model_dir: Path, tmp_path: Path) -> None:
    program, timeline = tmp_path / "program", tmp_path / "simulated.json"
    assert hp("compile", model_dir, "--preset", "fsdp", "--mesh", "dp=2", "-o", program).status == 0
    assert hp("simulate", program, "-o", timeline).status == 0
    summary = json.loads(hp("report", program, "--json").out)
    assert summary == json.loads(hp("report", timeline, "--json").out)
    assert (summary["name"], summary["kind"], summary["mesh"]) == ("small", "simulated", {"dp": 2})
    elsewhere = json.loads(hp("report", program, "--machine", "h200-node", "--json").out)
    assert elsewhere["machine"] == "h200-node"
    assert elsewhere["seconds"] != summary["seconds"]


def test_a_directory_that_is_no_program_is_refused(hp: Callable[..., Any], tmp_path: Path) -> None:
    outcome = hp("report", tmp_path)
    assert (outcome.status, outcome.out) == (1, "")
    assert "is no compiled program" in outcome.err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no file or directory at"),
        (b"not json", "is not JSON; expected"),
        (b"\x1f\x8bbroken", "its gzip data cannot be read"),
        (b"{}", 'expected a timeline ("format": "hyperparallel-timeline")'),
        (b'{"traceEvents": []}', "no run of a device"),
    ],
)
def test_what_is_no_timeline_is_refused(
    hp: Callable[..., Any], tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "given.json"
    if content is not None:
        path.write_bytes(content)
    outcome = hp("report", path)
    assert (outcome.status, outcome.out) == (1, "")
    assert message in outcome.err
    assert str(path) in outcome.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seconds": float("inf")}, "expected finite times of the step but got (inf,)"),
        (
            {"tiers": [{"name": "hbm", "group": 3, "capacity": None, "peak": 1, "timeline": []}]},
            "expected tier hbm in one of 1 groups but got group 3",
        ),
    ],
)
def test_a_timeline_that_cannot_be_drawn_is_refused(
    hp: Callable[..., Any], tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "odd.json"
    path.write_text(json.dumps({**TIMELINE.to_json(), **change}))
    outcome = hp("report", path)
    assert (outcome.status, outcome.out) == (1, "")
    assert message in outcome.err


def test_a_page_that_cannot_be_written_is_an_error(hp: Callable[..., Any], timeline: Path, tmp_path: Path) -> None:
    outcome = hp("report", timeline, "-o", tmp_path / "nowhere" / "report.html")
    assert (outcome.status, outcome.out) == (1, "")
    assert "cannot write" in outcome.err
