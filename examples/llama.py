# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A Llama of 8 layers at width 512: RMS norm, rotary positions, grouped-query attention, SwiGLU; random weights."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from hyperparallel.frontend.weights import randomize


def build(
    *,
    layers: int = 8,
    width: int = 512,
    ff: int = 1376,
    heads: int = 8,
    kv_heads: int = 4,
    vocab: int = 4096,
    batch: int = 4,
    seq: int = 64,
    seed: int = 0,
):
    torch.manual_seed(seed)
    config = LlamaConfig(
        num_hidden_layers=layers,
        hidden_size=width,
        intermediate_size=ff,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        vocab_size=vocab,
        max_position_embeddings=max(seq, 2048),
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
        attn_implementation="eager",
    )
    model = randomize(LlamaForCausalLM(config).eval(), seed=seed)
    return model, (torch.randint(vocab, (batch, seq)),)
