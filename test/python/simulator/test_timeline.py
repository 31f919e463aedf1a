# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The file that simulator, runs and reports share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hyperparallel.simulator import SimulationError
from hyperparallel.simulator.timeline import (
    CollectiveUse,
    Exposed,
    Group,
    LinkKind,
    LinkUse,
    Stream,
    StreamKind,
    TaskSpan,
    TensorUse,
    TierUse,
    Timeline,
    TimelineKind,
    read_timeline,
)

TIMELINE = Timeline(
    kind=TimelineKind.MEASURED,
    name="tiny",
    machine="pair",
    mesh={"dp": 2},
    devices=2,
    seconds=1.5,
    first_step_seconds=None,
    flops=10.0,
    mfu=None,
    utilisation=0.5,
    exposed=Exposed(0.25, 0.0, None),
    groups=(Group("device 0", 1, (Stream("compute", StreamKind.COMPUTE, 0.75),), Exposed(0.25, 0.0, 0.5)),),
    tiers=(TierUse("hbm", 0, None, 12.0, ((0.0, 4.0), (0.5, 12.0))),),
    links=(LinkUse("node", LinkKind.LEVEL, 100.0, 30.0, 0.2),),
    collectives=(CollectiveUse("hypershard.all_reduce", 1, 30.0, 0.25, None),),
    tensors=(TensorUse("w", "parameter", (4, 2), "f32", '[{"dp"}, {}]', 16.0),),
    tasks=(TaskSpan("linalg.matmul", "layers.0", 0, 0, 0.0, 0.75, 10.0, 12.0, 0.0, "compute", "it is large"),),
)


def test_it_reads_what_it_wrote(tmp_path: Path) -> None:
    path = tmp_path / "timeline.json"
    TIMELINE.write(path)
    assert read_timeline(path) == TIMELINE
    data = json.loads(path.read_text())
    assert (data["format"], data["version"], data["kind"]) == ("hyperparallel-timeline", 1, "measured")
    assert data["groups"][0]["streams"] == [{"name": "compute", "kind": "compute", "busy": 0.75}]
    assert TIMELINE.streams(StreamKind.COMPUTE) == TIMELINE.groups[0].streams
    assert TIMELINE.streams(StreamKind.H2D) == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "expected a timeline"),
        ({"version": 2}, "expected version 1 but got 2"),
        ({"seconds": "long"}, "expected seconds to be a number but got 'long'"),
        ({"kind": "guessed"}, "guessed"),
        ({"groups": None}, "not a timeline as documented"),
        ({"tiers": [{"name": "hbm"}]}, "expected the key 'group'"),
        ({"groups": []}, "task linalg.matmul is on stream 0 of group 0, which is not there"),
    ],
)
def test_what_is_no_timeline(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "timeline.json"
    path.write_text(json.dumps({**TIMELINE.to_json(), **change}))
    with pytest.raises(SimulationError, match=message):
        read_timeline(path)


def test_files_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(SimulationError, match="cannot read the file: No such file"):
        read_timeline(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(SimulationError, match="expected JSON"):
        read_timeline(tmp_path / "bad.json")
    with pytest.raises(SimulationError, match="cannot write"):
        TIMELINE.write(tmp_path / "none" / "a.json")
