# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many cores PyTorch gets where it computes what is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

_SMALL = 10_000_000


@contextmanager
def fitting_threads(module: torch.nn.Module) -> Iterator[None]:
    """One thread for a small module.

    Threads of PyTorch wait for each other behind every op, and burn their cores while they do: five steps of a GPT-2 of
    200,000 parameters took 0.3 s with one thread, and 15 s with two where two cores were shared with other programs.

    Args:
        module: What will compute; it is small below ten million parameters.
    """
    before = torch.get_num_threads()
    if sum(parameter.numel() for parameter in module.parameters()) < _SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


__all__ = ["fitting_threads"]
