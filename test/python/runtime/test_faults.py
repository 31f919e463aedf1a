# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Faults become one error that says what is wrong, at once, and leave the runtime usable."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from runtime_cases import Axes, axes_words, run, values

from hyperparallel.errors import RuntimeFailure
from hyperparallel.runtime import DataType, Launch, Runtime, Tier

Runtimes = Callable[[int], Runtime]
ALL_FOUR: Axes = ((1, 4),)
# How soon a failure comes is measured.
pytestmark = pytest.mark.alone

ROWS: Axes = ((1, 2),)
COLUMNS: Axes = ((2, 2),)


def failure(runtime: Runtime, programs: Path, entry: str, words: list[int], seconds: float = 2.0) -> RuntimeFailure:
    """The failure of an entry, which must come soon, and after which a good run must succeed."""
    program = runtime.load(programs)
    inputs = [values((8,), DataType.F32, seed) for seed in range(runtime.device_count)]
    begin = time.monotonic()
    with pytest.raises(RuntimeFailure) as caught:
        run(program, entry, [words] * runtime.device_count, inputs, (64,))
    assert time.monotonic() - begin < seconds
    axes = axes_words(((1, runtime.device_count),))
    results, statistics = run(program, "all_reduce", [[0, 8, 7, 0, 0, *axes]] * runtime.device_count, inputs, (8,))
    np.testing.assert_allclose(results[0], np.sum(inputs, axis=0), rtol=1e-5)
    assert statistics.leaked_bytes == 0
    assert runtime.tier(Tier.DEVICE).used == 0
    return caught.value


def test_a_skipped_collective(runtimes: Runtimes, programs: Path) -> None:
    error = failure(runtimes(4), programs, "skips_one", axes_words(ALL_FOUR))
    assert error.status == "HP_DEADLOCK"
    text = str(error)
    assert "device 0 waits in all_reduce sum of 8 x f32 'layer.0.mlp' in the group of devices {0, 1, 2, 3}" in text
    assert "not reached by 3" in text
    assert "device 3 has ended its program" in text
    assert "attention" not in text


def test_collectives_in_crossed_order(runtimes: Runtimes, programs: Path) -> None:
    words = [*axes_words(ROWS), *axes_words(COLUMNS)]
    error = failure(runtimes(4), programs, "crossed_order", words)
    assert error.status == "HP_DEADLOCK"
    assert str(error).count("waits in all_reduce") == 4


def test_a_lost_message(runtimes: Runtimes, programs: Path) -> None:
    error = failure(runtimes(2), programs, "lost_message", [0])
    assert error.status == "HP_DEADLOCK"
    assert "device 0 waits in recv of 32 bytes from device 1 with tag 5" in str(error)


def test_different_kinds(runtimes: Runtimes, programs: Path) -> None:
    error = failure(runtimes(4), programs, "different_kinds", axes_words(ALL_FOUR))
    assert error.status == "HP_MISMATCH"
    assert "device 0 calls all_reduce sum of 8 x f32 'loss'" in str(error)
    assert "device 1 calls all_gather of 2 x f32" in str(error)


def test_different_sizes(runtimes: Runtimes, programs: Path) -> None:
    error = failure(runtimes(4), programs, "different_sizes", axes_words(ALL_FOUR))
    assert error.status == "HP_MISMATCH"
    assert "8 x f32" in str(error)
    assert "4 x f32" in str(error)


@pytest.mark.parametrize("device", [0, 2])
def test_an_assertion_releases_the_others(device: int, runtimes: Runtimes, programs: Path) -> None:
    error = failure(runtimes(4), programs, "asserts", [*axes_words(ALL_FOUR), device], seconds=0.5)
    assert error.status == "HP_PROGRAM_ERROR"
    assert str(error) == f"device {device}: assertion failed: index out of bounds"


@pytest.mark.parametrize("devices", [1, 4])
def test_an_assertion_in_a_parallel_loop(devices: int, runtimes: Runtimes, programs: Path) -> None:
    for _ in range(20):
        error = failure(runtimes(devices), programs, "asserts_in_loop", [0])
        assert re.fullmatch(r"device \d: assertion failed: row 777 is bad", str(error))


def test_allocation_in_a_parallel_loop(runtimes: Runtimes, programs: Path) -> None:
    error = failure(runtimes(1), programs, "allocates_in_loop", [0])
    assert "allocation inside the body of a hp_rt_parallel_for is not allowed" in str(error)


def test_double_free_and_double_wait(runtimes: Runtimes, programs: Path) -> None:
    assert "it was freed before" in str(failure(runtimes(1), programs, "frees_twice", [0]))
    error = failure(runtimes(2), programs, "waits_twice", axes_words(((1, 2),)))
    assert "expected a future that was not waited for" in str(error)


@pytest.mark.parametrize("axes", [((1, 3),), ((2, 4),), ((1, 2), (1, 2)), ((0, 2),), ((3, 2),)])
def test_axes_that_are_not_of_the_mesh(axes: Axes, runtimes: Runtimes, programs: Path) -> None:
    error = failure(runtimes(4), programs, "all_reduce", [0, 8, 7, 0, 0, *axes_words(axes)])
    assert "are no disjoint axes of a mesh of 4 devices" in str(error)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([0, 8, 99, 0, 0], "all_reduce: expected a dtype but got 99"),
        ([0, 8, 7, 4, 0], "all_reduce: and of f32 elements is not defined"),
        ([0, 8, 0, 0, 0], "all_reduce: sum of i1 elements is not defined"),
        ([0, -1, 7, 0, 0], "all_reduce: expected sizes >= 0 but got -1"),
    ],
)
def test_bad_parameters(words: list[int], message: str, runtimes: Runtimes, programs: Path) -> None:
    error = failure(runtimes(2), programs, "all_reduce", [*words, *axes_words(((1, 2),))])
    assert message in str(error)


def test_uneven_all_to_all(runtimes: Runtimes, programs: Path) -> None:
    error = failure(runtimes(2), programs, "all_to_all", [0, 0, 1, 4, 2, 3, 2, 1, 1, *axes_words(((1, 2),))])
    assert "dimension 0 of size 3 cannot be split over 2 devices" in str(error)


def test_programs_that_cannot_be_loaded(tmp_path: Path, runtimes: Runtimes, programs: Path) -> None:
    runtime = runtimes(1)
    with pytest.raises(RuntimeFailure, match=r"cannot load the program '.*missing\.so'"):
        runtime.load(tmp_path / "missing.so")
    (tmp_path / "empty.so").write_bytes(b"")
    with pytest.raises(RuntimeFailure, match="cannot load the program"):
        runtime.load(tmp_path / "empty.so")
    (tmp_path / "cut.so").write_bytes(programs.read_bytes()[:5000])
    with pytest.raises(RuntimeFailure, match="cannot load the program"):
        runtime.load(tmp_path / "cut.so")
    program = runtime.load(programs)
    assert program.has_entry("all_reduce")
    assert not program.has_entry("nonsense")
    with pytest.raises(RuntimeFailure, match="has no entry 'nonsense'"):
        program.run("nonsense", [[]], [[]])


def test_a_program_of_another_abi(tmp_path: Path, runtimes: Runtimes) -> None:
    source = tmp_path / "old.c"
    source.write_text("const unsigned hp_program_abi = 77;\n")
    subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(tmp_path / "old.so")], check=True)
    with pytest.raises(RuntimeFailure, match="was compiled for runtime ABI version 77 but this is 1"):
        runtimes(1).load(tmp_path / "old.so")


def test_launches_that_make_no_sense(runtimes: Runtimes, programs: Path) -> None:
    runtime = runtimes(2)
    program = runtime.load(programs)
    cases = [
        ([], "expected one launch at least"),
        ([Launch(program, "ring", [], [], device=5)], "expected a device below 2 but got 5"),
        ([Launch(program, "ring", [], []), Launch(program, "ring", [], [], rank=1)], "device 0 has more than one"),
        (
            [Launch(program, "ring", [], []), Launch(program, "ring", [], [], device=1)],
            "than one launch of rank 0",
        ),
        ([Launch(program, "ring", [], [], rank=1)], "group 0: expected ranks 0 to 0 but got 1 to 1"),
    ]
    for launches, message in cases:
        with pytest.raises(RuntimeFailure, match=message):
            runtime.run(launches)
    strided = np.zeros((4, 4), dtype=np.float32)[:, ::2]
    with pytest.raises(RuntimeFailure, match="argument 0: expected a C-contiguous array"):
        runtime.run([Launch(program, "ring", [strided], [])])


def test_contexts_that_cannot_be_made() -> None:
    with pytest.raises(RuntimeFailure, match="back end 'abacus' is not installed") as caught:
        Runtime(backend="abacus")
    assert caught.value.status == "HP_NOT_FOUND"
    with pytest.raises(RuntimeFailure, match="expected 1 to 4096 virtual devices but got -2"):
        Runtime(-2)
    with pytest.raises(RuntimeFailure, match="option 'threads': expected a number from 1 to 4096 but got '0'"):
        Runtime(threads=0)
    runtime = Runtime()
    runtime.close()
    with pytest.raises(RuntimeFailure, match="the runtime was closed"):
        runtime.load("x.so")


ENDLESS = """
import sys, numpy as np
from hyperparallel.runtime import Runtime
runtime = Runtime(4)
program = runtime.load(sys.argv[1])
print("running", flush=True)
program.run("spins_forever", [[]] * 4, [[]] * 4)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_the_process(number: signal.Signals, programs: Path) -> None:
    """An endless run ends soon after Ctrl-C or SIGTERM, and nothing of it is left."""
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, str(programs)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    time.sleep(0.2)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    assert children.read_text() == ""
    begin = time.monotonic()
    process.send_signal(number)
    _, errors = process.communicate(timeout=10)
    assert time.monotonic() - begin < 3
    assert process.returncode in (-number, 1, 130)
    if number == signal.SIGINT:
        assert "KeyboardInterrupt" in errors
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_a_trace_is_json_with_all_devices(tmp_path: Path, runtimes: Runtimes, programs: Path) -> None:
    runtime = runtimes(2)
    program = runtime.load(programs)
    inputs = [values((8,), DataType.F32, seed) for seed in range(2)]
    path = tmp_path / "trace.json"
    with runtime.trace(path):
        run(program, "all_reduce", [[0, 8, 7, 0, 0, *axes_words(((1, 2),))]] * 2, inputs, (8,))
    run(program, "all_reduce", [[0, 8, 7, 0, 0, *axes_words(((1, 2),))]] * 2, inputs, (8,))
    events = json.loads(path.read_text())["traceEvents"]
    names = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert {"device 0", "device 1"} <= names
    spans = [event for event in events if event["ph"] == "X"]
    assert sorted(span["cat"] for span in spans) == ["collective"] * 2 + ["program"] * 2
    assert {span["tid"] for span in spans} == {0, 1}
    collective = next(span for span in spans if span["cat"] == "collective")
    assert collective["name"] == "all_reduce sum of 8 x f32 'test.reduce'"
    assert collective["args"]["bytes"] == 32
    assert collective["dur"] >= 0
    with pytest.raises(RuntimeFailure, match="cannot write the trace"), runtime.trace(tmp_path / "no" / "trace.json"):
        pass


def test_loops_bear_their_function_in_a_trace(tmp_path: Path, runtimes: Runtimes, programs: Path) -> None:
    runtime = runtimes(1)
    program = runtime.load(programs)
    inputs = [values((40, 5), DataType.F32, 1)]
    with runtime.trace(tmp_path / "trace.json"):
        run(program, "loops", [[40, 5, 1, 3]], inputs, (40, 5))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [event["name"] for event in events if event.get("cat") == "parallel_for"] == ["rows_body"] * 3
