# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs copy between tiers on the device's transfer threads; nothing is lost, and the books are exact."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hyperparallel.errors import RuntimeFailure
from hyperparallel.runtime import Launch, Runtime, Tier

TIERS = [Tier.DEVICE, Tier.HOST]
ORDER = list(Tier)


def launch(runtime: Runtime, path: Path, count: int, floats: int, fails: int = -1, device: int = 0) -> Launch:
    words = np.array([count, floats, fails], dtype=np.int64)
    values = np.random.default_rng(device).standard_normal((count, floats)).astype(np.float32)
    result = np.zeros_like(values)
    return Launch(
        runtime.load(path), "copies", [words, values], [result], device=device, group=device, argument_tiers=TIERS
    )


@pytest.mark.parametrize(("count", "floats"), [(1, 16), (5, 1), (3, 0), (16, 100_000), (64, 1000)])
def test_values_survive_the_way_there_and_back(programs: Path, count: int, floats: int) -> None:
    with Runtime() as runtime:
        job = launch(runtime, programs, count, floats)
        statistics = runtime.run([job])
    np.testing.assert_array_equal(job.results[0], -job.arguments[1])
    device = statistics.devices[0]
    size = count * floats * 4
    assert (device.prefetches, device.prefetched_bytes) == (2 * count, 2 * size)
    assert (device.stores, device.stored_bytes) == (count, size)
    assert 0 <= device.copy_wait_seconds <= device.wall_seconds
    block = max(64, -(-floats * 4 // 64) * 64)
    assert device.peak_bytes[Tier.HOST] == -(-size // 64) * 64 + count * block
    assert statistics.leaked_bytes == 0


def test_devices_copy_at_the_same_time_and_run_after_run(programs: Path) -> None:
    with Runtime(devices=3) as runtime:
        jobs = [launch(runtime, programs, 8, 50_000, device=device) for device in range(3)]
        for _ in range(3):
            for job in jobs:
                job.results[0][:] = 0
            runtime.run(jobs)
            for job in jobs:
                np.testing.assert_array_equal(job.results[0], -job.arguments[1])


def test_limits_hold_in_each_tier(programs: Path) -> None:
    with Runtime(tier_limits={Tier.HOST: 1_000_000}) as runtime, pytest.raises(RuntimeFailure, match="host"):
        runtime.run([launch(runtime, programs, 8, 50_000)])
    with Runtime(tier_limits={Tier.DEVICE: 500_000}) as runtime, pytest.raises(RuntimeFailure, match="device"):
        runtime.run([launch(runtime, programs, 8, 50_000)])


def test_a_failure_in_the_middle_of_copies_leaves_a_runtime_that_works(programs: Path) -> None:
    with Runtime() as runtime:
        for _ in range(5):
            with pytest.raises(RuntimeFailure, match="told to fail"):
                runtime.run([launch(runtime, programs, 16, 100_000, fails=3)])
        job = launch(runtime, programs, 16, 100_000)
        runtime.run([job])
        np.testing.assert_array_equal(job.results[0], -job.arguments[1])
        assert runtime.tier(Tier.HOST).used == 0


@pytest.mark.parametrize(
    ("target", "source", "size", "waits", "message"),
    [
        (Tier.DEVICE, Tier.DEVICE, 64, 1, "expected a copy to the device or from it"),
        (Tier.HOST, Tier.PINNED, 64, 1, "expected a copy to the device or from it"),
        (Tier.DEVICE, Tier.HOST, -1, 1, "expected two buffers"),
        (Tier.DEVICE, Tier.HOST, 64, 2, "expected a copy that was not waited for"),
    ],
)
def test_wrong_calls_are_refused(
    programs: Path, target: Tier, source: Tier, size: int, waits: int, message: str
) -> None:
    words = np.array([ORDER.index(target), ORDER.index(source), size, waits, 0, 0, 0, 0], dtype=np.int64)
    with Runtime() as runtime, pytest.raises(RuntimeFailure, match=message):
        runtime.load(programs).run("copies_once", [[words]], [[np.zeros(8, np.int64)]])


def test_an_unknown_tier_is_refused(programs: Path) -> None:
    words = np.array([0, 9, 64, 1, 0, 0, 0, 0], dtype=np.int64)
    with Runtime() as runtime, pytest.raises(RuntimeFailure, match="expected tiers but got 9 and 0"):
        runtime.load(programs).run("copies_once", [[words]], [[np.zeros(8, np.int64)]])


def test_a_copy_nobody_waits_for_ends_with_the_run(programs: Path) -> None:
    words = np.array([ORDER.index(Tier.DEVICE), ORDER.index(Tier.HOST), 64, 0, 1, 2, 3, 4], dtype=np.int64)
    result = np.zeros(8, np.int64)
    with Runtime() as runtime:
        runtime.load(programs).run("copies_once", [[words]], [[result]], argument_tiers=[Tier.HOST])
    np.testing.assert_array_equal(result, words)


def test_the_trace_has_a_lane_for_each_direction(programs: Path, tmp_path: Path) -> None:
    with Runtime() as runtime, runtime.trace(tmp_path / "trace.json"):
        runtime.run([launch(runtime, programs, 4, 1000)])
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    lanes = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    counts: dict[tuple[str, str], int] = {}
    for event in events:
        if event["ph"] == "X" and event["cat"] == "stream":
            key = (lanes[event["tid"]], event["name"])
            counts[key] = counts.get(key, 0) + 1
    assert counts == {("device 0 h2d stream", "prefetch"): 8, ("device 0 d2h stream", "store"): 4}


def test_rows_come_in_the_order_of_their_indices(programs: Path) -> None:
    table = np.random.default_rng(3).standard_normal((50, 7)).astype(np.float32)
    rows = [49, 0, 7, 7, 23, 48]
    words = np.array([28, 50, len(rows), *rows], dtype=np.int64)
    result = np.zeros((len(rows), 7), np.float32)
    with Runtime() as runtime:
        statistics = runtime.load(programs).run("copies_rows", [[words, table]], [[result]], argument_tiers=TIERS)
    np.testing.assert_array_equal(result, table[rows])
    assert statistics.devices[0].prefetched_bytes == result.nbytes


@pytest.mark.parametrize("row", [-1, 50])
def test_a_row_outside_the_table_is_refused(programs: Path, row: int) -> None:
    words = np.array([28, 50, 2, 3, row], dtype=np.int64)
    with Runtime() as runtime, pytest.raises(RuntimeFailure, match=f"index of one of 50 rows but got {row}"):
        runtime.load(programs).run(
            "copies_rows", [[words, np.zeros((50, 7), np.float32)]], [[np.zeros((2, 7), np.float32)]]
        )
