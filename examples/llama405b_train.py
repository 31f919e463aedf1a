# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Llama 3.1 405B at its real shapes, trained by AdamW in bf16 with f32 master weights; every block is recomputed.

It is built on the meta device: nothing is allocated, and there are no weights.
"""

import llama405b
import torch

from hyperparallel.frontend.training_step import Training


def build(*, layers: int = 126, batch: int = 128, seq: int = 4096, microbatches: int = 1):
    model, (tokens,) = llama405b.build(layers=layers, batch=batch, seq=seq)
    training = Training(
        loss=lambda output, labels: torch.nn.functional.cross_entropy(
            output.logits.flatten(0, 1).float(), labels.flatten()
        ),
        optimizer=torch.optim.AdamW(model.parameters(), lr=8e-5, betas=(0.9, 0.95), weight_decay=0.1),
        targets={"labels": torch.empty_like(tokens)},
        microbatches=microbatches,
        checkpoint=True,
        compute_dtype=torch.bfloat16,
        clip_norm=1.0,
        trust_repeats=True,
    )
    return model, (tokens,), training
