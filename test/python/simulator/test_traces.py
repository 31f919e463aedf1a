# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recorded steps: what is read, what is refused, and the published figures of the real ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

pytest.importorskip("hyperparallel._hyperparallel", reason="the compiled parts are not built")

from recorded import RECORDED_STEPS, recorded_step

from hyperparallel.simulator import SimulationError, read_trace

SMALL = {
    "name": "small",
    "tensors": [[100, 1], [10, 0], [7, 0], [3, 0]],
    "ops": [["matmul", 0.5, [0], [1]], ["relu", 0.25, [1], [2]], ["loss", 0.125, [2], [3]]],
}


@pytest.mark.parametrize("zipped", [False, True])
def test_small_trace(tmp_path: Path, zipped: bool) -> None:
    path = tmp_path / "trace.json"
    content = json.dumps(SMALL).encode()
    path.write_bytes(gzip.compress(content) if zipped else content)
    trace = read_trace(path)
    assert trace.compute_seconds == 0.875
    assert trace.largest_operation_bytes == 110
    result = trace.simulate()
    assert result.seconds == 0.875
    assert result.peak == {"device": 117.0}
    assert result.residency["device"] == ((0.0, 110.0), (0.5, 117.0), (0.75, 110.0), (0.875, 100.0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": 3}, "expected `name` to be a text"),
        ({"ops": None}, "expected `ops` to be a list"),
        ({"tensors": [[1, 2]]}, r"tensor 0: expected \[bytes, 0 or 1\] but got \[1, 2\]"),
        ({"tensors": [[-1, 0]]}, "tensor 0: expected"),
        ({"ops": [["a", 1.0, [0]]]}, r"op 0: expected \[name, seconds"),
        ({"ops": [["a", -1.0, [0], []]]}, "op 0: expected seconds of at least 0 but got -1.0"),
        ({"ops": [["a", 1.0, [4], []]]}, "op 0: expected the number of one of 4 tensors but got 4"),
        ({"ops": [["a", 1.0, 0, []]]}, "op 0: expected a list of tensor numbers"),
    ],
)
def test_wrong_traces(tmp_path: Path, change: dict[str, object], message: str) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({**SMALL, **change}))
    with pytest.raises(SimulationError, match=message):
        read_trace(path)


def test_wrong_files(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    with pytest.raises(SimulationError, match="cannot read the file: No such file"):
        read_trace(path)
    path.write_bytes(gzip.compress(json.dumps(SMALL).encode())[:20])
    with pytest.raises(SimulationError, match="expected JSON, gzipped or not"):
        read_trace(path)
    path.write_text("[]")
    with pytest.raises(SimulationError, match="expected an object"):
        read_trace(path)


@pytest.mark.parametrize(
    ("name", "seconds", "live", "largest"),
    RECORDED_STEPS,
)
def test_recorded_steps(name: str, seconds: float, live: float, largest: float) -> None:
    path = recorded_step(name)
    trace = read_trace(path)
    result = trace.simulate()
    assert round(trace.compute_seconds, 3) == seconds
    assert round(result.seconds, 3) == seconds
    assert round(result.peak["device"] / 2**30, 2) == live
    assert round(trace.largest_operation_bytes / 2**30, 2) == largest
