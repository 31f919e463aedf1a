# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random weights that make a comparison mean something.

A freshly built model has biases of zero and norms of one, so a program that drops a bias or mixes up two norms still
gives the right numbers. ``randomize`` fills every constant parameter and buffer with values that all differ and vary in
sign.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def randomize(module: torch.nn.Module, *, seed: int = 0, scale: float = 0.05) -> torch.nn.Module:
    """Fill the constant parameters and floating-point buffers of ``module`` with random values, in place.

    Tensors that already hold different values (weights with a random initialisation, tables of angles) stay as they
    are. A tensor of ones becomes ``1 + scale * normal`` (so that a norm stays near one and a variance stays positive),
    any other constant tensor becomes ``scale * normal``. Tensors without storage (``meta`` and fake) and integer
    buffers are left alone.

    Args:
        module: The module to change.
        seed: Seed of the generator; equal seeds give equal values.
        scale: Standard deviation of what is added.

    Returns:
        ``module``, for chaining.

    Example:
        >>> import torch
        >>> layer = randomize(torch.nn.LayerNorm(4))
        >>> len(set(layer.bias.tolist()))
        4
    """
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            if (
                tensor.is_meta
                or isinstance(tensor, FakeTensor)
                or not tensor.is_floating_point()
                or tensor.numel() == 0
            ):
                continue
            low, high = torch.aminmax(tensor)
            if tensor.numel() > 1 and bool(low != high):
                continue
            noise = torch.randn(tensor.shape, generator=generator, dtype=torch.float32) * scale
            base = 1.0 if bool(low == 1.0) else 0.0
            tensor.copy_((noise + base).to(tensor.dtype))
    return module
