# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small Llama that generates: keys and values of grouped heads come from a static cache."""

import gpt2_decode
import llama


def build(
    *,
    layers: int = 8,
    width: int = 512,
    ff: int = 1376,
    heads: int = 8,
    kv_heads: int = 4,
    vocab: int = 4096,
    batch: int = 2,
    length: int = 128,
    prompt: int = 8,
    seq: int = 1,
    seed: int = 0,
):
    model, (tokens,) = llama.build(
        layers=layers,
        width=width,
        ff=ff,
        heads=heads,
        kv_heads=kv_heads,
        vocab=vocab,
        batch=batch,
        seq=prompt + seq,
        seed=seed,
    )
    return gpt2_decode.prepare(model, tokens, length, prompt)
