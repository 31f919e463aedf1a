# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GPT-2 at a quarter of its width, within parts of the memory that it wants: forward passes, AdamW over microbatches, and
what is computed again on a slow link.

A short form of `benchmarks/offload_execution.py`, which does the same at full size: equal bits, and the planned peak.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from hyperparallel import machines
from hyperparallel.cli.models import example_inputs
from hyperparallel.compile import compile_model
from hyperparallel.compiled import OFFLOAD_FILE, CompiledProgram
from hyperparallel.execute import RunResult, run_compiled
from hyperparallel.frontend.model_file import load_model_file
from hyperparallel.frontend.torch import import_model
from hyperparallel.frontend.training import import_training
from hyperparallel.frontend.training_step import Training
from hyperparallel.runtime import Tier
from hyperparallel.simulator import simulate_file

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


class Wide(torch.nn.Module):
    """Layers whose activations are much larger than their weights, and cost less to compute again than to copy."""

    def __init__(self) -> None:
        super().__init__()
        self.up = torch.nn.ModuleList(torch.nn.Linear(32, 128) for _ in range(4))
        self.down = torch.nn.ModuleList(torch.nn.Linear(128, 32) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for up, down in zip(self.up, self.down, strict=True):
            x = x + down(torch.sin(up(x)))
        return x


def test_recomputing_beats_a_slow_link(tmp_path: Path) -> None:
    """A training step at 0.7 of its memory, on links with a 60th of their bandwidth: some values are computed again,
    which is a fifth faster than copying all that leaves, at least, and changes no bit."""
    torch.manual_seed(0)
    model, x = Wide(), torch.randn(1024, 32)
    training = Training(
        loss=lambda output, goal: torch.nn.functional.mse_loss(output, goal),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        targets={"goal": torch.randn(1024, 32)},
    )
    imported = import_training(model, (x,), {}, training=training, name="wide")
    inputs = {"x": x.numpy(), "goal": training.targets["goal"].numpy()}
    machine = machines.load("cpu-supernode")
    links = tuple(dataclasses.replace(link, bandwidth=link.bandwidth / 60) for link in machine.links)
    machine = dataclasses.replace(machine, links=links)

    def run(program: CompiledProgram) -> RunResult:
        return run_compiled(program, lambda name: inputs[name] if name in inputs else imported.weight(name), repeat=2)

    free = run(compile_model(imported, "fsdp", "dp=1", tmp_path / "free", machine=machine))
    limit = int(0.7 * free.statistics.peak_bytes[Tier.DEVICE])
    programs = [
        compile_model(
            *(imported, "fsdp", "dp=1", tmp_path / f"{again}"),
            machine=machine,
            device_memory=limit,
            recompute=again,
            target="cpu" if again else "none",
        )
        for again in (True, False)
    ]
    recomputed = [
        sum(move["recomputed"] for move in json.loads((program.directory / OFFLOAD_FILE).read_text())["plan"]["moves"])
        for program in programs
    ]
    assert recomputed[0] > 0
    assert recomputed[1] == 0
    again, copies = (simulate_file(program.directory, machine=machine).seconds for program in programs)
    assert again < 0.8 * copies
    result = run(programs[0])
    assert result.statistics.peak_bytes[Tier.DEVICE] == programs[0].peak_bytes
    assert programs[0].peak_bytes is not None
    assert programs[0].peak_bytes <= limit
    assert result.losses == free.losses
    for name, wanted in free.results.items():
        assert result.results[name].tobytes() == wanted.tobytes(), name
