# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small GPT-2 that learns by AdamW to say the next token: 2 layers, width 64, batch 8, sequence 16."""

import gpt2
import torch

from hyperparallel.frontend.training_step import Training

DTYPES = {"f32": None, "bf16": torch.bfloat16}


def build(
    *,
    layers: int = 2,
    width: int = 64,
    heads: int = 4,
    vocab: int = 256,
    positions: int = 64,
    batch: int = 8,
    seq: int = 16,
    lr: float = 1e-3,
    eps: float = 1e-5,
    weight_decay: float = 0.01,
    clip_norm: float | None = None,
    microbatches: int = 1,
    checkpoint: bool = False,
    dtype: str = "f32",
    dropout: float = 0.0,
    seed: int = 0,
):
    model, (tokens,) = gpt2.build(
        layers=layers, width=width, heads=heads, vocab=vocab, positions=positions, batch=batch, seq=seq, seed=seed
    )
    if dropout > 0:
        model.train()
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = dropout
    training = Training(
        loss=lambda output, labels: torch.nn.functional.cross_entropy(
            output.logits.flatten(0, 1).float(), labels.flatten()
        ),
        optimizer=torch.optim.AdamW(model.parameters(), lr=lr, eps=eps, weight_decay=weight_decay),
        targets={"labels": torch.cat([tokens[:, 1:], tokens[:, :1]], 1)},
        microbatches=microbatches,
        checkpoint=checkpoint,
        compute_dtype=DTYPES[dtype],
        clip_norm=clip_norm,
        seed=seed,
    )
    return model, (tokens,), training
