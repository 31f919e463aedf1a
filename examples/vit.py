# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A vision transformer on 96-pixel images in patches of 16: 6 layers at width 384, random weights."""

import torch
from transformers import ViTConfig, ViTModel

from hyperparallel.frontend.weights import randomize


def build(
    *,
    layers: int = 6,
    width: int = 384,
    ff: int = 1536,
    heads: int = 6,
    image: int = 96,
    patch: int = 16,
    batch: int = 4,
    seed: int = 0,
):
    torch.manual_seed(seed)
    config = ViTConfig(
        num_hidden_layers=layers,
        hidden_size=width,
        intermediate_size=ff,
        num_attention_heads=heads,
        image_size=image,
        patch_size=patch,
        attn_implementation="eager",
    )
    model = randomize(ViTModel(config).eval(), seed=seed)
    return model, (torch.randn(batch, 3, image, image),)
