# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inference on the CPU: a compiled program on one device against PyTorch eager and ``torch.compile``.

    python benchmarks/cpu_inference.py --json
    python benchmarks/cpu_inference.py --model examples/llama.py --rounds 20 --no-torch-compile

The three take turns in one process, with the same threads, inputs and weights, so that whatever else the machine does
hits them alike. A ratio above 1 means that ours is faster. Results are compared before anything is timed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]

MISSING = [
    "weights are packed by BLAS at every call, not once when they are loaded",
    "bias and activation are a pass of their own after each matmul; the runtime's epilogues are not used yet",
    "transposes that no matmul can read in place are copied without blocking",
]


def tensors_of(value: Any) -> list[Any]:
    """The tensors of a model's output, in order."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for part in value for tensor in tensors_of(part)]
    return []


def seconds_of(action: Callable[[], Any]) -> float:
    """Wall seconds of one call."""
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def build_ours(
    model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], threads: int
) -> tuple[Callable[[], Any], list[Any], dict[str, float], list[float]]:
    """Import and compile a model.

    Returns:
        A run, the arrays it fills, what making it took, and a list that gets each run's share of time in matmuls.
    """
    from hyperparallel import _hyperparallel
    from hyperparallel.frontend.torch import import_model
    from hyperparallel.pipeline import make_context, parse_program
    from hyperparallel.runtime import Launch, Runtime, empty, numpy_dtype

    seconds: dict[str, float] = {}
    begin = time.perf_counter()
    imported = import_model(model, args, dict(kwargs))
    seconds["import"] = time.perf_counter() - begin

    directory = Path(tempfile.mkdtemp(prefix="hyperparallel-benchmark-"))
    program = directory / "program.so"
    for run in ("compile_cold", "compile_warm"):
        begin = time.perf_counter()
        module = parse_program(imported.mlir, "model.mlir", make_context())
        _hyperparallel.compile_program(module, str(program), str(directory / "cache"), threads)
        seconds[run] = time.perf_counter() - begin

    given = iter(tensor.numpy() for tensor in tensors_of([*args, *kwargs.values()]))
    arguments = [
        np.ascontiguousarray(next(given) if argument.role.value == "input" else imported.weight(argument.name))
        for argument in imported.arguments
    ]
    results = [empty(result.shape, numpy_dtype(result.dtype)) for result in imported.results]
    runtime = Runtime(devices=1, threads=threads)
    launches = [Launch(runtime.load(program), "hp_entry_main", arguments, results, device=0, rank=0)]
    shares: list[float] = []

    def run() -> None:
        device = runtime.run(launches).devices[0]
        shares.append(device.matmul_seconds / device.wall_seconds)

    run()
    return run, results, seconds, shares


def measure(model_file: Path, rounds: int, threads: int, with_compile: bool) -> dict[str, Any]:
    """Time the contestants on one model."""
    import torch

    from hyperparallel.frontend.model_file import load_model_file

    torch.set_num_threads(threads)
    loaded = load_model_file(model_file, {})
    model, args, kwargs = loaded.module, loaded.args, loaded.kwargs
    ours, results, seconds, shares = build_ours(model, args, kwargs, threads)

    def eager() -> Any:
        with torch.no_grad():
            return model(*args, **kwargs)

    expected = [tensor.numpy() for tensor in tensors_of(eager())]
    error = max(
        float(np.abs(got - want).max() / max(np.abs(want).max(), 1e-30))
        for got, want in zip(results, expected, strict=False)
    )
    contestants: dict[str, Callable[[], Any]] = {"ours": ours, "eager": eager}
    if with_compile:
        compiled = torch.compile(model)

        def run_compiled() -> Any:
            with torch.no_grad():
                return compiled(*args, **kwargs)

        seconds["torch_compile"] = seconds_of(run_compiled)
        contestants["torch.compile"] = run_compiled

    for action in contestants.values():
        action()
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, action in contestants.items():
            times[name].append(seconds_of(action))
    report: dict[str, Any] = {
        "model": model_file.stem,
        "threads": threads,
        "rounds": rounds,
        "max_rel_error": error,
        "seconds": {name: statistics.median(values) for name, values in times.items()},
        "best_seconds": {name: min(values) for name, values in times.items()},
        "making_seconds": seconds,
    }
    # Of each round by itself: what slows the machine slows all that take their turn in it.
    report["ratio"] = {
        name: statistics.median(other / own for own, other in zip(times["ours"], values, strict=True))
        for name, values in times.items()
        if name != "ours"
    }
    report["matmul_share"] = statistics.median(shares[-rounds:])
    report["missing"] = MISSING
    return report


def main() -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=ROOT / "examples" / "gpt2.py", help="a model file")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--no-torch-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    report = measure(options.model, options.rounds, options.threads, not options.no_torch_compile)
    if options.json:
        print(json.dumps(report))
        return
    print(f"{report['model']}: {options.threads} threads, relative error {report['max_rel_error']:.1e}")
    for name, value in report["seconds"].items():
        ratio = report["ratio"].get(name)
        print(f"  {name:14} {1e3 * value:9.1f} ms" + (f"   ours is {ratio:.2f} times as fast" if ratio else ""))
    made = ", ".join(f"{name} {value:.1f} s" for name, value in report["making_seconds"].items())
    for gap in report["missing"]:
        print(f"  missing: {gap}")
    print(f"  of ours, {100 * report['matmul_share']:.0f} % in matmuls; making: {made}")


if __name__ == "__main__":
    main()
