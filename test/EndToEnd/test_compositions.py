# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of several models over device groups, from the command line: equal to plain PyTorch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hyperparallel.cli.main import main

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def _run(name: str, sizes: dict[str, int], capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    """What ``hp run --check --json`` says of an example with its own plan."""
    words = [word for key, value in sizes.items() for word in ("--model-arg", f"{key}={value}")]
    files = [str(EXAMPLES / f"{name}.py"), "--plan", str(EXAMPLES / f"{name}.yaml")]
    with pytest.raises(SystemExit) as ended:
        main(["run", *files, *words, *options, "--check", "--json", "-q"])
    out = capsys.readouterr().out
    assert ended.value.code == 0, out
    return json.loads(out)


def test_reinforcement_learning_on_four_groups_equals_plain_pytorch(capsys: pytest.CaptureFixture[str]) -> None:
    """Three iterations: every rollout is sampled with the weights that the learner made in the iteration before."""
    shown = _run("rl", {"layers": 1, "generate": 2}, capsys, "--steps", "3")
    assert shown["devices"] == 4
    assert len(set(shown["losses"])) == 3
    compared = shown["max_rel_error_by_result"]
    assert max(compared.values()) <= 1e-4
    assert "learner.policy.transformer.h.0.attn.c_attn.weight" in compared
    again = _run("rl", {"layers": 1, "generate": 2}, capsys, "--steps", "1")
    assert again["cached"] == {"import": True, "compile": True}, "its parts are imported once"
    assert again["losses"] == shown["losses"][:1]


def test_an_encoder_beside_a_decoder(capsys: pytest.CaptureFixture[str]) -> None:
    """ViT on one device, GPT-2 on three, as the example's plan says."""
    sizes = {"encoder_layers": 2, "decoder_layers": 2, "width": 48, "vocab": 101, "image": 32, "batch": 2, "seq": 6}
    shown = _run("captioner", sizes, capsys, "--devices", "4")
    assert shown["max_rel_error"] <= 1e-4
    # What the encoder sees goes to the decoder's devices, and nothing comes back.
    assert shown["moved_bytes"]["recv"] == 3 * 2 * (1 + (32 // 16) ** 2) * 48 * 4
