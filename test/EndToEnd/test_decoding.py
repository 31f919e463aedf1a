# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generation with a key-value cache: PyTorch's tokens and caches, with weights and caches in the pool, on one device and several."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from hyperparallel import machines
from hyperparallel.cli.models import example_inputs, to_array
from hyperparallel.compare import compare
from hyperparallel.compile import compile_model, describe_program
from hyperparallel.compiled import OFFLOAD_FILE, CompiledProgram
from hyperparallel.execute import RunResult, run_compiled
from hyperparallel.frontend.artifact import ImportedModel
from hyperparallel.frontend.decoding import decode
from hyperparallel.frontend.model_file import LoadedModel, load_model_file
from hyperparallel.frontend.torch import import_model
from hyperparallel.plan import Plan, explain
from hyperparallel.plan.streaming import streaming_of
from hyperparallel.runtime import Tier

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SMALL: dict[str, dict[str, int]] = {
    "gpt2_decode": {"layers": 2, "width": 64, "heads": 4, "vocab": 101, "length": 64, "batch": 2, "prompt": 5},
    "llama_decode": {
        **{"layers": 2, "width": 64, "ff": 100, "heads": 4, "kv_heads": 2, "vocab": 101, "length": 64, "batch": 2},
        "prompt": 5,
    },
}
STEPS = 3


@dataclasses.dataclass(frozen=True)
class Case:
    """An imported step, and what PyTorch gives after some."""

    loaded: LoadedModel
    imported: ImportedModel
    inputs: dict[str, Any]
    want: dict[str, Any]

    def run(self, program: CompiledProgram, steps: int) -> RunResult:
        values = self.inputs
        return run_compiled(
            program, lambda name: values[name] if name in values else self.imported.weight(name), repeat=steps
        )


def make_case(name: str, steps: int, **overrides: int) -> Case:
    loaded = load_model_file(EXAMPLES / f"{name}.py", {**SMALL[name], **overrides})
    assert loaded.decoding is not None
    imported = import_model(loaded.module, loaded.args, loaded.kwargs, name=name, decoding=loaded.decoding)
    want = decode(loaded.module, loaded.args, loaded.kwargs, loaded.decoding, steps)
    arrays = {key: to_array(value) for key, value in want.items()}
    return Case(loaded, imported, dict(example_inputs(loaded)), arrays)


@pytest.fixture(scope="module", params=sorted(SMALL))
def case(request: pytest.FixtureRequest) -> Case:
    return make_case(request.param, STEPS)


def test_what_is_imported(case: Case) -> None:
    """Caches are arguments of their own role, written in their place; one function does all layers."""
    roles = {argument.name: str(argument.role) for argument in case.imported.arguments}
    caches = {name for name, role in roles.items() if role == "cache"}
    assert caches == {f"cache.{layer}.{what}" for layer in range(2) for what in ("keys", "values")}
    updates = {result.updates for result in case.imported.results if result.updates is not None}
    assert updates == {*caches, "token", "position"}
    assert len({block.function for block in case.imported.blocks}) == 1


@pytest.mark.parametrize("mesh", ["tp=1", "dp=2,tp=2"])
def test_steps_of_generation(case: Case, mesh: str, tmp_path: Path) -> None:
    """Tokens, logits and caches are PyTorch's; within 60 % of the memory they have the same bits."""
    free = compile_model(case.imported, "megatron", mesh, tmp_path / "free")
    result = case.run(free, STEPS)
    assert compare(result.results, case.want).ok
    assert result.results["position"] == SMALL["gpt2_decode"]["prompt"] + STEPS
    peak = result.statistics.peak_bytes[Tier.DEVICE]
    program = compile_model(case.imported, "megatron", mesh, tmp_path / "program", device_memory=int(0.6 * peak))
    limited = case.run(CompiledProgram.load(program.directory), STEPS)
    for name, value in result.results.items():
        assert value.tobytes() == limited.results[name].tobytes(), name
    for device in limited.statistics.devices:
        assert device.peak_bytes[Tier.DEVICE] == program.peak_bytes
        assert device.prefetches > 0
    assert limited.statistics.leaked_bytes == 0


def test_caches_and_weights_in_the_pool(case: Case, tmp_path: Path) -> None:
    """In a third of the memory: all of them live below, come layer by layer, and caches go back with the new row in them.

    Blocks are done in parts there; a part returns a cache in the cache's own shape, so that it is written in its place.
    """
    plan = Plan(preset="megatron", offload={"place": {"**.weight": "pool", "cache.**": "pool"}})
    free = compile_model(case.imported, "megatron", "tp=1", tmp_path / "free")
    peak = case.run(free, 1).statistics.peak_bytes[Tier.DEVICE]
    program = compile_model(case.imported, plan, "tp=1", tmp_path / "program", device_memory=peak // 3)
    result = case.run(CompiledProgram.load(program.directory), STEPS)
    assert compare(result.results, case.want).ok
    placed = [argument for argument in program.arguments if argument.tier == "pool"]
    caches = [argument for argument in placed if argument.role == "cache"]
    assert len(caches) == 4
    device = result.statistics.devices[0]
    assert device.peak_bytes[Tier.DEVICE] == program.peak_bytes
    # Each goes back once a step, all of it.
    assert device.stores == len(caches)
    assert device.stored_bytes == sum(int(np.prod(cache.shape)) * 4 for cache in caches)
    report = json.loads((program.directory / OFFLOAD_FILE).read_text(encoding="utf-8"))
    assert {cache.name for cache in caches} <= {move["tensor"] for move in report["plan"]["moves"]}


def test_what_streaming_costs(case: Case) -> None:
    """For each weight and each cache: tokens that hide a fetch, and what one token leaves exposed, of the store too."""
    machine = machines.load("a3-node")
    group = machine.groups[0]
    fetch, store = machine.link("pool", group.memory), machine.link(group.memory, "pool")
    plan = Plan(preset="megatron", offload={"place": {"**.weight": "pool", "cache.**": "pool"}})
    resolved = plan.resolve(describe_program(case.imported), "tp=2")
    found = {one.name: one for one in streaming_of(resolved, machine)}
    rate = (group.rates.get("f32") or max(group.rates.values())) * group.efficiency
    caches = [argument for argument in case.imported.arguments if argument.role == "cache"]
    assert {cache.name for cache in caches} < set(found)
    for cache in caches:
        one = found[cache.name]
        assert one.local_bytes == int(np.prod(cache.shape)) * 4 // 2  # heads over two devices
        assert one.hidden_tokens == -(-rate * 4 // (2 * fetch.bandwidth))
        copies = fetch.latency + store.latency + one.local_bytes * (1 / fetch.bandwidth + 1 / store.bandwidth)
        assert one.exposed_seconds_per_fetch == pytest.approx(copies - 2 * one.local_bytes / 4 / rate)
    weight = next(one for name, one in found.items() if name.endswith("c_fc.weight") or name.endswith("up_proj.weight"))
    assert weight.store_seconds == 0
    text = explain(resolved, machine=machine)
    assert "cache.0.keys and 3 more" in text
    assert "and stored again in" in text


def test_prefill_and_then_steps(tmp_path: Path) -> None:
    """A program that takes a prompt at once leaves the caches that one for single tokens goes on from."""
    name = "llama_decode"
    prefill = make_case(name, 1, prompt=3, seq=6)
    first = prefill.run(compile_model(prefill.imported, "megatron", "tp=2", tmp_path / "prefill"), 1)
    assert compare(first.results, prefill.want).ok
    step = make_case(name, STEPS, prompt=9)
    values = {**step.inputs, **{key: first.results[key] for key in first.results if key.startswith("cache.")}}
    values |= {"token": first.results["token"], "position": first.results["position"]}
    program = compile_model(step.imported, "megatron", "tp=2", tmp_path / "step")
    result = run_compiled(
        program, lambda key: values[key] if key in values else step.imported.weight(key), repeat=STEPS
    )
    module, (tokens, position) = prefill.loaded.module, prefill.loaded.args
    assert prefill.loaded.decoding is not None
    made = decode(module, (tokens, position), {}, dataclasses.replace(prefill.loaded.decoding, carried=()), 1)
    for key, value in made.items():
        if key.startswith("cache."):
            step.loaded.module.get_buffer(key).copy_(value)
    assert step.loaded.decoding is not None
    wanted = decode(step.loaded.module, (made["token"], made["position"]), {}, step.loaded.decoding, STEPS)
    assert compare(result.results, {key: to_array(value) for key, value in wanted.items()}).ok
