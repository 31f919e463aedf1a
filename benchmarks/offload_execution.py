# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models run within parts of the device memory that they want: equal bits, measured peak, measured and modelled time.

    python benchmarks/offload_execution.py --json
    python benchmarks/offload_execution.py --cases training --machine FILE
    python benchmarks/offload_execution.py --cases training --meshes dp=1,tp=1 --parts 0.5 --slow-links 20
    python benchmarks/offload_execution.py --model examples/llama.py --meshes dp=2,tp=2 --parts 0.5
    python benchmarks/offload_execution.py --model examples/gpt2_decode.py --parts 0.3 --rounds 4

Without a model it is GPT-2 small (12 layers of width 768, vocabulary 50257): inference at 60, 40 and 25 %, and a step of
AdamW at 70, 50 and 35 % of what they want on each device, on one device and on four (dp=2, tp=2).

Limits are parts of the peak that the unconstrained program has on each device; the runtime enforces them. A training step
is done as often as there are rounds, each on the state that the last one left. What is compared, bit for bit, are all
results: losses, logits, and all state after the last round. Times are the least of the rounds; the modelled ratio is that
of two simulated steps on the machine (the preset `cpu-supernode`, or a file that `hp machine calibrate` wrote). Where
something is computed again instead of copied, the ratio of copies alone, modelled and measured, stands beside it.

With `--slow-links 20` the plan is made, and the step modelled, for links that have a 20th of their bandwidth, which is
where more is computed again; what is executed are this machine's own copies.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from hyperparallel import machines
from hyperparallel.cli.console import Talk
from hyperparallel.cli.models import Model, open_model
from hyperparallel.compile import compile_model
from hyperparallel.compiled import OFFLOAD_FILE, CompiledProgram
from hyperparallel.execute import RunResult, run_compiled
from hyperparallel.frontend.model_file import parse_overrides
from hyperparallel.runtime import Tier
from hyperparallel.simulator import simulate_file

ROOT = Path(__file__).resolve().parents[1]


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """A model file with arguments, and the parts of its memory to run it in."""

    model: Path
    overrides: Mapping[str, Any]
    parts: Sequence[float]


CASES: Mapping[str, Case] = {
    "inference": Case(ROOT / "examples" / "gpt2.py", {}, (0.6, 0.4, 0.25)),
    "training": Case(
        ROOT / "examples" / "gpt2_train.py",
        {"layers": 12, "width": 768, "heads": 12, "vocab": 50257, "positions": 1024, "batch": 4, "seq": 32},
        (0.7, 0.5, 0.35),
    ),
}


def slow_links(machine: str | None, factor: float) -> machines.Machine:
    """The machine (a preset or a file) with that part of the bandwidth of its links."""
    whole = machines.load(machine or "cpu-supernode")
    links = tuple(dataclasses.replace(link, bandwidth=link.bandwidth / factor) for link in whole.links)
    return dataclasses.replace(whole, links=links)


def run(model: Model, program: CompiledProgram, rounds: int) -> RunResult:
    """Several runs of a program on its example inputs."""
    inputs, imported = model.inputs, model.imported
    return run_compiled(program, lambda name: inputs[name] if name in inputs else imported.weight(name), repeat=rounds)


def fault_of(program: CompiledProgram, limit: int, result: RunResult, free: RunResult) -> str | None:
    """What a run within a limit must not be."""
    for device in result.statistics.devices:
        if device.peak_bytes[Tier.DEVICE] != program.peak_bytes:
            return f"a peak of {device.peak_bytes[Tier.DEVICE]} bytes where {program.peak_bytes} were planned"
    if program.peak_bytes is None or program.peak_bytes > limit:
        return f"a peak of {program.peak_bytes} bytes, above {limit}"
    if result.losses != free.losses:
        return f"losses of {result.losses}, not {free.losses}"
    for name, value in free.results.items():
        if result.results[name].tobytes() != value.tobytes():
            return f"other bits in {name}"
    return None


def measure(
    model: Model, mesh: str, parts: Sequence[float], rounds: int, machine: machines.Machine | None
) -> list[dict[str, Any]]:
    """One row for each part of the memory."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="hyperparallel-") as temporary:
        folder = Path(temporary)
        free_program = compile_model(model.imported, "megatron", mesh, folder / "free", machine=machine)
        free = run(model, free_program, rounds)
        peak = free.statistics.peak_bytes[Tier.DEVICE]
        # What is planned is fused first; the step to compare with is that of the same ops.
        roomy = compile_model(
            model.imported, "megatron", mesh, folder / "roomy", machine=machine, device_memory=2 * peak, target="none"
        )
        free_step = simulate_file(roomy.directory, machine=machine).seconds
        for part in parts:
            limit = int(peak * part)
            program = compile_model(
                model.imported, "megatron", mesh, folder / f"{part}", machine=machine, device_memory=limit
            )
            result = run(model, program, rounds)
            plan = json.loads((program.directory / OFFLOAD_FILE).read_text(encoding="utf-8"))["plan"]
            device = result.statistics.devices[0]
            step = simulate_file(program.directory, machine=machine).seconds
            recomputed = sum(move["recomputed"] for move in plan["moves"])
            copies_alone: float | None = None
            copies_alone_measured: float | None = None
            if recomputed:
                other = compile_model(
                    *(model.imported, "megatron", mesh, folder / f"{part}-copies"),
                    machine=machine,
                    device_memory=limit,
                    recompute=False,
                )
                copies_alone = simulate_file(other.directory, machine=machine).seconds / free_step
                other_result = run(model, other, rounds)
                copies_alone_measured = min(other_result.wall_seconds) / min(free.wall_seconds)
            rows.append(
                {
                    "model": model.imported.name,
                    "mesh": mesh,
                    "part": part,
                    "limit_bytes": limit,
                    "planned_peak_bytes": program.peak_bytes,
                    "measured_peak_bytes": result.statistics.peak_bytes[Tier.DEVICE],
                    "fault": fault_of(program, limit, result, free),
                    "compared_bytes": sum(value.nbytes for value in free.results.values()),
                    "losses": list(result.losses),
                    "prefetched_bytes": device.prefetched_bytes,
                    "stored_bytes": device.stored_bytes,
                    "moves": len(plan["moves"]),
                    "unconstrained_s": min(free.wall_seconds),
                    "step_s": min(result.wall_seconds),
                    "measured_ratio": min(result.wall_seconds) / min(free.wall_seconds),
                    "modelled_ratio": step / free_step,
                    "recomputed": recomputed,
                    "modelled_ratio_of_copies_alone": copies_alone,
                    "measured_ratio_of_copies_alone": copies_alone_measured,
                    "copy_wait_s": device.copy_wait_seconds,
                    "compile_s": sum(program.seconds.values()),
                    "unconstrained_compile_s": sum(free_program.seconds.values()),
                }
            )
            print_row(rows[-1], sys.stderr)
    return rows


def print_row(row: Mapping[str, Any], file: TextIO) -> None:
    """One line for people."""
    note = row["fault"] or "equal bits, peak as planned"
    if row["recomputed"]:
        note += (
            f"; {row['recomputed']} computed again; by copies alone {row['measured_ratio_of_copies_alone']:.2f}, "
            f"modelled {row['modelled_ratio_of_copies_alone']:.2f}"
        )
    print(
        f"{row['model']:<12}{row['mesh']:<11}{row['part']:>7.0%}{row['limit_bytes'] / 1e6:>10.1f}"
        f"{row['measured_peak_bytes'] / 1e6:>9.1f}{row['step_s']:>9.3f}{row['measured_ratio']:>7.2f}"
        f"{row['modelled_ratio']:>7.2f}{row['copy_wait_s'] * 1e3:>10.1f}  {note}",
        file=file,
        flush=True,
    )


def main() -> None:
    """Prints a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES), help="without a model: which")
    parser.add_argument("--model", type=Path, help="a model file, or an imported model, instead of the cases")
    parser.add_argument("--model-arg", action="append", default=[], metavar="KEY=VALUE", help="of the model's build()")
    parser.add_argument("--meshes", nargs="+", default=["dp=1,tp=1", "dp=2,tp=2"])
    parser.add_argument("--parts", nargs="+", type=float, help="instead of those of the case; 0.6 0.4 0.25 for a model")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--machine", help="a preset or a file")
    parser.add_argument("--slow-links", type=float, metavar="FACTOR", help="plan for links that are so much slower")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    machine = machines.load(arguments.machine) if arguments.machine else None
    if arguments.slow_links:
        machine = slow_links(arguments.machine, arguments.slow_links)
    overrides = parse_overrides(arguments.model_arg)
    cases = [CASES[name] for name in arguments.cases]
    if arguments.model is not None:
        cases = [Case(arguments.model, {}, CASES["inference"].parts)]
    print(
        f"{'model':<12}{'mesh':<11}{'memory':>7}{'limit MB':>10}{'peak MB':>9}{'step s':>9}{'ratio':>7}{'model':>7}"
        f"{'waits ms':>10}",
        file=sys.stderr,
    )
    rows: list[dict[str, Any]] = []
    for case in cases:
        model = open_model(case.model, {**case.overrides, **overrides}, Talk(quiet=True), use_cache=True)
        for mesh in arguments.meshes:
            rows += measure(model, mesh, arguments.parts or case.parts, arguments.rounds, machine)
    if arguments.json:
        print(json.dumps(rows, indent=1))
    if any(row["fault"] for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
