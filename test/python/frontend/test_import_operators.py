# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single operators: what is imported equals PyTorch, what is not is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from import_cases import compare
from torch import Tensor, nn
from torch.nn import functional

from hyperparallel.errors import ImportModelError
from hyperparallel.frontend.torch import import_model


class Function(nn.Module):
    """A module around a function; keyword arguments become attributes."""

    def __init__(self, function: Callable[..., Any], **attributes: Any) -> None:
        super().__init__()
        self.function = function
        for key, value in attributes.items():
            setattr(self, key, value)

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


CASES: dict[str, tuple[Callable[..., Any], Tensor]] = {
    "cumulative sum of floats": (lambda _, x: torch.cumsum(x, 0), random(5, 3)),
    "cumulative sum of truth values": (lambda _, x: torch.cumsum(x > 0, -1), random(2, 4, 3)),
    "cumulative sum of a number": (lambda _, x: torch.cumsum(x.sum() > 0, 0), random(3)),
    "argmax and extrema": (lambda _, x: (x.argmax(1), x.max(1)[0], x.min(0)[1]), random(3, 5)),
    "extrema": (
        lambda _, x: (x.amax(1), x.amin((0, 2), keepdim=True), x.amax(), (x > 0).amax(0), (10 * x).long().amin(-1)),
        random(2, 3, 5),
    ),
    "extrema of NaN": (lambda _, x: torch.isnan((x / x.relu().sign()).amax(1)), random(3, 5)),
    "extrema of bytes": (lambda _, x: ((100 * x.abs()).byte().amax(1), (100 * x.abs()).byte().amin(1)), random(3, 5)),
    "softmax": (
        lambda _, x: (x.softmax(0), x.log_softmax(-1), x.logsumexp(1), x.half().softmax(1).float()),
        random(3, 5),
    ),
    "variance": (
        lambda _, x: (x.var(1), x.std(0, correction=0), x.var(), *torch.var_mean(x, (0, 1), keepdim=True)),
        random(3, 5),
    ),
    "gelu and friends": (
        lambda _, x: (functional.gelu(x), functional.gelu(x, approximate="tanh"), functional.silu(x), torch.erf(x)),
        random(3, 5),
    ),
    "powers": (
        lambda _, x: (x**2, x**3, x.abs() ** 0.5, (x.abs() + 1) ** -0.5, x**-1, x.abs() ** 1.7, 2**x),
        random(3, 5),
    ),
    "writes in place": (lambda _, x: (x.clone().add_(1).mul_(x), x[:, 1:3]), random(3, 5)),
    "input handed through": (lambda _, x: (x, x + 1, x), random(3, 5)),
    "batched product with a matrix": (lambda m, x: x.transpose(0, 1) @ m.w, random(4, 3, 5)),
    "einsum": (lambda m, x: torch.einsum("bij,jk->bik", x, m.w), random(4, 3, 5)),
    "attention": (lambda _, x: functional.scaled_dot_product_attention(x, x, x, is_causal=True), random(2, 2, 4, 8)),
    "lookup": (lambda m, x: functional.embedding((x > 0).long() + (x > 1).long(), m.w), random(3, 5)),
    "roll, pad, flip": (lambda _, x: (x.roll(1, 1), functional.pad(x, (1, 2), value=3.0), x.flip(0)), random(3, 5)),
    "rolls": (
        lambda _, x: (x.roll(2), x.roll((1, -7), (0, -1)), x.roll(3, 0), (10 * x).long().roll(-1, 1)),
        random(3, 5),
    ),
    "powers of integers": (lambda _, x: ((10 * x).long() ** 2, (10 * x).int() ** 3), random(3, 5)),
    "remainders of numbers": (lambda _, x: (torch.fmod(x, 0.3), torch.remainder(x, -0.3)), random(3, 5)),
    "padding of less than nothing": (
        lambda _, x: (functional.pad(x, (-1, 2, 1, -1), value=3.0), functional.pad(x, (0, -2))),
        random(3, 5),
    ),
    "interpolation": (lambda _, x: functional.interpolate(x, scale_factor=2, mode="bilinear"), random(1, 2, 4, 4)),
    "sort and largest": (
        lambda _, x: (torch.sort(x)[0], torch.sort(x, descending=True)[1], *torch.topk(x, 2)),
        random(3, 5),
    ),
    "number": (lambda _, x: x.sum(), random(3, 5)),
    "scalar tensor": (lambda _, x: x * torch.tensor(3.5), random(3, 5)),
    "half precision": (lambda m, x: (x.bfloat16() @ m.w.bfloat16()).float(), random(3, 5)),
}


@pytest.mark.parametrize("name", CASES)
def test_operator_equals_pytorch(name: str) -> None:
    function, x = CASES[name]
    module = Function(function, w=nn.Parameter(random(5, 4)))
    for result, error in compare(module, x).errors.items():
        assert error <= 2e-6, result


LAYERS: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "group norm": (nn.GroupNorm(2, 4), (2, 4, 3, 3)),
    "rms norm": (nn.RMSNorm(5), (3, 5)),
    "layer norm over two dimensions": (nn.LayerNorm((3, 5)), (2, 3, 5)),
    "batch norm": (nn.BatchNorm2d(3), (2, 3, 4, 4)),
    "transformer encoder layer": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (2, 3, 8)),
    "grouped convolution": (nn.Conv1d(2, 4, 3, padding=1, groups=2), (1, 2, 8)),
    "transposed convolution": (nn.ConvTranspose2d(2, 3, 2, stride=2), (1, 2, 4, 4)),
    "pooling": (nn.Sequential(nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(1)), (1, 2, 8, 8)),
    "lstm": (nn.LSTM(5, 4, batch_first=True), (2, 3, 5)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layer_equals_pytorch(name: str) -> None:
    from hyperparallel.frontend.weights import randomize

    module, shape = LAYERS[name]
    comparison = compare(randomize(module, seed=3).eval(), random(*shape))
    assert max(comparison.errors.values()) <= 2e-6


def test_layer_norm_stays_in_its_element_type() -> None:
    assert "f64" not in import_model(nn.LayerNorm(4), (random(2, 4),)).mlir


def test_tensor_that_is_no_buffer_becomes_one() -> None:
    comparison = compare(Function(lambda m, x: x + m.table, table=random(5)), random(3, 5))
    assert [(entry.name, entry.role.value) for entry in comparison.model.arguments] == [
        ("x", "input"),
        ("table", "buffer"),
    ]
    assert comparison.errors["output"] == 0


def test_tensor_of_no_attribute_becomes_a_numbered_buffer() -> None:
    comparison = compare(Function(lambda _, x: x.gather(1, torch.tensor([[1, 0], [2, 4]]))), random(2, 5))
    assert [entry.name for entry in comparison.model.arguments] == ["x", "constant.0"]
    assert comparison.errors["output"] == 0


REFUSED: dict[str, tuple[Callable[..., Any], str, str]] = {
    "index_put": (lambda _, x: x.index_put(((x[:, 0] > 0).long(),), x), "aten.index_put", "torch.where"),
    "fft": (lambda _, x: torch.fft.rfft(x).real, "aten._fft_r2c", "matrix of the transform"),
    "dropout": (lambda _, x: functional.dropout(x, 0.5, True), "aten.bernoulli", "module.eval()"),
    "branch": (lambda _, x: x if x.sum() > 0 else -x, "aten._local_scalar_dense", "torch.where"),
    "shape of values": (lambda _, x: x[x > 0], "aten.nonzero", "torch.where"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusal_names_operator_module_and_way_out(name: str) -> None:
    function, op, way_out = REFUSED[name]
    module = nn.Sequential(nn.Linear(5, 5), Function(function))
    with pytest.raises(ImportModelError) as caught:
        import_model(module, (random(3, 5),))
    error = caught.value
    assert error.op is not None
    assert error.op.startswith(op)
    assert error.module_path == "1"
    assert op in str(error)
    assert way_out in str(error)
    assert len(str(error).splitlines()) == 1


def test_refusal_inside_a_block_names_the_first_of_the_blocks() -> None:
    def layer() -> nn.Module:
        return nn.Sequential(nn.Linear(5, 5), Function(lambda _, x: torch.fft.fft(x).real))

    module = nn.Sequential(nn.ModuleDict({"stack": nn.Sequential(layer(), layer())})["stack"])
    with pytest.raises(ImportModelError, match=r"aten\._fft_r2c\S*, used by 0\.0\.1, has no lowering"):
        import_model(module, (random(3, 5),))


MISUSED: dict[str, tuple[nn.Module, tuple[Any, ...], str]] = {
    "changed buffer": (
        nn.BatchNorm1d(5).train(),
        (random(3, 5),),
        r"changes its buffer .*; call module\.eval\(\) first",
    ),
    "changed input": (
        Function(lambda _, x: x.add_(1)),
        (random(3, 5),),
        r"changes its input x while it runs; return the new value",
    ),
    "shapes that do not fit": (
        nn.Sequential(nn.Linear(4, 4)),
        (random(3, 5),),
        r"failed in 0 \(Linear\): RuntimeError: a and b",
    ),
    "missing argument": (nn.Linear(4, 4), (), r"do not fit Linear\.forward: missing a required argument: 'input'"),
    "argument of a strange type": (nn.Linear(4, 4), (object(),), r"argument input is a object; expected tensors"),
    "result of a strange type": (
        Function(lambda _, x: object()),
        (random(2),),
        r"result output is a object; expected tensors",
    ),
    "no result": (Function(lambda _, x: None), (random(2),), r"returns no tensor"),
    "unknown element type": (
        Function(lambda _, x: x.real),
        (torch.zeros(2, dtype=torch.complex64),),
        r"input x has element type complex64",
    ),
    "sparse input": (
        Function(lambda _, x: x),
        (torch.eye(2).to_sparse(),),
        r"got a sparse or quantized one; convert it with to_dense",
    ),
}


@pytest.mark.parametrize("name", MISUSED)
def test_misuse_is_one_clear_error(name: str) -> None:
    module, args, message = MISUSED[name]
    with pytest.raises(ImportModelError, match=message):
        import_model(module, args)
