# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every back end does what docs/Runtime.md says: "cpu", and "cuda" and "ascend" over fakes that compute on the CPU."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hyperparallel import _hyperparallel
from hyperparallel.bishengir import DEFAULT_SOC, assemble_fragments
from hyperparallel.pipeline import make_context, parse_program
from hyperparallel.runtime import find_library, find_openblas

FOLDER = Path(__file__).parent / "conformance"
SUITE = ["conformance", "elements", "groups", "products", "programs"]
PARTS = ["capabilities", "memory", "copies", "order", "products", "groups", "programs"]
NEGATE = FOLDER.parent / "Inputs" / "negate.mlir"


def build(names: list[str], folder: Path, compile_c: Callable[..., None]) -> Path:
    library = find_library()
    program = folder / names[0]
    sources = [FOLDER / f"{name}.c" for name in names]
    compile_c(*sources, "-o", program, library, "-lm", f"-Wl,-rpath,{library.parent}")
    return program


def run(program: Path, *arguments: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *arguments],
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def negate(folder: Path, target: str) -> tuple[Path, str]:
    """The suite's program for a back end, and the name of its kernel."""
    path = folder / "program.so"
    kernels = {"cuda": ["kernels.ptx", "sm_80"], "ascend": ["kernels.mlir", DEFAULT_SOC]}.get(target, [])
    if kernels:
        kernels = [str(folder / kernels[0]), kernels[1]]
    _hyperparallel.compile_program(
        parse_program(NEGATE.read_text(encoding="utf-8"), "negate.mlir", make_context()), str(path), "", 1, *kernels
    )
    if target == "ascend":
        assemble_fragments(folder / "kernels.mlir", DEFAULT_SOC)
    described = json.loads(path.with_suffix(".json").read_text())
    return path, described["kernels"][0]["name"] if kernels else "none"


def conform(
    folder: Path, compile_c: Callable[..., None], backend: str, *options: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    program, kernel = negate(folder, backend)
    return run(build(SUITE, folder, compile_c), backend, program, kernel, folder / "trace.json", *options, env=env)


def test_cpu_conforms(tmp_path: Path, compile_c: Callable[..., None]) -> None:
    openblas = find_openblas()
    assert openblas is not None
    ran = conform(tmp_path, compile_c, "cpu", "openblas", str(openblas))
    assert ran.returncode == 0, ran.stdout
    assert ran.stdout.splitlines() == [f"ok {part}" for part in PARTS]


@pytest.mark.parametrize("backend", ["cuda", "ascend"])
def test_devices_conform_over_fakes(
    backend: str, tmp_path: Path, compile_c: Callable[..., None], request: pytest.FixtureRequest
) -> None:
    fakes: dict[str, str] = request.getfixturevalue("fake_gpu" if backend == "cuda" else "fake_npu")
    ran = conform(tmp_path, compile_c, backend, env=fakes)
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout
    assert ran.stdout.splitlines() == [f"ok {part}" for part in PARTS]
    spans = [event for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"] if event["ph"] == "X"]
    assert {span["cat"] for span in spans} == {"program", "parallel_for"}
    assert all(span["dur"] >= 0 for span in spans)


def test_the_fake_finds_a_missing_wait(
    tmp_path: Path, compile_c: Callable[..., None], fake_gpu: dict[str, str]
) -> None:
    program = build(["missing_wait"], tmp_path, compile_c)
    assert run(program, "cuda", "wait", env=fake_gpu).stdout == "ok: \n"
    ran = run(program, "cuda", env=fake_gpu)
    assert ran.stdout.startswith("internal error: copying: fake GPU: race: a copy from device to host")
    assert "which a fill on stream" in ran.stdout
    assert "no event orders the two" in ran.stdout


def test_the_fake_npu_finds_a_missing_wait(
    tmp_path: Path, compile_c: Callable[..., None], fake_npu: dict[str, str]
) -> None:
    program = build(["missing_wait"], tmp_path, compile_c)
    assert run(program, "ascend", "wait", env=fake_npu).stdout == "ok: \n"
    ran = run(program, "ascend", env=fake_npu)
    assert "race: a copy from device to host" in ran.stdout
    assert "no event orders the two" in ran.stdout


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("HP_LIBCUDA", "back end 'cuda' needs the NVIDIA driver's libcuda.so.1"),
        ("HP_LIBCUBLASLT", "matrix products on 'cuda' need libcublasLt.so.13 or .12"),
        ("HP_LIBNCCL", "collectives on 'cuda' need libnccl.so.2"),
    ],
)
def test_a_missing_library_is_named_with_the_remedy(
    tmp_path: Path, compile_c: Callable[..., None], fake_gpu: dict[str, str], variable: str, said: str
) -> None:
    ran = conform(tmp_path, compile_c, "cuda", env={**fake_gpu, variable: str(tmp_path / "missing.so")})
    assert ran.returncode == 1
    assert said in ran.stdout
    assert f"name the library in {variable}" in ran.stdout
