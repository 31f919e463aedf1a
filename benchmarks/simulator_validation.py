# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the simulator predicts against what runs take: GPT-2, Llama, BERT and an MLP, at three sizes, on several meshes.

    python benchmarks/simulator_validation.py --json
    python benchmarks/simulator_validation.py --machine mine.yaml --only gpt2

Every program goes through the real pipeline and runs on the embedded CPU runtime; the simulator sees the same program of
one device, and a machine that `hp machine calibrate` measures first (or `--machine`, which it made). Nothing is fitted
to these programs.

The least time of a run counts, of several rounds that go through all programs, so that a disturbance meets a few runs of
each and not all runs of one; the calibration takes least times too. `median_s` is beside it. `error` is predicted over
measured, less one; `median_abs_error` and `kendall_tau` (the order of programs by time, Kendall's tau-b) sum up the rows.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hyperparallel.calibration import calibrate, calibration_text
from hyperparallel.cli.console import Talk
from hyperparallel.cli.models import open_model
from hyperparallel.compile import compile_model
from hyperparallel.compiled import CompiledProgram
from hyperparallel.execute import Array, program_launches
from hyperparallel.machines import Machine, load
from hyperparallel.runtime import Runtime
from hyperparallel.simulator import simulate_file

ROOT = Path(__file__).resolve().parents[1]

SIZES: dict[str, dict[str, Any]] = {
    "mlp-small": {"layers": 6, "width": 512, "hidden": 2048, "batch": 64},
    "mlp-medium": {"layers": 4, "width": 768, "hidden": 3072, "batch": 128},
    "mlp-large": {"layers": 4, "width": 1024, "hidden": 4096, "batch": 256},
    "gpt2-small": {"layers": 2, "width": 256, "heads": 4, "vocab": 2048, "batch": 4, "seq": 32},
    "gpt2-medium": {"layers": 4, "width": 512, "heads": 8, "vocab": 4096, "batch": 4, "seq": 64},
    "gpt2-large": {"layers": 3, "width": 768, "heads": 12, "vocab": 16384, "batch": 4, "seq": 128},
    "llama-small": {"layers": 2, "width": 256, "ff": 704, "heads": 4, "kv_heads": 2, "vocab": 2048, "seq": 32},
    "llama-medium": {"layers": 4, "width": 512, "ff": 1376, "heads": 8, "kv_heads": 4, "vocab": 4096, "seq": 64},
    "llama-large": {"layers": 3, "width": 768, "ff": 2048, "heads": 12, "kv_heads": 4, "vocab": 8192, "seq": 128},
    "bert-small": {"layers": 2, "width": 256, "ff": 1024, "heads": 4, "vocab": 2048, "seq": 32},
    "bert-medium": {"layers": 4, "width": 384, "ff": 1536, "heads": 12, "vocab": 8192, "seq": 64},
    "bert-large": {"layers": 4, "width": 768, "ff": 3072, "heads": 12, "vocab": 8192, "seq": 128},
}
CONFIGURATIONS = [
    ("mlp-small", "dp=1"),
    ("mlp-medium", "tp=2"),
    ("mlp-large", "dp=2"),
    ("mlp-large", "dp=2,tp=2"),
    ("gpt2-small", "dp=1"),
    ("gpt2-medium", "dp=1"),
    ("gpt2-medium", "tp=2"),
    ("gpt2-large", "dp=2,tp=2"),
    ("llama-small", "dp=2"),
    ("llama-medium", "tp=2"),
    ("llama-medium", "dp=4"),
    ("llama-large", "dp=1"),
    ("bert-small", "dp=1"),
    ("bert-medium", "tp=4"),
    ("bert-medium", "dp=2"),
    ("bert-large", "dp=2,tp=2"),
]


@dataclasses.dataclass(slots=True)
class Case:
    """A program: how it was made, and the wall times of its runs."""

    model: str
    mesh: str
    program: CompiledProgram
    value: Callable[[str], Array]
    seconds: list[float] = dataclasses.field(default_factory=list[float])

    def run(self, runs: int, budget: float) -> None:
        """Run so often, or until the budget of seconds is used up; three times at least. The first does not count."""
        with Runtime(devices=self.program.mesh.num_devices) as runtime:
            launches = program_launches(runtime, self.program, self.value)
            runtime.run(launches)
            end = time.perf_counter() + budget
            for turn in range(runs):
                if turn >= 3 and time.perf_counter() > end:
                    break
                self.seconds.append(runtime.run(launches).wall_seconds)


def make_case(model: str, mesh: str, directory: Path) -> Case:
    """Import (earlier imports are kept) and compile."""
    opened = open_model(
        ROOT / "examples" / f"{model.partition('-')[0]}.py", SIZES[model], Talk(quiet=True), use_cache=True
    )
    plan = "megatron" if "tp" in mesh else "data_parallel"
    program = compile_model(opened.imported, plan, mesh, out_dir=directory / f"{model}-{mesh}")
    inputs = opened.inputs

    def value(name: str) -> Array:
        return inputs[name] if name in inputs else opened.imported.weight(name)

    return Case(model, mesh, program, value)


def kendall_tau(first: Sequence[float], second: Sequence[float]) -> float:
    """Kendall's tau-b: pairs in the same order, less those in the opposite one, over all that are not tied."""
    concordant = discordant = ties_first = ties_second = 0
    for i in range(len(first)):
        for j in range(i):
            a, b = first[i] - first[j], second[i] - second[j]
            if a == 0 and b == 0:
                continue
            if a == 0:
                ties_first += 1
            elif b == 0:
                ties_second += 1
            elif a * b > 0:
                concordant += 1
            else:
                discordant += 1
    counted = concordant + discordant
    both = ((counted + ties_first) * (counted + ties_second)) ** 0.5
    return (concordant - discordant) / both if both else 0.0


def row_of(case: Case, machine: Machine) -> dict[str, Any]:
    """A program's measured and predicted times."""
    predicted = simulate_file(case.program.directory, machine=machine).seconds
    measured = min(case.seconds)
    return {
        "model": case.model,
        "mesh": case.mesh,
        "devices": case.program.mesh.num_devices,
        "measured_s": measured,
        "median_s": statistics.median(case.seconds),
        "runs": len(case.seconds),
        "predicted_s": predicted,
        "error": predicted / measured - 1,
    }


def validate(machine: Machine | None, only: str, rounds: int, budget: float) -> dict[str, Any]:
    """Make, run and simulate all programs whose model's name holds `only`."""
    begin = time.perf_counter()
    chosen = [(model, mesh) for model, mesh in CONFIGURATIONS if only in model]
    if not chosen:
        raise SystemExit(f"no program is called {only}; there are {', '.join(SIZES)}")

    def say(text: str) -> None:
        print(f"{time.perf_counter() - begin:6.1f} s  {text}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="hyperparallel-") as folder:
        cases: list[Case] = []
        for model, mesh in chosen:
            say(f"compiling {model} for {mesh}")
            cases.append(make_case(model, mesh, Path(folder)))
        calibrated = machine is None
        if machine is None:
            say("calibrating this machine")
            calibration = calibrate("calibrated")
            say("calibrated:\n" + calibration_text(calibration))
            machine = calibration.machine
        for turn in range(rounds):
            say(f"running, round {turn + 1} of {rounds}")
            for case in cases:
                case.run(30, budget)
        rows = [row_of(case, machine) for case in cases]
    measured, predicted = ([row[key] for row in rows] for key in ("measured_s", "predicted_s"))
    return {
        "median_abs_error": statistics.median(abs(row["error"]) for row in rows),
        "kendall_tau": kendall_tau(measured, predicted),
        "rows": rows,
        "machine": machine.name,
        "calibrated": calibrated,
        "seconds": time.perf_counter() - begin,
    }


def main() -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", metavar="FILE", help="a preset or a machine file, instead of a calibration")
    parser.add_argument("--only", default="", metavar="TEXT", help="the models whose name holds this")
    parser.add_argument("--rounds", type=int, default=3, help="times to go through the programs")
    parser.add_argument("--budget", type=float, default=1.5, help="seconds for each program in a round")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    report = validate(load(options.machine) if options.machine else None, options.only, options.rounds, options.budget)
    if options.json:
        print(json.dumps(report))
        return
    for row in report["rows"]:
        print(
            f"{row['model']:14} {row['mesh']:10} measured {1e3 * row['measured_s']:8.2f} ms (median "
            f"{1e3 * row['median_s']:8.2f})   predicted {1e3 * row['predicted_s']:8.2f} ms   {100 * row['error']:+6.1f} %"
        )
    print(f"median |error| {100 * report['median_abs_error']:.1f} %   Kendall's tau {report['kendall_tau']:.2f}")


if __name__ == "__main__":
    main()
