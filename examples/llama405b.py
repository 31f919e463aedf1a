# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Llama 3.1 405B at its real shapes: 126 layers, width 16384, batch 128, sequence 4096.

It is built on the meta device: nothing is allocated, and there are no weights.
"""

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def build(
    *,
    layers: int = 126,
    width: int = 16384,
    ff: int = 53248,
    heads: int = 128,
    kv_heads: int = 8,
    vocab: int = 128256,
    batch: int = 128,
    seq: int = 4096,
):
    config = LlamaConfig(
        num_hidden_layers=layers,
        hidden_size=width,
        intermediate_size=ff,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        vocab_size=vocab,
        max_position_embeddings=131072,
        rope_parameters={"rope_type": "default", "rope_theta": 500000.0},
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
        attn_implementation="eager",
    )
    with torch.device("meta"):
        model = LlamaForCausalLM(config).eval()
        tokens = torch.empty((batch, seq), dtype=torch.long)
    return model, (tokens,)
