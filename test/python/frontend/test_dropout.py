# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dropout by counters: the published generator, numbers that are spread as they should be, and streams that differ."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from hyperparallel.frontend.dropout import COUNTER, CountedDropout, give_counters, kept, make_key, squares32


def by_the_paper(counters: np.ndarray, key: int) -> np.ndarray:
    """squares32 as Widynski writes it, in unsigned numbers."""
    wide = np.uint64(32)
    key_ = np.uint64(key % (1 << 64))
    with np.errstate(over="ignore"):
        x = y = counters.astype(np.uint64) * key_
        z = y + key_
        for added in (y, z, y):
            x = x * x + added
            x = (x >> wide) | (x << wide)
        return (x * x + z) >> wide


@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_the_generator_is_the_published_one(seed: int) -> None:
    key = make_key(seed)
    counters = np.concatenate([np.arange(1000), (1 << 44) + np.arange(1000), (1 << 62) + np.arange(10)])
    made = squares32(torch.from_numpy(counters), key).numpy()
    np.testing.assert_array_equal(made.astype(np.uint64), by_the_paper(counters, key))
    digits = f"{key % (1 << 64):016x}"
    assert len(set(digits[:8])) == len(set(digits[8:])) == 8
    assert "0" not in digits
    assert int(digits[-1], 16) % 2 == 1


def test_numbers_are_spread_evenly_and_seeds_differ() -> None:
    counters = torch.arange(1 << 16)
    drawn = squares32(counters, make_key(0)).double() / 2**32
    count = torch.histc(drawn, 16, 0, 1)
    # 16 cells of 4096 each: the sum is chi-squared of 15 degrees, above 40 once in 2000.
    assert float(((count - 4096) ** 2 / 4096).sum()) < 40
    assert abs(float(torch.corrcoef(torch.stack([drawn[:-1], drawn[1:]]))[0, 1])) < 0.02
    assert bool((squares32(counters, make_key(1)) != squares32(counters, make_key(0))).float().mean() > 0.99)


def test_a_mask_is_a_function_of_places() -> None:
    mask = kept(torch.tensor(7), (6, 1, 10), 0.25, make_key(3))
    flat = kept(torch.tensor(7), (60,), 0.25, make_key(3))
    assert torch.equal(mask.flatten(), flat)
    assert torch.equal(mask.flatten()[20:], kept(torch.tensor(27), (40,), 0.25, make_key(3)))
    assert abs(float(kept(torch.tensor(0), (100, 100), 0.25, make_key(0)).float().mean()) - 0.75) < 0.02


class Twice(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Dropout(0.5), torch.nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([self.first(x), self.first(x), self.second(x)])


def test_each_module_has_a_stream_that_goes_on() -> None:
    module, x = Twice(), torch.ones(20, 20)
    assert not torch.equal(module.train()(x)[0], x)
    give_counters(module, (x,), {})
    give_counters(module, (x,), {})
    assert [name for name, _ in module.named_buffers()] == [f"first.{COUNTER}", f"second.{COUNTER}"]
    assert not module.state_dict(), "a checkpoint of the model stays what it was"
    with CountedDropout(0):
        once, again = module(x), module(x)
    assert module.first.get_buffer(COUNTER) == 4 * x.numel()
    masks = [*once, *again]
    assert all(not torch.equal(left, right) for at, left in enumerate(masks) for right in masks[:at])
    assert set(once.unique().tolist()) == {0, 2}
    with CountedDropout(0):
        assert torch.equal(module.eval()(x)[0], x)


def test_attention_drops_its_weights() -> None:
    """As torch does it, for a probability of nothing; by the mask of the module, for another."""

    class Attention(torch.nn.Module):
        p = 0.25

        def forward(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
            attend = torch.nn.functional.scaled_dot_product_attention
            return attend(q, k, k, dropout_p=self.p, is_causal=True, enable_gqa=True)

    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 4, 5, 8, generator=generator), torch.randn(2, 2, 5, 8, generator=generator)
    module = Attention()
    give_counters(module, (q, k), {})
    assert hasattr(module, COUNTER)
    with CountedDropout(1):
        dropped = module(q, k)
    weights = ((q @ k.repeat_interleave(2, 1).mT) / 8**0.5).masked_fill(~torch.ones(5, 5).bool().tril(), -torch.inf)
    mask = kept(torch.tensor(0), (2, 4, 5, 5), 0.25, make_key(1))
    wanted = (weights.softmax(-1) * mask / 0.75) @ k.repeat_interleave(2, 1)
    torch.testing.assert_close(dropped, wanted)
    module.p = 1e-12
    with CountedDropout(1):
        torch.testing.assert_close(
            module(q, k),
            torch.nn.functional.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True),
        )
