# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How compilation scales: wall time and peak memory of each phase, up to the program of one device.

    python benchmarks/compile_scale.py --model llama-405b --devices 1024 --json
    python benchmarks/compile_scale.py --model llama-405b --devices 1024 --train --json
    python benchmarks/compile_scale.py --model llama-405b --devices 1024 --train --stages 8 --json
    python benchmarks/compile_scale.py --model llama-405b --devices 1024 --flat --layers 8,32,126 --json

With ``--flat`` every block is inlined, so that nothing is shared between layers, and time per op shows whether a
pass is linear. With ``--stages`` a training step of twice as many microbatches is split over so many groups of devices.
Nothing is allocated: the model is imported on tensors without storage.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MODELS = {"llama-405b": ("llama405b.py", "llama405b_train.py", "llama405b.yaml", 8)}
"""Model file, the same for training, plan, and devices along the tensor axis."""


@dataclasses.dataclass(slots=True)
class Meter:
    """Wall and processor seconds, and peak resident bytes, of each phase of this process."""

    phases: dict[str, dict[str, float]] = dataclasses.field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure a block."""
        # 5 resets the high-water mark of the resident set (proc(5), clear_refs).
        Path("/proc/self/clear_refs").write_text("5")
        begin, busy = time.perf_counter(), time.process_time()
        yield
        self.phases[name] = {
            "seconds": time.perf_counter() - begin,
            "cpu_seconds": time.process_time() - busy,
            "peak_gib": _peak_bytes() / 2**30,
        }


def _peak_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def measure(
    model: str, devices: int, layers: int | None, flat: bool, train: bool, stages: int | None
) -> dict[str, Any]:
    """Import, plan, and partition a model; returns what each phase took."""
    if stages is not None:
        return measure_stages(model, devices, layers, stages)
    from hyperparallel.compile import describe_program
    from hyperparallel.frontend.model_file import load_model_file
    from hyperparallel.frontend.torch import import_model
    from hyperparallel.frontend.training import import_training
    from hyperparallel.pipeline import Phase, PhaseRunner, make_context, parse_program
    from hyperparallel.plan import Mesh, Plan

    inference_file, training_file, plan_file, tensor = MODELS[model]
    file = training_file if train else inference_file
    if devices % tensor:
        raise SystemExit(f"compile_scale: expected a multiple of {tensor} devices but got {devices}")
    meter = Meter()
    begin = time.perf_counter()
    with meter.phase("build"):
        loaded = load_model_file(ROOT / "examples" / file, {} if layers is None else {"layers": layers})
    with meter.phase("import"):
        if loaded.training is not None:
            imported = import_training(loaded.module, loaded.args, loaded.kwargs, training=loaded.training, name=model)
        else:
            imported = import_model(loaded.module, loaded.args, loaded.kwargs, name=model)
    with meter.phase("parse"):
        context = make_context()
        module = parse_program(imported.mlir, model, context)
    with meter.phase("plan"):
        mesh = Mesh((("dp", devices // tensor), ("tp", tensor)))
        plan = Plan.load(ROOT / "examples" / plan_file).resolve(describe_program(imported, module), mesh, devices)
    if flat:
        with meter.phase("inline"):
            _inline(module, context)
    ops = _count_ops(module)
    with tempfile.TemporaryDirectory(prefix="hyperparallel-") as temporary:
        written = Path(temporary) / "plan.json"
        written.write_text(plan.to_json_text())
        runner = PhaseRunner(module, imported.mlir, written)
        for phase in (Phase.IMPORTED, Phase.ANNOTATED, Phase.PROPAGATED, Phase.RESHARDED, Phase.PARTITIONED):
            with meter.phase(str(phase)):
                runner.run(phase)
    workers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 2**30
    compile_phases = ("annotated", "propagated", "resharded", "partitioned")
    return {
        "model": model,
        "layers": len({block.path for block in imported.blocks}),
        "train": train,
        "mesh": dict(mesh.axes),
        "flat": flat,
        "ops": ops,
        "phases": meter.phases,
        "import_worker_peak_gib": workers,
        "peak_gib": max([entry["peak_gib"] for entry in meter.phases.values()]),
        "total_seconds": time.perf_counter() - begin,
        "cpu_microseconds_per_op": {name: meter.phases[name]["cpu_seconds"] / ops * 1e6 for name in compile_phases},
    }


def measure_stages(model: str, devices: int, layers: int | None, stages: int) -> dict[str, Any]:
    """Import a training step, and split it over groups of devices up to the programs of one device."""
    from hyperparallel.compile import describe_program
    from hyperparallel.frontend.model_file import load_model_file
    from hyperparallel.frontend.training import import_training
    from hyperparallel.mpmd.compiling import split_model
    from hyperparallel.plan import GroupedPlan, Plan

    _, file, _, tensor = MODELS[model]
    data = devices // (stages * tensor)
    if data * stages * tensor != devices:
        raise SystemExit(f"compile_scale: expected a multiple of {stages * tensor} devices but got {devices}")
    meter, seconds = Meter(), dict[str, float]()
    begin = time.perf_counter()
    microbatches = 2 * stages
    overrides = {"microbatches": microbatches, "batch": microbatches * data}
    with meter.phase("build"):
        sizes = overrides if layers is None else {**overrides, "layers": layers}
        loaded = load_model_file(ROOT / "examples" / file, sizes)
    assert loaded.training is not None
    with meter.phase("import"):
        imported = import_training(loaded.module, loaded.args, loaded.kwargs, training=loaded.training, name=model)
    with meter.phase("plan"):
        mesh = {"pp": stages, "dp": data, "tp": tensor}
        plan = Plan(mesh=mesh, preset="megatron", schedule="1f1b").fit(describe_program(imported), None, devices)
    assert isinstance(plan, GroupedPlan)
    with tempfile.TemporaryDirectory(prefix="hyperparallel-") as temporary, meter.phase("groups"):
        split_model(imported, plan, Path(temporary), seconds=seconds)
    return {
        "model": model,
        "layers": len({block.path for block in imported.blocks}),
        "train": True,
        "mesh": mesh,
        "microbatches": microbatches,
        "phases": meter.phases,
        "groups_seconds": seconds,
        "peak_gib": max([entry["peak_gib"] for entry in meter.phases.values()]),
        "total_seconds": time.perf_counter() - begin,
    }


def _inline(module: Any, context: Any) -> None:
    from mlir.passmanager import PassManager

    with context:
        PassManager.parse("builtin.module(inline{max-iterations=8},symbol-dce)", context).run(module.operation)


def _count_ops(module: Any) -> int:
    """Ops outside of the bodies of linalg ops."""
    count = 0

    def visit(operation: Any) -> None:
        nonlocal count
        count += 1
        if operation.name.startswith("linalg."):
            return
        for region in operation.regions:
            for block in region:
                for inner in block.operations:
                    visit(inner.operation)

    visit(module.operation)
    return count


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", choices=sorted(MODELS), default="llama-405b")
    parser.add_argument("--devices", type=int, default=1024)
    parser.add_argument("--layers", help="numbers of layers, such as 8,126 (default: the model's own)")
    parser.add_argument("--flat", action="store_true", help="inline every block")
    parser.add_argument("--train", action="store_true", help="a training step: forward, backward and update")
    parser.add_argument("--stages", type=int, metavar="N", help="of a training step: so many groups of devices")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    arguments = parser.parse_args()
    layers = [int(text) for text in arguments.layers.split(",")] if arguments.layers else [None]
    for count in layers:
        result = measure(arguments.model, arguments.devices, count, arguments.flat, arguments.train, arguments.stages)
        if arguments.json:
            print(json.dumps(result), flush=True)
            continue
        kind = f"{result['ops']} ops" if "ops" in result else f"{result['microbatches']} microbatches"
        print(f"{result['model']}, {result['layers']} layers, {kind}, mesh {result['mesh']}")
        for name, entry in result["phases"].items():
            wall, busy = entry["seconds"], entry["cpu_seconds"]
            print(f"  {name:<12} {wall:8.2f} s  {busy:8.2f} s cpu  {entry['peak_gib']:6.2f} GiB")
        total, peak = result["total_seconds"], result["peak_gib"]
        print(f"  total        {total:8.2f} s  {peak:6.2f} GiB", flush=True)


if __name__ == "__main__":
    main()
