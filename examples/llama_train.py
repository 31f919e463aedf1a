# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small Llama that learns by Adam to say the next token: 2 layers, width 64, batch 8, sequence 16."""

import llama
import torch

from hyperparallel.frontend.training_step import Training

DTYPES = {"f32": None, "bf16": torch.bfloat16}


def build(
    *,
    layers: int = 2,
    width: int = 64,
    ff: int = 96,
    heads: int = 8,
    kv_heads: int = 4,
    vocab: int = 256,
    batch: int = 8,
    seq: int = 16,
    lr: float = 1e-3,
    microbatches: int = 1,
    checkpoint: bool = False,
    dtype: str = "f32",
    seed: int = 0,
):
    model, (tokens,) = llama.build(
        layers=layers, width=width, ff=ff, heads=heads, kv_heads=kv_heads, vocab=vocab, batch=batch, seq=seq, seed=seed
    )
    training = Training(
        loss=lambda output, labels: torch.nn.functional.cross_entropy(
            output.logits.flatten(0, 1).float(), labels.flatten()
        ),
        optimizer=torch.optim.Adam(model.parameters(), lr=lr, eps=1e-5),
        targets={"labels": torch.cat([tokens[:, 1:], tokens[:, :1]], 1)},
        microbatches=microbatches,
        checkpoint=checkpoint,
        compute_dtype=DTYPES[dtype],
    )
    return model, (tokens,), training
