# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs one of this folder's PyTorch scripts: a process per device over gloo, compared with one process.

    python benchmarks/torch_parallel/harness.py tensor_parallel

Every script trains the same small Llama (that of experts a small Mixtral) for some Adam steps with one parallel
configuration, in the way that PyTorch's own tutorials do it. What a person writes for the configuration stands between
``# parallel:`` and ``# end``; those lines are what ``docs/PlansAndPyTorch.md`` counts. That they run, and to the same
losses as one process, is what makes the count honest.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing as processes
from lines import SCRIPTS, parallel_lines
from transformers import LlamaConfig, LlamaForCausalLM, MixtralConfig, MixtralForCausalLM

STEPS = 3
BATCH, SEQUENCE, VOCABULARY = 8, 16, 64
SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "vocab_size": VOCABULARY,
    "use_cache": False,
    "attn_implementation": "eager",
}


def make_model() -> torch.nn.Module:
    """A Llama of four layers; the same values in every process."""
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(num_hidden_layers=4, **SIZES))


def make_model_of_experts() -> torch.nn.Module:
    """A Mixtral of two layers with four experts; the same values in every process."""
    torch.manual_seed(0)
    config = MixtralConfig(
        num_hidden_layers=2,
        num_local_experts=4,
        num_experts_per_tok=2,
        output_router_logits=False,
        experts_implementation="eager",
        **SIZES,
    )
    return MixtralForCausalLM(config)


def make_batch() -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens and the tokens that follow them, both [BATCH, SEQUENCE]."""
    tokens = torch.randint(VOCABULARY, (BATCH, SEQUENCE + 1), generator=torch.Generator().manual_seed(1))
    return tokens[:, :-1], tokens[:, 1:]


def loss_of(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Mean cross entropy over all tokens."""
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())


def train_alone(script: str) -> list[float]:
    """Losses of one process with the model of a script, for comparison."""
    module: Any = importlib.import_module(script)
    model, (tokens, target) = getattr(module, "make_model", make_model)(), make_batch()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, eps=1e-5 if hasattr(module, "make_model") else 1e-8)
    losses: list[float] = []
    for _ in range(STEPS):
        loss = loss_of(model(tokens).logits, target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def _work(rank: int, script: str, world: int, store: str, out: str) -> None:
    os.environ.update(
        {"RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_RANK": str(rank), "GLOO_SOCKET_IFNAME": "lo"}
    )
    torch.set_num_threads(1)
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", store
    module: Any = importlib.import_module(script)
    losses: list[float] | None = module.train(rank, world)
    if losses is not None:
        Path(out).write_text(json.dumps(losses), encoding="utf-8")
    torch.distributed.destroy_process_group()


def run(script: str, world: int = 4) -> tuple[list[float], list[float]]:
    """Losses of the script on ``world`` processes, and of one process."""
    import socket

    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "losses.json")
        processes.spawn(_work, (script, world, port, out), nprocs=world)
        return json.loads(Path(out).read_text(encoding="utf-8")), train_alone(script)


def main() -> None:
    """Run the scripts that are named, or all."""
    sys.path.insert(0, str(Path(__file__).parent))
    for script in sys.argv[1:] or SCRIPTS:
        losses, alone = run(script)
        error = max(abs(a - b) / abs(b) for a, b in zip(losses, alone, strict=True))
        print(json.dumps({"script": script, "lines": parallel_lines(script), "losses": losses, "error": error}))


if __name__ == "__main__":
    main()
