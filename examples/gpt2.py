# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GPT-2 small at its real shapes, with random weights: 12 layers, width 768, vocabulary 50257, batch 4, sequence 64."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from hyperparallel.frontend.weights import randomize


def build(
    *,
    layers: int = 12,
    width: int = 768,
    heads: int = 12,
    vocab: int = 50257,
    positions: int = 1024,
    batch: int = 4,
    seq: int = 64,
    seed: int = 0,
):
    torch.manual_seed(seed)
    config = GPT2Config(
        n_layer=layers,
        n_embd=width,
        n_head=heads,
        vocab_size=vocab,
        n_positions=positions,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
        attn_implementation="eager",
    )
    model = randomize(GPT2LMHeadModel(config).eval(), seed=seed)
    return model, (torch.randint(vocab, (batch, seq)),)
