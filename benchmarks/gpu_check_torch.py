# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Seconds of a step of the bundle's Llama in torch: eager, compiled, and with activations offloaded. Needs torch with a GPU, and transformers.

python3 gpu_check_torch.py SIZES.json STEPS
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def seconds_of(step: Callable[[], object], steps: int) -> float:
    """The median of some steps, after two that are not counted."""
    taken: list[float] = []
    for turn in range(steps + 2):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        if turn >= 2:
            taken.append(time.perf_counter() - begin)
    return sorted(taken)[len(taken) // 2]


def main() -> None:
    sizes, steps = json.loads(Path(sys.argv[1]).read_text()), int(sys.argv[2])
    config = LlamaConfig(
        num_hidden_layers=sizes["layers"],
        hidden_size=sizes["width"],
        intermediate_size=sizes["ff"],
        num_attention_heads=sizes["heads"],
        num_key_value_heads=sizes["kv_heads"],
        vocab_size=sizes["vocab"],
        max_position_embeddings=max(sizes["seq"], 2048),
        use_cache=False,
    )
    model = LlamaForCausalLM(config).cuda()
    tokens = torch.randint(sizes["vocab"], (sizes["batch"], sizes["seq"]), device="cuda")
    found: dict[str, float] = {}
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def train(module: torch.nn.Module) -> None:
        optimizer.zero_grad()
        module(tokens, labels=tokens).loss.backward()
        optimizer.step()

    for name, module in {"eager": model, "compile": torch.compile(model)}.items():
        with torch.no_grad():
            found[f"forward_{name}"] = seconds_of(lambda module=module: module(tokens), steps)
        found[f"training_{name}"] = seconds_of(lambda module=module: train(module), steps)
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        found["training_offload"] = seconds_of(lambda: train(model), steps)
    print(json.dumps({"version": torch.__version__, "gpu": torch.cuda.get_device_name(), "seconds": found}))


main()
