# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs put collectives and messages on streams: the values are right, what is wrong is one error, nothing hangs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from runtime_cases import axes_words, run, values

from hyperparallel.errors import RuntimeFailure
from hyperparallel.runtime import DataType, Runtime
from hyperparallel.runtime.vocabulary import Collective

Runtimes = Callable[[int], Runtime]
ROWS, COLUMNS = ((1, 2),), ((2, 2),)


@pytest.mark.parametrize("rounds", [1, 200])
def test_collectives_of_two_streams(runtimes: Runtimes, programs: Path, rounds: int) -> None:
    inputs = [values((8,), DataType.F32, seed) for seed in range(4)]
    words = [rounds, *axes_words(ROWS), *axes_words(COLUMNS)]
    runtime = runtimes(4)
    results, statistics = run(runtime.load(programs), "streams", [words] * 4, inputs, (32,))
    last = np.array([one + np.float32(rounds - 1) for one in inputs]).reshape(2, 2, 8)
    for device, got in enumerate(results):
        row, column = divmod(device, 2)
        np.testing.assert_allclose(got[:8], last[row].sum(axis=0), rtol=1e-5)
        np.testing.assert_allclose(got[8:16], last[:, column].sum(axis=0), rtol=1e-5)
        np.testing.assert_allclose(got[16:24], last.sum(axis=(0, 1)), rtol=1e-5)
        np.testing.assert_array_equal(got[24:], last[row].max(axis=0))
    assert statistics.collectives[Collective.ALL_REDUCE] == 4 * rounds


def test_messages_on_streams_and_the_trace(runtimes: Runtimes, programs: Path, tmp_path: Path) -> None:
    inputs = [values((8,), DataType.F32, seed) for seed in range(2)]
    runtime = runtimes(2)
    with runtime.trace(tmp_path / "trace.json"):
        results, statistics = run(runtime.load(programs), "stream_messages", [[0]] * 2, inputs, (8,))
    np.testing.assert_array_equal(results[0], inputs[1])
    np.testing.assert_array_equal(results[1], inputs[0])
    assert (statistics.collectives[Collective.SEND], statistics.collectives[Collective.RECV]) == (1, 1)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    where = {names[event["tid"]] for event in events if event.get("cat") == "message"}
    assert where == {"device 0 recv stream", "device 1 recv stream"}


def test_a_collective_that_a_stream_waits_for_in_vain(runtimes: Runtimes, programs: Path) -> None:
    inputs = [values((8,), DataType.F32, seed) for seed in range(2)]
    with pytest.raises(RuntimeFailure) as caught:
        run(runtimes(2).load(programs), "stream_skips_one", [axes_words(((1, 2),))] * 2, inputs, (8,))
    assert caught.value.status == "HP_DEADLOCK"
    text = str(caught.value)
    assert "device 0 waits in the wait for the stream comm" in text
    assert "device 0 on the stream comm waits in all_reduce sum of 8 x f32 'on.stream'" in text
    assert "not reached by 1" in text
    assert "device 1 has ended its program" in text


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (0, "hp_rt_stream_begin: expected a stream but got 7"),
        (1, "the calls of the stream comm have not ended"),
        (2, "expected a collective with a future to be on no stream"),
        (3, "collectives do not match"),
    ],
)
def test_what_is_refused(runtimes: Runtimes, programs: Path, fault: int, message: str) -> None:
    inputs = [values((8,), DataType.F32, seed) for seed in range(2)]
    runtime = runtimes(2)
    program = runtime.load(programs)
    axes = axes_words(((1, 2),))
    with pytest.raises(RuntimeFailure, match=message):
        run(program, "stream_faults", [[fault, *axes]] * 2, inputs, (8,))
    results, _ = run(program, "all_reduce", [[0, 8, 7, 0, 0, *axes]] * 2, inputs, (8,))
    np.testing.assert_allclose(results[0], np.sum(inputs, axis=0), rtol=1e-5)
