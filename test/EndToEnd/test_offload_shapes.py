# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GPT-2 at a quarter of its width, within parts of the memory that it wants: forward passes, and AdamW over microbatches.

A short form of `benchmarks/offload_execution.py`, which does the same at full size: equal bits, and the planned peak.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from hyperparallel import machines
from hyperparallel.cli.models import example_inputs
from hyperparallel.compile import compile_model
from hyperparallel.compiled import CompiledProgram
from hyperparallel.execute import RunResult, run_compiled
from hyperparallel.frontend.model_file import load_model_file
from hyperparallel.frontend.torch import import_model
from hyperparallel.frontend.training import import_training
from hyperparallel.runtime import Tier

pytestmark = pytest.mark.usefixtures("one_worker")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SHAPE = {"width": 192, "heads": 12, "vocab": 503, "positions": 128, "batch": 4, "seq": 32}
#: What to import, the steps that are run, and the parts of the memory.
FORWARD = ("gpt2", {**SHAPE, "layers": 3}, 1, (0.6, 0.25))
TRAINING = ("gpt2_train", {**SHAPE, "layers": 1, "seq": 16, "microbatches": 2}, 2, (0.7, 0.35))
DEVICES = {"dp=1,tp=1": 1, "dp=2,tp=2": 4}


def slow_cores() -> machines.Machine:
    """The preset with cores so slow that links keep up: most of what is planned hides, and plans are found at once."""
    machine = machines.load("cpu-supernode")
    (cpu,) = machine.groups
    slow = dataclasses.replace(cpu, vector=cpu.vector / 50, rates={name: rate / 50 for name, rate in cpu.rates.items()})
    return dataclasses.replace(machine, groups=(slow,))


@pytest.mark.parametrize("mesh", DEVICES)
@pytest.mark.parametrize(("name", "shape", "steps", "parts"), [FORWARD, TRAINING], ids=["forward", "training"])
def test_within_a_part_of_the_memory(
    name: str, shape: dict[str, int], steps: int, parts: tuple[float, ...], mesh: str, tmp_path: Path
) -> None:
    loaded = load_model_file(EXAMPLES / f"{name}.py", shape)
    if loaded.training is None:
        imported = import_model(loaded.module, loaded.args, loaded.kwargs, name=name)
    else:
        imported = import_training(loaded.module, loaded.args, loaded.kwargs, training=loaded.training, name=name)
    inputs = dict(example_inputs(loaded))

    def run(program: CompiledProgram, limit: int | None = None) -> RunResult:
        return run_compiled(
            program,
            lambda name: inputs[name] if name in inputs else imported.weight(name),
            repeat=steps,
            device_memory=limit,
        )

    machine = slow_cores()
    free = run(compile_model(imported, "megatron", mesh, tmp_path / "free", machine=machine))
    assert len(set(free.losses)) == len(free.losses) == (steps if loaded.training else 0)
    peak = free.statistics.peak_bytes[Tier.DEVICE]
    for part in parts:
        limit = int(part * peak)
        program = compile_model(imported, "megatron", mesh, tmp_path / f"{part}", machine=machine, device_memory=limit)
        result = run(program, limit)
        assert program.peak_bytes is not None
        assert program.peak_bytes <= limit
        assert len(result.statistics.devices) == DEVICES[mesh]
        for device in result.statistics.devices:
            assert device.peak_bytes[Tier.DEVICE] == program.peak_bytes
            assert device.prefetches > 0
            # What a step updates goes back.
            assert (device.stores > 0) or loaded.training is None
        assert result.losses == free.losses
        assert set(result.results) == set(free.results)
        for result_name, wanted in free.results.items():
            assert np.unique(wanted).size > 1 or wanted.size == 1, result_name
            assert result.results[result_name].tobytes() == wanted.tobytes(), result_name
        assert result.statistics.leaked_bytes == 0
