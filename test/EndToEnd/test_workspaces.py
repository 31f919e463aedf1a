# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What libraries need beside their operands is memory of the program: planned, counted, under its limit.

The fakes want all of the workspace that a product may have, and as much as the operands of a product take on NPUs; they fill
it with no numbers, and refuse one that something else is in (``test/Runtime/fakes``).
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Outcome, command_of
from fakes import fake_library
from gpu_models import Case, case, reports, without_calls, words_of

from hyperparallel.compile import compile_model
from hyperparallel.compiled import OFFLOAD_FILE, CompiledProgram
from hyperparallel.errors import CompilationError, RuntimeFailure
from hyperparallel.execute import RunResult
from hyperparallel.plan import Plan

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = pytest.mark.usefixtures("one_worker")

EVERYTHING = 1 << 40
SLACK = 512 - 64
"""What a workspace is larger than it was asked for, as back ends align it to 512 bytes, and arenas to 64."""
WANTED = 1 << 20


def compiled(one: Case, folder: Path, device: dict[str, str], mesh: str = "tp=1", **options: Any) -> CompiledProgram:
    return one.compile(
        Plan(preset="megatron"), mesh, folder, **device, **{"device_memory": EVERYTHING, "recompute": False, **options}
    )


def measured(run: RunResult) -> set[int]:
    """The peaks of all devices, which allocated nothing beside what is planned and leaked nothing."""
    assert not any(sum(one.leaked_bytes.values()) for one in run.statistics.devices)
    return {one.peak_bytes["device"] for one in run.statistics.devices}


def assert_same(left: RunResult, right: RunResult) -> None:
    assert left.losses == right.losses
    for name, value in left.results.items():
        np.testing.assert_array_equal(value, right.results[name], err_msg=name)


@pytest.mark.parametrize("mesh", ["tp=1", "dp=2,tp=2"])
def test_peaks_have_workspaces(device: dict[str, str], mesh: str, tmp_path: Path) -> None:
    """By default what the largest call's operands take, or what is asked for: in the plan, the manifest, and the books."""
    one = case("gpt2_train", vocab=38)
    usual = compiled(one, tmp_path / "usual", device, mesh)
    large = compiled(one, tmp_path / "large", device, mesh, workspace=100_000)
    assert usual.peak_bytes is not None
    assert large.peak_bytes is not None
    assert usual.workspace is not None
    assert 1024 <= usual.workspace < usual.peak_bytes // 4
    assert large.workspace == 100_352, "a multiple of 512"
    assert CompiledProgram.load(large.directory).workspace == large.workspace
    (told,) = (report["workspace"] for report in reports(usual))
    assert told["bytes"] == usual.workspace
    assert told["because"].startswith("operands and results of the largest call take ")
    (asked,) = (report["workspace"] for report in reports(large))
    assert asked == {"bytes": 100_352, "calls": told["calls"], "because": "as asked for"}
    # Each only while its call runs: where the peak is with small ones, large ones are most of it.
    assert usual.peak_bytes < large.peak_bytes <= usual.peak_bytes + large.workspace + SLACK
    first, second = one.run(usual), one.run(large)
    assert measured(first) == {usual.peak_bytes}
    assert measured(second) == {large.peak_bytes}
    # As many allocations, and the same numbers.
    assert [d.allocations for d in first.statistics.devices] == [d.allocations for d in second.statistics.devices]
    assert_same(first, second)


def test_captured_steps_have_theirs(device: dict[str, str], tmp_path: Path) -> None:
    one = case("llama_train")
    program = compiled(one, tmp_path / "program", device, workspace=50_000)
    as_it_is = one.run(program, repeat=3, graphs=False)
    run = one.run(program, repeat=3)
    assert (run.statistics.replayed, run.statistics.not_captured) == (1, None)
    assert len(set(run.losses)) == 3
    assert measured(run) == measured(as_it_is) == {program.peak_bytes}
    assert_same(run, as_it_is)


@pytest.mark.usefixtures("fake_gpu")
def test_products_do_without(tmp_path: Path) -> None:
    """cuBLASLt is told of none, and chooses what needs none; so it is where a program forgets to tell."""
    one, device = case("gpt2_train"), {"target": "cuda"}
    none = compiled(one, tmp_path / "none", device, workspace=0)
    assert none.workspace == 0
    assert [report["workspace"] for report in reports(none)] == [None]
    some = compiled(one, tmp_path / "some", device)
    assert some.workspace is not None
    assert none.peak_bytes is not None
    assert some.peak_bytes is not None
    assert none.peak_bytes < some.peak_bytes <= none.peak_bytes + some.workspace + SLACK
    run = one.run(none)
    assert measured(run) == {none.peak_bytes}
    # The fake's algorithms are one.
    assert_same(run, one.run(some))
    forgetful = one.run(without_calls(some, "hp_rt_workspace", "hp_rt_range_end"))
    assert measured(forgetful) == {some.peak_bytes}
    assert_same(run, forgetful)


@pytest.mark.usefixtures("fake_gpu")
def test_no_plan_with_workspaces(tmp_path: Path) -> None:
    """Where memory is too short for them, products of GPUs go without, unless they were asked for."""
    one, device = case("mixtral", layers=2), {"target": "cuda"}
    whole = compiled(one, tmp_path / "whole", device)
    assert whole.peak_bytes is not None
    # What a block of the model needs is 41% of the whole without workspaces, more than half with them.
    limit = whole.peak_bytes * 45 // 100
    program = compiled(one, tmp_path / "program", device, device_memory=limit)
    assert program.workspace == 0
    remarks = json.loads((program.directory / OFFLOAD_FILE).read_text())["remarks"]
    assert remarks[0] == f"products have no workspace: with one there is no plan for {limit} bytes"
    run = one.run(program)
    assert measured(run) == {program.peak_bytes}
    assert_same(run, one.run(whole))
    with pytest.raises(CompilationError, match=rf"does not fit into {limit} bytes"):
        compiled(one, tmp_path / "refused", device, device_memory=limit, workspace=whole.workspace)


def on_npu(one: Case, folder: Path, **options: Any) -> CompiledProgram:
    return compiled(one, folder, {"target": "ascend", "architectures": "Ascend910B1"}, **options)


@pytest.mark.usefixtures("fake_npu")
def test_an_operator_wants_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is drawn from the device, and counted; a step with it is captured all the same."""
    one = case("gpt2_train")
    program = on_npu(one, tmp_path / "program")
    before = one.run(program, repeat=3)
    assert measured(before) == {program.peak_bytes}
    monkeypatch.setenv("HP_FAKE_ASCEND_WORKSPACE", f"aclnnBatchMatMul={WANTED}")
    assert program.peak_bytes is not None
    wants = one.run(program, device_memory=program.peak_bytes + WANTED + SLACK)
    grown = one.run(program, repeat=3, device_memory=2 * program.peak_bytes + 2 * WANTED)
    (peak,) = measured(wants)
    assert program.peak_bytes // 2 + WANTED < peak <= program.peak_bytes + WANTED + SLACK
    assert wants.statistics.devices[0].allocations > before.statistics.devices[0].allocations
    assert (grown.statistics.replayed, grown.statistics.not_captured) == (1, None)
    assert max(measured(grown)) <= program.peak_bytes + WANTED + SLACK
    assert_same(grown, before)


@pytest.mark.usefixtures("fake_npu")
@pytest.mark.parametrize("mesh", ["tp=1", "dp=2,tp=2"])
def test_an_operator_wants_more_than_there_is(mesh: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says who wants how much of what, and how to mend it; done so, it runs."""
    one = case("gpt2_train", vocab=38)
    monkeypatch.setenv("HP_FAKE_ASCEND_WORKSPACE", f"aclnnMatmul={WANTED}")
    program = on_npu(one, tmp_path / "program", mesh=mesh)
    assert program.peak_bytes is not None
    limit = program.peak_bytes + 4096
    with pytest.raises(
        RuntimeFailure,
        match=rf"device \d: operator matmul wants a workspace of {WANTED} bytes, but [1-9]\d* are reserved for it, and "
        rf"the device has no more \(tier 'device': {WANTED + SLACK} bytes are wanted, \d+ of at most {limit} are in use\); "
        rf"compile with --workspace {WANTED}B",
    ):
        one.run(program, device_memory=limit)
    mended = on_npu(one, tmp_path / "mended", mesh=mesh, workspace=WANTED)
    assert mended.peak_bytes is not None
    assert WANTED < mended.peak_bytes <= program.peak_bytes + WANTED + SLACK
    run = one.run(mended, device_memory=mended.peak_bytes)
    assert measured(run) == {mended.peak_bytes}
    assert_same(run, one.run(program, device_memory=EVERYTHING))


@pytest.mark.usefixtures("fake_npu")
def test_a_program_that_does_not_tell(tmp_path: Path) -> None:
    """Nothing that it reserved is used then: it needs more than was planned, and says so."""
    one = case("gpt2")
    program = on_npu(one, tmp_path / "program")
    expected = one.run(program)
    assert measured(expected) == {program.peak_bytes}
    forgetful = without_calls(program, "hp_rt_workspace", "hp_rt_range_end")
    with pytest.raises(RuntimeFailure, match=r"wants a workspace of \d+ bytes, but 0 are reserved for it"):
        one.run(forgetful, device_memory=program.peak_bytes)
    run = one.run(forgetful, device_memory=EVERYTHING)
    assert max(measured(run)) > (program.peak_bytes or 0)
    assert_same(run, expected)


def test_groups_of_devices(device: dict[str, str], tmp_path: Path) -> None:
    """Each group's program reserves its own; the whole tells of the largest."""
    one = case("gpt2_train", layers=2, microbatches=2)
    plan = Plan(mesh="pp=2,tp=1", preset="megatron", schedule="1f1b")
    program = one.compile(plan, None, tmp_path / "program", **device, workspace=4096)
    assert [part.workspace for part in program.programs] == [4096, 4096]
    assert program.workspace == 4096
    assert one.run(program).losses == one.run(one.compile(plan, None, tmp_path / "usual", **device)).losses


@pytest.fixture
def hp(capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    return command_of(capfd)


@pytest.mark.usefixtures("fake_gpu")
def test_the_command(hp: Callable[..., Outcome], tmp_path: Path) -> None:
    folder = tmp_path / "program"
    words = [*words_of("gpt2", "tp=1"), "--target", "cuda", "--arch", "sm_80", "-o", folder]
    made = hp("compile", *words, "--workspace", "2KiB").told()
    assert made["workspace"] == made["kernels"]["workspace"]["bytes"] == 2048
    assert json.loads((folder / "manifest.json").read_text())["workspace"] == 2048
    told = hp("compile", *(word for word in words if word not in ("--json", "-q")), "--workspace", "2KiB")
    assert "  workspaces of 7 calls of libraries, of at most 2048 bytes: as asked for" in told.err
    assert hp("compile", *words, "--workspace", "0").told()["workspace"] == 0
    for size in ("-5B", "5"):
        refused = hp("compile", *words, f"--workspace={size}")
        assert (refused.status, refused.out) == (2, "")
        assert "argument --workspace: expected a size" in refused.err


def test_only_for_libraries(tmp_path: Path) -> None:
    with pytest.raises(
        CompilationError, match=r"one of the targets cuda, ascend, whose libraries use it.* is cpu; leave"
    ):
        compile_model(case("gpt2").imported, Plan(preset="megatron"), "tp=1", tmp_path / "program", workspace=4096)


class _Fake:
    """A fake driver with a piece of memory, and a library over it."""

    def __init__(self, library: str) -> None:
        self.driver = ctypes.CDLL(str(fake_library("cuda")))
        self.library = ctypes.CDLL(str(fake_library(library)))
        context, memory, self.stream = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p()
        assert self.driver.cuInit(0) == 0
        assert self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        assert self.driver.cuCtxSetCurrent(context) == 0
        assert self.driver.cuStreamCreate(ctypes.byref(self.stream), 1) == 0
        assert self.driver.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(8192)) == 0
        self.memory = -(-memory.value // 512) * 512
        assert self.driver.cuMemsetD8Async(ctypes.c_uint64(self.memory), 0, ctypes.c_size_t(4096), self.stream) == 0

    def why(self) -> str:
        """What was refused last."""
        text = ctypes.c_char_p()
        self.driver.cuGetErrorString(999, ctypes.byref(text))
        return (text.value or b"").decode()


def product_in(at: int) -> str:
    """What the fake cuBLASLt refuses of a product of 8x8 at the beginning of its memory, with a workspace so far behind."""
    fake = _Fake("cublaslt")
    lt, single, size = fake.library, ctypes.c_float(1), ctypes.c_size_t(512)
    handle, desc, layout, preference = (ctypes.c_void_p() for _ in range(4))
    assert lt.cublasLtCreate(ctypes.byref(handle)) == 0
    assert lt.cublasLtMatmulDescCreate(ctypes.byref(desc), 68, 0) == 0
    assert lt.cublasLtMatrixLayoutCreate(ctypes.byref(layout), 0, *(ctypes.c_uint64(8),) * 3) == 0
    assert lt.cublasLtMatmulPreferenceCreate(ctypes.byref(preference)) == 0
    assert lt.cublasLtMatmulPreferenceSetAttribute(preference, 1, ctypes.byref(size), ctypes.c_size_t(8)) == 0
    algorithm, found = (ctypes.c_uint64 * 16)(), ctypes.c_int()
    heuristic = lt.cublasLtMatmulAlgoGetHeuristic
    assert heuristic(handle, desc, *[layout] * 4, preference, 1, algorithm, ctypes.byref(found)) == 0
    a, b, c = (ctypes.c_void_p(fake.memory + 256 * operand) for operand in range(3))
    scale, workspace = ctypes.byref(single), ctypes.c_void_p(fake.memory + at)
    done = lt.cublasLtMatmul(
        *(
            handle,
            desc,
            scale,
            a,
            layout,
            b,
            layout,
            scale,
            c,
            layout,
            c,
            layout,
            algorithm,
            workspace,
            size,
            fake.stream,
        )
    )
    return fake.why() if done else ""


def operator_in(at: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same of an operator that adds two tensors of 64 numbers, and wants 512 bytes."""
    monkeypatch.setenv("HP_FAKE_ASCEND_WORKSPACE", "aclnnMul=512")
    fake = _Fake("opapi")
    opapi, one, count = fake.library, (ctypes.c_int64 * 1)(1), (ctypes.c_int64 * 1)(64)
    create, dims, none = opapi.aclCreateTensor, ctypes.c_uint64(1), ctypes.c_int64(0)
    create.restype = ctypes.c_void_p
    tensors = [
        ctypes.c_void_p(create(count, dims, 0, one, none, 2, count, dims, ctypes.c_void_p(fake.memory + 256 * number)))
        for number in range(3)
    ]
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    assert opapi.aclnnMulGetWorkspaceSize(*tensors, ctypes.byref(size), ctypes.byref(executor)) == 0
    assert size.value == 512
    done = opapi.aclnnMul(ctypes.c_void_p(fake.memory + at), size, executor, fake.stream)
    return fake.why() if done else ""


def test_what_the_fakes_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A workspace that something else is in, one beyond the memory, and one that is not aligned."""
    assert product_in(1024) == operator_in(1024, monkeypatch) == ""
    assert "an operand of a product lies in its workspace" in product_in(512)
    assert "a tensor of an operator lies in its workspace" in operator_in(512, monkeypatch)
    assert "a workspace that is not aligned to 256 bytes" in product_in(1024 + 64)
    assert "a workspace that is not aligned to 512 bytes" in operator_in(1024 + 256, monkeypatch)
    assert product_in(8192)
    assert operator_in(8192, monkeypatch)
