# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A BERT encoder with a padding mask and token types: 6 layers at width 384, random weights."""

import torch
from transformers import BertConfig, BertModel

from hyperparallel.frontend.weights import randomize


def build(
    *,
    layers: int = 6,
    width: int = 384,
    ff: int = 1536,
    heads: int = 12,
    vocab: int = 8192,
    positions: int = 512,
    batch: int = 4,
    seq: int = 64,
    seed: int = 0,
):
    torch.manual_seed(seed)
    config = BertConfig(
        num_hidden_layers=layers,
        hidden_size=width,
        intermediate_size=ff,
        num_attention_heads=heads,
        vocab_size=vocab,
        max_position_embeddings=max(seq, positions),
        attn_implementation="eager",
    )
    model = randomize(BertModel(config).eval(), seed=seed)
    tokens = torch.randint(vocab, (batch, seq))
    lengths = torch.randint(seq // 2, seq + 1, (batch, 1))
    mask = (torch.arange(seq) < lengths).long()
    types = (torch.arange(seq) >= seq // 3).long().expand(batch, seq).contiguous()
    return model, (), {"input_ids": tokens, "attention_mask": mask, "token_type_ids": types}
