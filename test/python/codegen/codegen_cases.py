# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests of code generation share: compile a program and run it on arrays."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mlir import ir
from numpy.typing import NDArray

from hyperparallel import _hyperparallel
from hyperparallel.bishengir import write_fragments
from hyperparallel.pipeline import make_context, parse_program
from hyperparallel.runtime import Launch, RunStatistics, Runtime, empty, numpy_dtype

Array = NDArray[Any]
Execute = Callable[..., list[Array]]


TARGET: str = "cpu"
"""What is compiled for, and run on: test_cuda.py and test_ascend.py set it for tests that they take from other files."""


def compile_text(text: str, path: Path, cache: Path | None = None) -> Path:
    """Compile a module to a shared object at ``path``."""
    kernels = {"cpu": [], "cuda": ["kernels.ptx", "sm_80"], "ascend": ["kernels.mlir", "Ascend910B1"]}[TARGET]
    if kernels:
        kernels = [str(path.with_name(kernels[0])), kernels[1]]

    def write(refused: list[str]) -> None:
        module = parse_program(text, "test.mlir", make_context())
        if refused:
            with module.context:
                module.operation.attributes["hp.refused"] = ir.ArrayAttr.get(
                    [ir.StringAttr.get(one) for one in refused]
                )
        _hyperparallel.compile_program(module, str(path), str(cache) if cache else "", 2, *kernels)

    if TARGET == "ascend":
        write_fragments(path.with_name("kernels.mlir"), "Ascend910B1", write)
    else:
        write([])
    return path


def run_program(path: Path, inputs: Sequence[Array], devices: int = 1) -> tuple[list[list[Array]], RunStatistics]:
    """Run ``@main`` with the same inputs on every device; the results and statistics of each."""
    (entry,) = [e for e in json.loads(path.with_suffix(".json").read_text())["entries"] if e["name"] == "main"]
    results = [[empty(r["shape"], numpy_dtype(r["dtype"])) for r in entry["results"]] for _ in range(devices)]
    for filled in results:
        for array in filled:
            array.reshape(-1).view(np.uint8)[...] = 0x5A  # Not what an empty buffer happens to hold.
    with Runtime(devices, backend=TARGET) as runtime:
        program = runtime.load(path)
        statistics = runtime.run(
            [
                Launch(program, entry["symbol"], list(inputs), results[device], device=device, rank=device)
                for device in range(devices)
            ]
        )
    return results, statistics
