# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Images to text: a ViT encoder and a GPT-2 decoder that attends to it, as transformers puts them together; random weights."""

import torch
from transformers import GPT2Config, VisionEncoderDecoderConfig, VisionEncoderDecoderModel, ViTConfig

from hyperparallel.frontend.weights import randomize


def build(
    *,
    encoder_layers: int = 4,
    decoder_layers: int = 4,
    width: int = 384,
    heads: int = 6,
    vocab: int = 8192,
    image: int = 112,
    batch: int = 4,
    seq: int = 32,
    seed: int = 0,
):
    torch.manual_seed(seed)
    vision = ViTConfig(
        num_hidden_layers=encoder_layers,
        hidden_size=width,
        intermediate_size=4 * width,
        num_attention_heads=heads,
        image_size=image,
        patch_size=16,
    )
    text = GPT2Config(
        n_layer=decoder_layers,
        n_embd=width,
        n_head=heads,
        vocab_size=vocab,
        n_positions=max(seq, 64),
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
        is_decoder=True,
        add_cross_attention=True,
    )
    config = VisionEncoderDecoderConfig.from_encoder_decoder_configs(vision, text)
    config._attn_implementation = "eager"
    model = randomize(VisionEncoderDecoderModel(config).eval(), seed=seed)
    return (
        model,
        (),
        {"pixel_values": torch.randn(batch, 3, image, image), "decoder_input_ids": torch.randint(vocab, (batch, seq))},
    )
