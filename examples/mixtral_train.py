# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The small Mixtral of mixtral.py, which learns by AdamW to say the next token."""

import mixtral
import torch

from hyperparallel.frontend.training_step import Training


def build(
    *,
    lr: float = 1e-3,
    layers: int = 2,
    width: int = 64,
    ff: int = 96,
    heads: int = 8,
    kv_heads: int = 4,
    vocab: int = 256,
    batch: int = 4,
    seq: int = 16,
    experts: str = "dense",
    microbatches: int = 1,
    seed: int = 0,
):
    model, (tokens,) = mixtral.build(
        layers=layers,
        width=width,
        ff=ff,
        heads=heads,
        kv_heads=kv_heads,
        vocab=vocab,
        batch=batch,
        seq=seq,
        experts=experts,
        seed=seed,
    )
    training = Training(
        loss=lambda output, labels: torch.nn.functional.cross_entropy(output.logits.flatten(0, 1), labels.flatten()),
        optimizer=torch.optim.AdamW(model.parameters(), lr=lr, eps=1e-5),
        targets={"labels": torch.cat([tokens[:, 1:], tokens[:, :1]], 1)},
        microbatches=microbatches,
    )
    return model, (tokens,), training
