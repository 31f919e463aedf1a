# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much communication is hidden behind computation: predicted and measured, for GPT-2 training steps.

    python benchmarks/masked_communication.py --json

Each row is a training step of a small GPT-2, compiled with collectives on streams and without (`overlap`). The ratio is
`masked_communication` of a timeline: of the seconds in which a collective is under way, those in which a kernel runs on
that device, too (hyperparallel/simulator/timeline.py). What is predicted is for the machine given by `--machine`, and
for `cpu-supernode`, which describes machines such as this one. Where virtual devices share few cores a collective is
under way mostly because others have not come to it yet, and kernels of one device run while another waits: the measured
ratio then says how the work was interleaved, not what a network hid.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from hyperparallel.cli.models import example_inputs
from hyperparallel.compile import compile_model
from hyperparallel.execute import run_compiled
from hyperparallel.frontend.model_file import load_model_file
from hyperparallel.frontend.training import import_training
from hyperparallel.report.measured import measured_timeline
from hyperparallel.simulator import simulate_file

ROOT = Path(__file__).resolve().parents[1]
CONFIGURATIONS = [("megatron", "dp=2,tp=2"), ("fsdp", "dp=4"), ("data_parallel", "dp=4"), ("megatron", "tp=4")]


def measure(model: Any, loaded: Any, preset: str, mesh: str, machine: str, overlap: bool, steps: int) -> dict[str, Any]:
    """One program: what is predicted for its step, and its last step as it ran."""
    inputs = example_inputs(loaded)
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        program = compile_model(model, preset, mesh, directory / "program", overlap=overlap)
        trace = directory / "trace.json"
        run = run_compiled(
            program,
            lambda name: inputs[name] if name in inputs else np.array(model.weight(name)),
            repeat=steps,
            trace=trace,
        )
        measured = measured_timeline(json.loads(trace.read_text()), program=program, statistics=run.statistics)
        here = simulate_file(program.directory)
        there = simulate_file(program.directory, machine=machine)
    return {
        "preset": preset,
        "mesh": mesh,
        "overlap": overlap,
        "measured": measured.masked_communication,
        "measured_s": min(run.wall_seconds),
        "predicted": here.masked_communication,
        "predicted_s": here.seconds,
        "predicted_there": there.masked_communication,
        "predicted_there_s": there.seconds,
        "loss": run.losses[-1],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", default="h200-node", help="a description, or a preset (default: h200-node)")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="JSON on stdout")
    arguments = parser.parse_args()
    loaded = load_model_file(
        ROOT / "examples" / "gpt2_train.py", {"width": arguments.width, "layers": arguments.layers, "vocab": 1024}
    )
    assert loaded.training is not None
    model = import_training(loaded.module, loaded.args, loaded.kwargs, training=loaded.training)
    rows = [
        measure(model, loaded, preset, mesh, arguments.machine, overlap, arguments.steps)
        for preset, mesh in CONFIGURATIONS
        for overlap in (False, True)
    ]
    if arguments.json:
        print(json.dumps({"machine": arguments.machine, "rows": rows}, indent=1))
        return
    for row in rows:
        how = "streams" if row["overlap"] else "in order"
        print(
            f"{row['preset']:14} {row['mesh']:10} {how:9} measured {row['measured']:.3f} ({row['measured_s'] * 1e3:.1f} ms), "
            f"predicted {row['predicted']:.3f} ({row['predicted_s'] * 1e3:.1f} ms), on {arguments.machine} "
            f"{row['predicted_there']:.3f} ({row['predicted_there_s'] * 1e6:.0f} us)"
        )


if __name__ == "__main__":
    main()
