# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which operators are rewritten in simpler ones while a model is traced, and how.

PyTorch's core decompositions do most of it. What is our own has one of these reasons:

- Norms and variances keep the element type of their input (or ``float32`` for half precision). The lowering of
  ``aten.var`` computes in ``float64``: four times the bytes, and slow on every accelerator.
- A matrix product with a two-dimensional weight stays a two-dimensional product: ``[B, S, K] x [K, N]`` becomes
  ``[B*S, K] x [K, N]``, never a batched product that copies the weight for every batch entry.
- Softmax takes its maximum without looking for the place of it, which torch-mlir's lowering also computes.
- Small integer powers become products, as PyTorch's own kernels compute them.
- The loss of a class compares class numbers and selects, in both directions: it neither gathers nor scatters, and is
  split along classes as any elementwise operator.
- A roll is two slices, of known sizes: torch-mlir's lowering leaves them open.
- Padding of less than nothing, which is what the gradient of a padding is, is a slice.
- The tanh form of GELU keeps its tanh: torch-mlir puts a polynomial in its place that is off by 5e-5.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from hyperparallel.frontend.indexed import indexed_decompositions

aten = torch.ops.aten

# Lowered by torch-mlir as they are, while PyTorch's decomposition leads to an operator that it does not know.
_KEPT = frozenset(
    getattr(aten, name)
    for name in (
        *(
            "fft_fft",
            "fft_fft2",
            "fft_fftn",
            "fft_ifft",
            "fft_ifft2",
            "fft_ifftn",
            "fft_rfft",
            "fft_rfft2",
            "fft_rfftn",
        ),
        *("fft_irfft", "fft_irfft2", "fft_irfftn", "fft_hfft", "fft_hfft2", "fft_hfftn", "fft_ihfft", "fft_ihfft2"),
        *("fft_ihfftn", "fft_fftshift", "fft_ifftshift", "stft", "istft", "norm", "linalg_norm", "linalg_vector_norm"),
        *("linalg_slogdet", "roll", "one_hot", "empty_like", "all", "isfinite", "logaddexp", "logaddexp2", "eye"),
        "isclose",
    )
)

# Not among the core decompositions, and not lowered by torch-mlir.
_ADDED = (
    aten.upsample_bilinear2d,
    aten.upsample_bicubic2d,
    aten.upsample_nearest2d,
    aten._native_batch_norm_legit_functional,
    aten._native_batch_norm_legit_no_training,
    aten._native_batch_norm_legit,
    aten._native_batch_norm_legit.no_stats,
    aten.squeeze.dims,
    aten._euclidean_dist,
    aten.grid_sampler_2d,
    aten._adaptive_avg_pool2d,
    aten.full,
    aten.logsumexp,
    aten._log_softmax,
    aten._to_copy,
    aten.diag,
    aten._scaled_dot_product_flash_attention_for_cpu,
)


@functools.cache
def decomposition_table() -> dict[Any, Callable[..., Any]]:
    """Return the decompositions under which models are traced, by operator overload."""
    from torch._decomp import core_aten_decompositions, get_decompositions

    core: dict[Any, Callable[..., Any]] = dict(core_aten_decompositions().items())
    table: dict[Any, Callable[..., Any]] = {
        overload: function for overload, function in core.items() if overload._overloadpacket not in _KEPT
    }
    table.update(get_decompositions(list(_ADDED)))
    table.update(
        {
            aten.native_layer_norm.default: _layer_norm,
            aten.native_group_norm.default: _group_norm,
            aten.native_batch_norm.default: _batch_norm,
            aten._fused_rms_norm.default: _rms_norm,
            aten.var.correction: _var,
            aten.var_mean.correction: _var_mean,
            aten.std.correction: _std,
            aten.std_mean.correction: _std_mean,
            torch.ops.prims.squeeze.default: _squeeze,
            aten.t.default: _t,
            aten.transpose.int: _transpose,
            aten._reshape_alias.default: _reshape_alias,
            aten._softmax.default: _softmax,
            aten.gelu.default: _gelu,
            aten.pow.Tensor_Scalar: _pow,
            aten.constant_pad_nd.default: _constant_pad_nd,
            aten.roll.default: _roll,
            aten.fmod.Scalar: _fmod,
            aten.addmm.default: _addmm,
            aten.baddbmm.default: _baddbmm,
            aten.addmv.default: _addmv,
            aten.nll_loss_forward.default: _nll_loss,
            aten.nll_loss2d_forward.default: _nll_loss,
            aten.nll_loss_backward.default: _nll_loss_backward,
            aten.nll_loss2d_backward.default: _nll_loss_backward,
        }
    )
    table.update(indexed_decompositions())
    return table


def _computed_in(x: Tensor) -> torch.dtype:
    return torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype


def _layer_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    dims = list(range(x.dim() - len(shape), x.dim()))
    wide = x.to(_computed_in(x))
    mean = wide.mean(dims, keepdim=True)
    centered = wide - mean
    rstd = torch.rsqrt((centered * centered).mean(dims, keepdim=True) + eps)
    y = centered * rstd
    if weight is not None:
        y = y * weight
    if bias is not None:
        y = y + bias
    return y.to(x.dtype), mean, rstd


def _group_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, n: int, channels: int, size: int, groups: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    wide = x.to(_computed_in(x)).reshape(n, groups, (channels // groups) * size)
    mean = wide.mean(2, keepdim=True)
    centered = wide - mean
    rstd = torch.rsqrt((centered * centered).mean(2, keepdim=True) + eps)
    y = (centered * rstd).reshape(x.shape)
    per_channel = [1, channels] + [1] * (x.dim() - 2)
    if weight is not None:
        y = y * weight.reshape(per_channel)
    if bias is not None:
        y = y + bias.reshape(per_channel)
    return y.to(x.dtype), mean.reshape(n, groups), rstd.reshape(n, groups)


def _batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    _momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    if training or running_mean is None or running_var is None:
        return NotImplemented
    per_channel = [1, x.shape[1]] + [1] * (x.dim() - 2)
    scale = torch.rsqrt(running_var + eps)
    if weight is not None:
        scale = scale * weight
    y = (x - running_mean.reshape(per_channel)) * scale.reshape(per_channel)
    if bias is not None:
        y = y + bias.reshape(per_channel)
    return y.to(x.dtype), x.new_empty([0]), x.new_empty([0])


def _rms_norm(x: Tensor, shape: Sequence[int], weight: Tensor | None, eps: float | None) -> tuple[Tensor, Tensor]:
    dims = list(range(x.dim() - len(shape), x.dim()))
    wide = x.to(_computed_in(x))
    rstd = torch.rsqrt((wide * wide).mean(dims, keepdim=True) + (torch.finfo(wide.dtype).eps if eps is None else eps))
    y = wide * rstd
    if weight is not None:
        y = y * weight
    return y.to(x.dtype), rstd


def _moments(x: Tensor, dim: Sequence[int] | None, correction: float | None, keepdim: bool) -> tuple[Tensor, Tensor]:
    dims = sorted(d % x.dim() for d in dim) if dim else list(range(x.dim()))
    wide = x.to(_computed_in(x))
    count = math.prod(x.shape[d] for d in dims)
    mean = wide.mean(dims, keepdim=True)
    centered = wide - mean
    divisor = max(0.0, count - (1.0 if correction is None else float(correction)))
    var = (centered * centered).sum(dims, keepdim=True) / divisor
    if not keepdim:
        kept = [size for d, size in enumerate(x.shape) if d not in dims]
        var, mean = var.reshape(kept), mean.reshape(kept)
    return var.to(x.dtype), mean.to(x.dtype)


def _var_mean(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    if x.is_complex():
        return NotImplemented
    return _moments(x, dim, correction, keepdim)


def _var(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    if x.is_complex():
        return NotImplemented
    return _moments(x, dim, correction, keepdim)[0]


def _std(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    if x.is_complex():
        return NotImplemented
    return torch.sqrt(_moments(x, dim, correction, keepdim)[0])


def _std_mean(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    if x.is_complex():
        return NotImplemented
    var, mean = _moments(x, dim, correction, keepdim)
    return torch.sqrt(var), mean


def _pow(x: Tensor, exponent: float) -> Tensor:
    if x.is_complex():
        return NotImplemented
    if not x.is_floating_point() and (x.dtype == torch.bool or exponent not in (2, 3)):
        return NotImplemented
    if exponent == 2:
        return x * x
    if exponent == 3:
        return x * x * x
    if exponent == 0.5:
        return torch.sqrt(x)
    if exponent == -0.5:
        return torch.rsqrt(x)
    if exponent == -1:
        return torch.reciprocal(x)
    return NotImplemented


def _constant_pad_nd(x: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    if min(pad, default=0) >= 0:
        return NotImplemented
    for place, (low, high) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        dim = x.dim() - 1 - place
        x = aten.slice.Tensor(x, dim, max(-low, 0), x.shape[dim] - max(-high, 0))
    rest = [max(n, 0) for n in pad]
    return aten.constant_pad_nd.default(x, rest, value) if any(rest) else x.clone()


def _roll(x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    if not dims:
        flat = aten.view.default(x.contiguous(), [x.numel()])
        return aten.view.default(_roll(flat, shifts, [0]), list(x.shape))
    for shift, dim in zip(shifts, dims, strict=True):
        size = x.shape[dim] if x.dim() else 1
        if size and shift % size:
            cut = size - shift % size
            x = torch.cat([aten.slice.Tensor(x, dim, cut, size), aten.slice.Tensor(x, dim, 0, cut)], dim)
    return x.clone()


def _fmod(x: Tensor, divisor: float) -> Tensor:
    if not x.is_floating_point():
        return NotImplemented
    return aten.fmod.Tensor(x, torch.full_like(x, divisor))


# What these three do is what PyTorch's decompositions do, at a fifth of the time; they are a sixth of all calls.
def _t(x: Tensor) -> Tensor:
    return x if x.dim() < 2 else aten.permute.default(x, [1, 0])


def _transpose(x: Tensor, dim0: int, dim1: int) -> Tensor:
    if x.dim() == 0:
        return x
    dims = list(range(x.dim()))
    dims[dim0], dims[dim1] = dims[dim1], dims[dim0]
    return aten.permute.default(x, dims)


def _reshape_alias(x: Tensor, shape: Sequence[int], _stride: Sequence[int]) -> Tensor:
    return aten.view.default(x, shape)


def _squeeze(x: Tensor, dims: Sequence[int]) -> Tensor:
    return x.view([size for dim, size in enumerate(x.shape) if dim not in dims])


def _softmax(x: Tensor, dim: int, _half_to_float: bool) -> Tensor:
    if x.numel() == 0 or x.dim() == 0:
        return NotImplemented
    wide = x.to(_computed_in(x))
    exponentials = torch.exp(wide - torch.amax(wide, dim, keepdim=True))
    y = exponentials / exponentials.sum(dim, keepdim=True)
    return y if _half_to_float else y.to(x.dtype)


def _gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    if approximate == "none":
        return NotImplemented
    wide = x.to(_computed_in(x))
    inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * (wide * wide * wide))
    return (0.5 * wide * (1 + torch.tanh(inner))).to(x.dtype)


def _scaled(x: Tensor, factor: float) -> Tensor:
    return x if factor == 1 else x * factor


def _addmm(bias: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    product = _scaled(torch.mm(a, b), alpha)
    return product if beta == 0 else product + _scaled(bias, beta)


def _baddbmm(bias: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    product = _scaled(torch.bmm(a, b), alpha)
    return product if beta == 0 else product + _scaled(bias, beta)


def _addmv(bias: Tensor, a: Tensor, x: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    product = _scaled(torch.mv(a, x), alpha)
    return product if beta == 0 else product + _scaled(bias, beta)


def _class_weights(x: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int) -> tuple[Tensor, Tensor, int]:
    """Which element belongs to the target class, the weight of each target, and the dimension of classes."""
    dim = 0 if x.dim() == 1 else 1
    shape = [1] * x.dim()
    shape[dim] = x.shape[dim]
    classes = torch.arange(x.shape[dim], device=x.device).view(shape)
    hit = (classes == target.unsqueeze(dim)) & (target != ignore_index).unsqueeze(dim)
    taken = torch.ones([], dtype=x.dtype) if weight is None else weight.view(shape)
    return hit, torch.where(hit, taken, torch.zeros([], dtype=x.dtype)), dim


def _assert_classes(target: Tensor, classes: int, ignore_index: int) -> Tensor:
    """A zero for each target, read at the class that it names: the zeros are folded, the assertion of the place stays."""
    named = torch.where(target == ignore_index, 0, target)
    return aten.embedding(target.new_zeros([classes, 1]), named).squeeze(-1)


def _nll_loss(
    x: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    hit, weights, dim = _class_weights(x, target, weight, ignore_index)
    loss = -torch.where(hit, x if weight is None else x * weights, torch.zeros([], dtype=x.dtype)).sum(dim)
    loss = loss + _assert_classes(target, x.shape[dim], ignore_index).to(x.dtype)
    if reduction == 0:
        return loss, x.new_zeros([])
    total = weights.sum()
    return (loss.sum() / total if reduction == 1 else loss.sum()), total


def _nll_loss_backward(
    grad: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    hit, weights, dim = _class_weights(x, target, weight, ignore_index)
    if reduction == 1:
        grad = grad / total_weight
    each = grad.unsqueeze(dim) if reduction == 0 else grad
    return torch.where(hit, -each if weight is None else -each * weights, torch.zeros([], dtype=x.dtype))


class Rewrites(TorchFunctionMode):
    """Rewrites calls that PyTorch takes apart before decompositions see them.

    Products with a two-dimensional right-hand side run as one two-dimensional product; the RMS norm is spelled out.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.nn.functional.linear:
            return _linear(*args, **kwargs)
        if func in (torch.matmul, Tensor.matmul, Tensor.__matmul__) and not kwargs and _is_flat_product(*args):
            a, b = args
            return torch.mm(a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[-1])
        if func in (torch.rms_norm, torch.nn.functional.rms_norm):
            return _rms_norm(*_rms_norm_arguments(*args, **kwargs))[0]
        return func(*args, **kwargs)


def _is_flat_product(a: Any, b: Any) -> bool:
    return isinstance(a, Tensor) and isinstance(b, Tensor) and a.dim() > 2 and b.dim() == 2


def _rms_norm_arguments(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> tuple[Tensor, Sequence[int], Tensor | None, float | None]:
    return input, normalized_shape, weight, eps


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if weight.dim() != 2 or input.dim() == 1:
        return torch.ops.aten.linear.default(input, weight, bias)
    flat = input if input.dim() == 2 else input.reshape(-1, input.shape[-1])
    y = torch.mm(flat, weight.t())
    if bias is not None:
        y = y + bias
    return y if input.dim() == 2 else y.reshape(*input.shape[:-1], weight.shape[0])
