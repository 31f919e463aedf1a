# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GPT-2 small that generates: a step takes a token, and keys and values of those before from a static cache.

``prompt`` tokens are in the cache already. With ``seq`` above 1 the step is one of prefill: it takes that many tokens.
"""

import gpt2
import torch

from hyperparallel.frontend.decoding import Decoding, GreedyDecoder


def build(
    *,
    layers: int = 12,
    width: int = 768,
    heads: int = 12,
    vocab: int = 50257,
    batch: int = 1,
    length: int = 256,
    prompt: int = 8,
    seq: int = 1,
    seed: int = 0,
):
    model, (tokens,) = gpt2.build(
        layers=layers, width=width, heads=heads, vocab=vocab, positions=length, batch=batch, seq=prompt + seq, seed=seed
    )
    return prepare(model, tokens, length, prompt)


def prepare(model: torch.nn.Module, tokens: torch.Tensor, length: int, prompt: int):
    """The decoder with a prompt in its cache, and what it takes next."""
    decoder = GreedyDecoder(model, tokens.shape[0], length)
    if prompt:
        with torch.no_grad():
            decoder(tokens[:, :prompt], torch.tensor(0))
    following = tokens[:, prompt:]
    carried = ("token", "position") if following.shape[1] == 1 else ()
    return decoder, (following, torch.tensor(prompt)), Decoding(carried=carried)
