# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model run within parts of the device memory that it wants: equal results, measured peak, measured and modelled time.

    python benchmarks/offload_execution.py --json
    python benchmarks/offload_execution.py --model examples/llama.py --meshes dp=2,tp=2 --parts 0.5 --machine FILE
    python benchmarks/offload_execution.py --model examples/gpt2_train.py --parts 0.7 0.5 0.35 --rounds 3

A training step is trained for as many steps as there are rounds; what is compared are the losses and all final state.

Limits are parts of the peak that the unconstrained program has on each device; the runtime enforces them. Times are the
least of several runs; the modelled ratio is that of two simulated steps on the machine (the preset `cpu-supernode`, or a
file that `hp machine calibrate` wrote).
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from hyperparallel.cli.console import Talk
from hyperparallel.cli.models import Model, open_model
from hyperparallel.compile import compile_model
from hyperparallel.compiled import OFFLOAD_FILE, CompiledProgram
from hyperparallel.execute import RunResult, run_compiled
from hyperparallel.runtime import Tier
from hyperparallel.simulator import simulate_file

ROOT = Path(__file__).resolve().parents[1]


def run(model: Model, program: CompiledProgram, rounds: int) -> RunResult:
    """Several runs of a program on its example inputs."""
    inputs, imported = model.inputs, model.imported
    return run_compiled(program, lambda name: inputs[name] if name in inputs else imported.weight(name), repeat=rounds)


def measure(model: Model, mesh: str, parts: list[float], rounds: int, machine: str | None) -> list[dict[str, Any]]:
    """One row for each part of the memory."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="hyperparallel-") as temporary:
        folder = Path(temporary)
        free_program = compile_model(model.imported, "megatron", mesh, folder / "free", machine=machine)
        free = run(model, free_program, rounds)
        peak = free.statistics.peak_bytes[Tier.DEVICE]
        # What is planned is fused first; the step to compare with is that of the same ops.
        roomy = compile_model(
            model.imported, "megatron", mesh, folder / "roomy", machine=machine, device_memory=2 * peak
        )
        free_step = simulate_file(roomy.directory, machine=machine).seconds
        for part in parts:
            limit = int(peak * part)
            program = compile_model(
                model.imported, "megatron", mesh, folder / f"{part}", machine=machine, device_memory=limit
            )
            result = run(model, program, rounds)
            plan = json.loads((program.directory / OFFLOAD_FILE).read_text(encoding="utf-8"))["plan"]
            differences = [
                float(np.max(np.abs(result.results[name].astype(np.float64) - value.astype(np.float64)), initial=0.0))
                for name, value in free.results.items()
            ]
            device = result.statistics.devices[0]
            rows.append(
                {
                    "model": model.imported.name,
                    "mesh": mesh,
                    "part": part,
                    "limit_bytes": limit,
                    "planned_peak_bytes": program.peak_bytes,
                    "measured_peak_bytes": result.statistics.peak_bytes[Tier.DEVICE],
                    "bit_equal": all(
                        result.results[name].tobytes() == value.tobytes() for name, value in free.results.items()
                    ),
                    "max_difference": max(differences),
                    "losses": list(result.losses),
                    "prefetched_bytes": device.prefetched_bytes,
                    "moves": len(plan["moves"]),
                    "unconstrained_s": min(free.wall_seconds),
                    "step_s": min(result.wall_seconds),
                    "measured_ratio": min(result.wall_seconds) / min(free.wall_seconds),
                    "modelled_ratio": simulate_file(program.directory, machine=machine).seconds / free_step,
                    "copy_wait_s": device.copy_wait_seconds,
                }
            )
    return rows


def main() -> None:
    """Prints a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=ROOT / "examples" / "gpt2.py")
    parser.add_argument("--model-arg", action="append", default=[], metavar="KEY=VALUE", help="of the model's build()")
    parser.add_argument("--meshes", nargs="+", default=["dp=1,tp=1", "dp=2,tp=2"])
    parser.add_argument("--parts", nargs="+", type=float, default=[0.6, 0.4, 0.25])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--machine", help="a preset or a file")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    given = [argument.partition("=") for argument in arguments.model_arg]
    overrides = {key: int(value) if value.isdigit() else value for key, _, value in given}
    model = open_model(arguments.model, overrides, Talk(quiet=True), use_cache=True)
    rows: list[dict[str, Any]] = []
    for mesh in arguments.meshes:
        rows += measure(model, mesh, arguments.parts, arguments.rounds, arguments.machine)
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return
    print(
        f"{'mesh':<12}{'memory':>8}{'limit MB':>10}{'peak MB':>10}{'equal':>7}{'ratio':>8}{'model':>8}{'waits ms':>10}"
    )
    for row in rows:
        print(
            f"{row['mesh']:<12}{row['part']:>8.0%}{row['limit_bytes'] / 1e6:>10.1f}{row['measured_peak_bytes'] / 1e6:>10.1f}"
            f"{'bits' if row['bit_equal'] else format(row['max_difference'], '.0e'):>7}{row['measured_ratio']:>8.2f}"
            f"{row['modelled_ratio']:>8.2f}{row['copy_wait_s'] * 1e3:>10.1f}"
        )


if __name__ == "__main__":
    main()
