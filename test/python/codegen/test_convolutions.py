# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions and pooling equal PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from codegen_cases import Execute
from numpy.typing import NDArray
from test_execution import numbers

torch = pytest.importorskip("torch")
Array = NDArray[Any]


def program(op: str, x: tuple[int, ...], w: tuple[int, ...], y: tuple[int, ...], attributes: str, start: str) -> str:
    """A program that applies a windowed op to an image and a filter, on an init of ``start``."""
    tx, tw, ty = ("tensor<" + "".join(f"{size}x" for size in shape) + "f32>" for shape in (x, w, y))
    return f"""
    func.func @main(%x: {tx}, %w: {tw}) -> {ty} {{
      %c = arith.constant {start} : f32
      %e = tensor.empty() : {ty}
      %i = linalg.fill ins(%c : f32) outs(%e : {ty}) -> {ty}
      %r = linalg.{op} {{{attributes}}} ins(%x, %w : {tx}, {tw}) outs(%i : {ty}) -> {ty}
      return %r : {ty}
    }}"""


def windows(stride: int, dilation: int) -> str:
    return f"dilations = dense<{dilation}> : vector<2xi64>, strides = dense<{stride}> : vector<2xi64>"


@pytest.mark.parametrize(
    ("size", "stride", "dilation"), [(3, 1, 1), (3, 2, 1), (2, 2, 1), (3, 1, 2), (1, 1, 1), (1, 2, 1), (4, 4, 1)]
)
def test_images_with_channels_first(execute: Execute, size: int, stride: int, dilation: int) -> None:
    """Overlapping, adjacent and dilated windows; filters of one pixel."""
    x, w = numbers(2, 3, 12, 13), numbers(5, 3, size, size, seed=1)
    want = torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(w), stride=stride, dilation=dilation).numpy()
    text = program("conv_2d_nchw_fchw", x.shape, w.shape, want.shape, windows(stride, dilation), "0.0")
    (got,) = execute(text, x, w)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_init_is_added_once(execute: Execute) -> None:
    """A bias comes as the init."""
    x, w = numbers(1, 2, 6, 7), numbers(3, 2, 3, 3, seed=1)
    want = torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(w)).numpy() + 1.25
    (got,) = execute(program("conv_2d_nchw_fchw", x.shape, w.shape, want.shape, windows(1, 1), "1.25"), x, w)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_channels_last(execute: Execute) -> None:
    """The layout of other frameworks."""
    x, w = numbers(2, 7, 8, 3), numbers(3, 2, 3, 4, seed=1)
    want = torch.nn.functional.conv2d(
        torch.tensor(x).permute(0, 3, 1, 2), torch.tensor(w).permute(3, 2, 0, 1), stride=2
    )
    want = want.permute(0, 2, 3, 1).numpy()
    (got,) = execute(program("conv_2d_nhwc_hwcf", x.shape, w.shape, want.shape, windows(2, 1), "0.0"), x, w)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_groups(execute: Execute) -> None:
    """Each group is a matmul of its own."""
    x, w = numbers(2, 3, 2, 6, 6), numbers(3, 4, 2, 3, 3, seed=1)
    want = torch.nn.functional.conv2d(
        torch.tensor(x.reshape(2, 6, 6, 6)), torch.tensor(w.reshape(12, 2, 3, 3)), groups=3
    )
    want = want.numpy().reshape(2, 3, 4, 4, 4)
    (got,) = execute(program("conv_2d_ngchw_gfchw", x.shape, w.shape, want.shape, windows(1, 1), "0.0"), x, w)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_depthwise(execute: Execute) -> None:
    """No reduction over channels: a kernel."""
    x, w = numbers(2, 5, 8, 9), numbers(5, 3, 3, seed=1)
    want = torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(w)[:, None], groups=5).numpy()
    text = program("depthwise_conv_2d_nchw_chw", x.shape, w.shape, want.shape, windows(1, 1), "0.0")
    (got,) = execute(text, x, w)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("op", "start"), [("pooling_nchw_max", "0xFF800000"), ("pooling_nchw_sum", "0.0")])
def test_pooling(execute: Execute, op: str, start: str) -> None:
    """The filter gives only the window's size."""
    x, w = numbers(2, 3, 9, 9), np.zeros((3, 3), np.float32)
    image = torch.tensor(x)
    want = (
        torch.nn.functional.max_pool2d(image, 3, 2) if "max" in op else 9 * torch.nn.functional.avg_pool2d(image, 3, 2)
    )
    (got,) = execute(program(op, x.shape, w.shape, tuple(want.shape), windows(2, 1), start), x, w)
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-5, atol=1e-5)


def test_one_dimension(execute: Execute) -> None:
    """A convolution over time."""
    x, w = numbers(2, 3, 17), numbers(4, 3, 5, seed=1)
    want = torch.nn.functional.conv1d(torch.tensor(x), torch.tensor(w), stride=2).numpy()
    attributes = "dilations = dense<1> : vector<1xi64>, strides = dense<2> : vector<1xi64>"
    (got,) = execute(program("conv_1d_ncw_fcw", x.shape, w.shape, want.shape, attributes, "0.0"), x, w)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
