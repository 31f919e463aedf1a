# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every back end does what docs/Runtime.md says: "cpu", and "cuda" over a fake driver that computes on the CPU."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hyperparallel.runtime import find_library, find_openblas

FOLDER = Path(__file__).parent / "conformance"
EVERYWHERE = {"memory", "copies", "order", "products", "empty products", "products with a bias and relu"}


def build(name: str, folder: Path, compile_c: Callable[..., None]) -> Path:
    library = find_library()
    program = folder / name
    compile_c(FOLDER / f"{name}.c", "-o", program, library, "-lm", f"-Wl,-rpath,{library.parent}")
    return program


def run(program: Path, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *arguments],
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def parts(output: str) -> dict[str, set[str]]:
    """What was ok, and what is not there."""
    found: dict[str, set[str]] = {"ok": set(), "unimplemented": set()}
    for line in output.splitlines():
        kind, _, name = line.partition(" ")
        found[kind].add(name)
    return found


def test_cpu_conforms(tmp_path: Path, compile_c: Callable[..., None]) -> None:
    openblas = find_openblas()
    assert openblas is not None
    ran = run(build("conformance", tmp_path, compile_c), "cpu", "openblas", str(openblas))
    assert ran.returncode == 0, ran.stdout
    found = parts(ran.stdout)
    assert found["unimplemented"] == set()
    assert found["ok"] >= EVERYWHERE | {"communicators", "products with a bias and gelu"}


def test_cuda_conforms_over_the_fake_driver(
    tmp_path: Path, compile_c: Callable[..., None], fake_gpu: dict[str, str]
) -> None:
    ran = run(build("conformance", tmp_path, compile_c), "cuda", env=fake_gpu)
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout
    found = parts(ran.stdout)
    assert found["ok"] >= EVERYWHERE | {"products with a bias and gelu_tanh"}
    # cuBLASLt has no such epilogues: the compiler writes kernels.
    assert found["unimplemented"] <= {
        "products with a bias and gelu",
        "products with a bias and silu",
        "communicators",
    }


def test_the_fake_finds_a_missing_wait(
    tmp_path: Path, compile_c: Callable[..., None], fake_gpu: dict[str, str]
) -> None:
    program = build("missing_wait", tmp_path, compile_c)
    assert run(program, "cuda", "wait", env=fake_gpu).stdout == "ok: \n"
    ran = run(program, "cuda", env=fake_gpu)
    assert ran.stdout.startswith("internal error: copying: fake GPU: race: a copy from device to host")
    assert "which a fill on stream" in ran.stdout
    assert "no event orders the two" in ran.stdout


def test_ascend_conforms_over_the_fake_runtime(
    tmp_path: Path, compile_c: Callable[..., None], fake_npu: dict[str, str]
) -> None:
    ran = run(build("conformance", tmp_path, compile_c), "ascend", env=fake_npu)
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout
    found = parts(ran.stdout)
    assert found["ok"] >= EVERYWHERE - {"products with a bias and relu"}
    # The chip has no f64; activations are fragments of the compiler.
    assert found["unimplemented"] <= {"products of f64", "communicators"} | {
        f"products with a bias and {name}" for name in ("relu", "gelu", "gelu_tanh", "silu")
    }


def test_the_fake_npu_finds_a_missing_wait(
    tmp_path: Path, compile_c: Callable[..., None], fake_npu: dict[str, str]
) -> None:
    program = build("missing_wait", tmp_path, compile_c)
    assert run(program, "ascend", "wait", env=fake_npu).stdout == "ok: \n"
    ran = run(program, "ascend", env=fake_npu)
    assert "race: a copy from device to host" in ran.stdout
    assert "no event orders the two" in ran.stdout


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("HP_LIBCUDA", "back end 'cuda' needs the NVIDIA driver's libcuda.so.1"),
        ("HP_LIBCUBLASLT", "matrix products on 'cuda' need libcublasLt.so.13 or .12"),
    ],
)
def test_a_missing_library_is_named_with_the_remedy(
    tmp_path: Path, compile_c: Callable[..., None], fake_gpu: dict[str, str], variable: str, said: str
) -> None:
    ran = run(
        build("conformance", tmp_path, compile_c), "cuda", env={**fake_gpu, variable: str(tmp_path / "missing.so")}
    )
    assert ran.returncode == 1
    assert said in ran.stdout
    assert f"name the library in {variable}" in ran.stdout
