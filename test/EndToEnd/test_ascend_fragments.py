# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every fragment of every example is taken by Ascend's compiler, down to HIVM, and its verifier takes both texts.

The five models and their training are compiled, checked the same way, and run in test_ascend_check.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from ascend_fakes import assert_verified
from command import command_of
from gpu_models import ALL, ROOT

pytest.importorskip("torch")
pytest.importorskip("transformers")

pytestmark = pytest.mark.usefixtures("fake_npu", "one_worker")

_TEXT = {"layers": 1, "width": 16, "heads": 2, "vocab": 37, "length": 8, "prompt": 4}
OTHERS: dict[str, dict[str, int]] = {
    "captioner": {"encoder_layers": 2, "decoder_layers": 2, "width": 16, "heads": 2, "vocab": 37, "batch": 2, "seq": 6},
    "convnet": {"layers": 1, "channels": 4, "image": 16, "batch": 4},
    "dlrm": {"tables": 2, "batch": 4},
    "dlrm_train": {"tables": 2, "batch": 4},
    "gpt2_decode": _TEXT,
    "llama405b": {"layers": 1, "width": 16, "ff": 24, "heads": 2, "kv_heads": 1, "vocab": 37, "batch": 2, "seq": 6},
    "llama_decode": {**_TEXT, "ff": 24, "kv_heads": 1},
    "mlp": {"layers": 1},
    "mlp_train": {"layers": 1},
    "two_layers": {},
}
"""Examples that are no model of test_ascend_check.py, and tiny sizes."""
LEFT_OUT = {
    "convnet_train": "backward of its max-pooling gathers in a reduction, which is refused: see below",
    "llama405b_train": "the training of examples/llama.py, whose fragments are compiled, at another size",
    "rl": "four programs of one composition, of transformers as in examples/gpt2.py",
    "rl_torch": "PyTorch's own training for rl.py, no model file",
}


def test_no_example_is_forgotten() -> None:
    examples = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert examples == {*ALL, *OTHERS, *LEFT_OUT}


@pytest.mark.parametrize("name", OTHERS)
def test_fragments_are_verified(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sizes = [word for key, value in OTHERS[name].items() for word in ("--model-arg", f"{key}={value}")]
    words = [ROOT / "examples" / f"{name}.py", *sizes, "--preset", "megatron", "--mesh", "tp=1", "--json", "-q"]
    made = command_of(capfd)("compile", *words, "--target", "ascend", "-o", tmp_path / "program").told()
    assert_verified(tmp_path / "program", [kernel["name"] for kernel in made["kernels"]["kernels"]])


def test_what_no_operator_gathers_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sizes = [word for one in ("layers=1", "channels=4", "image=16", "batch=4") for word in ("--model-arg", one)]
    words = [ROOT / "examples" / "convnet_train.py", *sizes, "--preset", "megatron", "--mesh", "tp=1", "-q"]
    refused = command_of(capfd)("compile", *words, "--target", "ascend", "-o", tmp_path / "program")
    assert refused.status == 1
    assert "expected a gather of static shape in an op without reductions for a vendor's operator" in refused.err
