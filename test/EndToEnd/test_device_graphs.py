# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step that devices run again is captured and replayed: the same bits, and a reason where it is not.

The fake drivers keep the rules of captures (``test/Runtime/fakes/FakeGraphs.cpp``), and holds what a graph does against
everything else, as it does with streams.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator
from pathlib import Path

import codegen_cases
import numpy as np
import pytest
from fakes import fake_library
from gpu_models import Case, case
from test_execution import GATHER

from hyperparallel.compiled import CompiledProgram
from hyperparallel.errors import RuntimeFailure
from hyperparallel.execute import RunResult
from hyperparallel.plan import Plan
from hyperparallel.runtime import Launch, Runtime, empty

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = pytest.mark.usefixtures("one_worker")


def captured(one: Case, program: CompiledProgram, steps: int, devices: int) -> RunResult:
    """Its last run, which every device replayed, to the bits of one that is not captured."""
    as_it_is = one.run(program, repeat=steps, graphs=False)
    assert as_it_is.statistics.not_captured == "the option 'graphs' is off"
    run = one.run(program, repeat=steps)
    assert (run.statistics.replayed, run.statistics.not_captured) == (devices, None)
    assert run.losses == as_it_is.losses
    for name, value in as_it_is.results.items():
        np.testing.assert_array_equal(run.results[name], value, err_msg=name)
    assert run.statistics.collectives == as_it_is.statistics.collectives
    return run


def test_training_step(device: dict[str, str], tmp_path: Path) -> None:
    """Each step goes on from what the one before it left in the same buffers."""
    one = case("gpt2_train")
    program = one.compile(Plan(preset="megatron"), "tp=1", tmp_path / "device", **device)
    run = captured(one, program, 4, 1)
    assert len(set(run.losses)) == 4
    # What a step allocates is allocated ahead, and no more.
    assert run.statistics.peak_bytes == one.run(program).statistics.peak_bytes


def test_collectives_on_streams(device: dict[str, str], tmp_path: Path) -> None:
    """Streams join the capture where they wait for it; NCCL's calls are in the graph."""
    one = case("llama_train", kv_heads=2)
    program = one.compile(Plan(preset="megatron"), "dp=2,tp=2", tmp_path / "device", **device)
    assert captured(one, program, 3, 4).statistics.collectives


def test_first_run_and_traces_are_not_captured(device: dict[str, str], tmp_path: Path) -> None:
    one = case("gpt2_train")
    program = one.compile(Plan(preset="megatron"), "tp=1", tmp_path / "device", **device)
    first = one.run(program).statistics
    assert (first.replayed, first.not_captured) == (0, "it runs for the first time with these buffers")
    traced = one.run(program, repeat=3, trace=tmp_path / "trace.json").statistics
    assert (traced.replayed, traced.not_captured) == (0, "a trace is recorded")


def test_messages_need_the_host(device: dict[str, str], tmp_path: Path) -> None:
    one = case("gpt2_train", layers=2, microbatches=2)
    program = one.compile(
        Plan(mesh="pp=2,tp=1", preset="megatron", schedule="1f1b"), None, tmp_path / "device", **device
    )
    statistics = one.run(program, repeat=3).statistics
    assert (statistics.replayed, statistics.not_captured) == (0, "the host waits for messages of other devices")


def test_an_assertion_of_a_replayed_step(
    device: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number that is out of range the fourth time, in the same buffer, ends the run, and the next one is run as it is."""
    monkeypatch.setattr(codegen_cases, "TARGET", device["target"])
    path = codegen_cases.compile_text(GATHER, tmp_path / "program.so")
    (entry,) = json.loads(path.with_suffix(".json").read_text())["entries"]
    table, rows = np.arange(99, dtype=np.float32).reshape(11, 9), np.full((4, 3), 7)
    result = empty(entry["results"][0]["shape"], "f32")
    with Runtime(1, backend=device["target"]) as runtime:
        launch = Launch(runtime.load(path), entry["symbol"], [table, rows], [result])
        for step in range(5):
            rows[:] = 11 if step == 3 else 7
            if step == 3:
                with pytest.raises(RuntimeFailure, match="index must be smaller than dim size"):
                    runtime.run([launch])
            else:
                assert runtime.run([launch]).replayed == (step in (1, 2))
                np.testing.assert_array_equal(result, table[rows])


REFUSED = 999


@pytest.fixture
def capture() -> Iterator[tuple[ctypes.CDLL, list[ctypes.c_void_p], ctypes.c_void_p]]:
    """The fake driver, two streams, the first of which is captured, and an event."""
    driver = ctypes.CDLL(str(fake_library("cuda")))
    streams, event, context = [ctypes.c_void_p(), ctypes.c_void_p()], ctypes.c_void_p(), ctypes.c_void_p()
    assert driver.cuInit(0) == 0
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxSetCurrent(context) == 0
    for stream in streams:
        assert driver.cuStreamCreate(ctypes.byref(stream), 1) == 0
    assert driver.cuEventCreate(ctypes.byref(event), 0) == 0
    assert driver.cuStreamBeginCapture_v2(streams[0], 1) == 0
    yield driver, streams, event
    graph = ctypes.c_void_p()
    driver.cuStreamEndCapture(streams[0], ctypes.byref(graph))
    if graph:
        driver.cuGraphDestroy(graph)


def test_what_the_fake_refuses_in_a_capture(
    capture: tuple[ctypes.CDLL, list[ctypes.c_void_p], ctypes.c_void_p],
) -> None:
    driver, (captured, other), event = capture
    place = ctypes.c_uint64()
    assert driver.cuStreamSynchronize(captured) == REFUSED
    assert driver.cuCtxSynchronize() == REFUSED
    assert driver.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(64)) == REFUSED
    assert driver.cuMemAllocAsync(ctypes.byref(place), ctypes.c_size_t(64), captured) == REFUSED
    assert driver.cuMemHostAlloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(64), 0) == REFUSED
    # An event of another stream, from before; and one that is captured, asked for.
    assert driver.cuEventRecord(event, other) == 0
    assert driver.cuStreamWaitEvent(captured, event, 0) == REFUSED
    assert driver.cuEventRecord(event, captured) == 0
    assert driver.cuEventQuery(event) == REFUSED


def test_the_fake_wants_all_streams_back(
    capture: tuple[ctypes.CDLL, list[ctypes.c_void_p], ctypes.c_void_p],
) -> None:
    driver, (captured, other), event = capture
    assert driver.cuEventRecord(event, captured) == 0
    assert driver.cuStreamWaitEvent(other, event, 0) == 0
    graph = ctypes.c_void_p()
    assert driver.cuStreamEndCapture(captured, ctypes.byref(graph)) == REFUSED
