# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models in half precision, on fake GPUs and NPUs: sums are in f32, and the rest is as PyTorch has it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from bf16_training import assert_near_exact, sgd_in_bf16
from gpu_models import ROOT, Case, reports, sizes_of

from hyperparallel.cli.models import example_inputs
from hyperparallel.compiled import OFFLOAD_FILE
from hyperparallel.frontend.model_file import load_model_file
from hyperparallel.frontend.torch import import_model
from hyperparallel.frontend.training import import_training
from hyperparallel.plan import Plan
from hyperparallel.runtime import Tier

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = pytest.mark.usefixtures("one_worker")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_half_precision(name: str, dtype: str, device: dict[str, str], tmp_path: Path) -> None:
    """What is compared with is PyTorch's model in f32, of the same rounded weights."""
    loaded = load_model_file(ROOT / "examples" / f"{name}.py", sizes_of(name))
    module = loaded.module.to(getattr(torch, dtype))
    imported = import_model(module, loaded.args, loaded.kwargs, name=name)
    one = Case(imported, dict(example_inputs(loaded)))
    program = one.compile(Plan(preset="megatron"), "tp=1", tmp_path / "device", **device)
    assert [report["coverage"]["host_fallbacks"] for report in reports(program)] == [0]
    (got,) = one.run(program).results.values()
    if dtype == "bfloat16":
        got = (got.astype(np.uint32) << 16).view(np.float32)
    with torch.no_grad():
        wanted = module.float()(*loaded.args, **loaded.kwargs)
    wanted = getattr(wanted, "logits", wanted).numpy()
    error = np.abs(got.astype(np.float64) - wanted).max() / np.abs(wanted).max()
    assert error <= {"bfloat16": 2e-2, "float16": 3e-3}[dtype]
    assert error > 1e-6  # it was in half precision


@pytest.mark.parametrize(("name", "mesh"), [("gpt2", "tp=1"), ("llama", "tp=1"), ("llama", "dp=2,tp=2")])
def test_bf16_training(name: str, mesh: str, device: dict[str, str], tmp_path: Path) -> None:
    """Products, kernels and operators in bf16 with sums in f32; parameters and their updates in f32."""
    sizes = {**sizes_of(name), "kv_heads": 2} if name == "llama" else sizes_of(name)
    loaded = load_model_file(ROOT / "examples" / f"{name}_train.py", {**sizes, "dtype": "bf16"})
    training = sgd_in_bf16(loaded)
    imported = import_training(loaded.module, loaded.args, loaded.kwargs, training=training, name=name)
    one = Case(imported, dict(example_inputs(loaded)))
    program = one.compile(Plan(preset="megatron"), mesh, tmp_path / "device", **device)
    assert [report["coverage"]["host_fallbacks"] for report in reports(program)] == [0]
    assert_near_exact(one.run(program, repeat=2), imported, loaded, training, 2)


@pytest.mark.skipif(
    not os.environ.get("HP_ALL_CELLS"), reason="planned twice, half a minute: HP_ALL_CELLS=1 asks for it"
)
@pytest.mark.usefixtures("fake_npu")
def test_wide_operands_are_in_the_plan(tmp_path: Path) -> None:
    """On NPUs operands of products in half precision with results in f32 are copies that the program makes: the limit holds."""
    loaded = load_model_file(ROOT / "examples" / "gpt2_train.py", {**sizes_of("gpt2"), "dtype": "bf16"})
    training = sgd_in_bf16(loaded)
    imported = import_training(loaded.module, loaded.args, loaded.kwargs, training=training, name="gpt2")
    one = Case(imported, dict(example_inputs(loaded)))
    target: dict[str, str] = {"target": "ascend", "architectures": "Ascend910B1"}
    whole = one.compile(
        Plan(preset="megatron"), "tp=1", tmp_path / "whole", device_memory=1 << 40, recompute=False, **target
    )
    limit = json.loads((whole.directory / OFFLOAD_FILE).read_text())["unplanned_peak_bytes"] * 6 // 10
    program = one.compile(
        Plan(preset="megatron"), "tp=1", tmp_path / "half", device_memory=limit, recompute=False, **target
    )
    run = one.run(program, repeat=2)
    (device,) = run.statistics.devices
    assert device.prefetches > 0
    assert device.peak_bytes[Tier.DEVICE] == program.peak_bytes <= limit
    assert_near_exact(run, imported, loaded, training, 2)
