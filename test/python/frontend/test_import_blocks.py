# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks: the same function exactly when what was traced is the same."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
from import_cases import compare, execute
from torch import Tensor, nn

from hyperparallel.errors import ImportModelError
from hyperparallel.frontend.torch import find_blocks, import_model
from hyperparallel.frontend.weights import randomize


class Layer(nn.Module):
    """A block with an attribute that changes what it computes, and a width."""

    def __init__(self, width: int, scale: float = 1.5, hidden: int = 6) -> None:
        super().__init__()
        self.scale = scale
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x: Tensor, bias: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        y = x + self.scale * self.down(torch.relu(self.up(x)))
        return (y if bias is None else y + bias), bias


class Stack(nn.Module):
    """Layers in a list, called one after the other."""

    def __init__(self, layers: list[nn.Module], call: Callable[[nn.Module, Tensor], Tensor] | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.call = call or (lambda layer, x: layer(x)[0])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = self.call(layer, x)
        return x


def x(width: int = 4) -> Tensor:
    return torch.randn(3, width, generator=torch.Generator().manual_seed(1))


def functions(text: str) -> list[str]:
    return re.findall(r"func\.func private @(\w+)\(", text)


def calls(text: str) -> list[tuple[str, str]]:
    return [(path, callee) for callee, path in re.findall(r'call @(\w+)\(.*\) \{hp\.path = "([^"]*)"\}', text)]


def check(module: nn.Module, *args: Tensor, expected: dict[str, str]) -> str:
    comparison = compare(randomize(module).eval(), *(args or (x(),)))
    assert max(comparison.errors.values()) <= 1e-6
    assert calls(comparison.model.mlir) == list(expected.items())
    assert [(block.path, block.function) for block in comparison.model.blocks] == list(expected.items())
    assert functions(comparison.model.mlir) == list(dict.fromkeys(expected.values()))
    return comparison.model.mlir


def test_equal_layers_share_a_function() -> None:
    check(Stack([Layer(4), Layer(4), Layer(4)]), expected={f"layers.{i}": "Layer" for i in range(3)})


def test_another_attribute_is_another_function() -> None:
    layers: list[nn.Module] = [Layer(4), Layer(4, scale=2.5), Layer(4), Layer(4, scale=2.5)]
    expected = {"layers.0": "Layer", "layers.1": "Layer_1", "layers.2": "Layer", "layers.3": "Layer_1"}
    check(Stack(layers), expected=expected)


def test_another_shape_is_another_function() -> None:
    expected = {"layers.0": "Layer", "layers.1": "Layer_1", "layers.2": "Layer"}
    check(Stack([Layer(4), Layer(4, hidden=7), Layer(4)]), expected=expected)


def test_another_forward_in_one_instance_is_another_function() -> None:
    odd = Layer(4)
    odd.forward = lambda x, bias=None: (torch.tanh(odd.up(x)) @ odd.down.weight.t(), bias)
    check(Stack([Layer(4), odd, Layer(4)]), expected={"layers.0": "Layer", "layers.1": "Layer_1", "layers.2": "Layer"})


def test_another_order_of_weights_is_another_function() -> None:
    """Two products of the same shapes in another order: only the data flow tells them apart."""

    class Products(nn.Module):
        def __init__(self, swap: bool) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
            self.swap = swap

        def forward(self, x: Tensor) -> Tensor:
            a, b = self.first(x), self.second(x)
            return b - a if self.swap else a - b

    module = Stack([Products(False), Products(True), Products(False)], lambda layer, x: layer(x))
    check(module, expected={"layers.0": "Products", "layers.1": "Products_1", "layers.2": "Products"})


def test_weight_that_is_shared_by_layers_is_one_argument() -> None:
    layers = [Layer(4), Layer(4)]
    layers[1].up.weight = layers[0].up.weight
    module = Stack(list(layers))
    text = check(module, expected={"layers.0": "Layer", "layers.1": "Layer"})
    assert 'hp.aliases = ["layers.1.up.weight"], hp.name = "layers.0.up.weight"' in text
    assert '"layers.1.up.weight", hp.role' not in text


def test_weight_that_is_used_twice_in_one_layer_is_another_function() -> None:
    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            return self.a(x) - self.b(x + 1)

    tied = Pair()
    tied.b.weight = tied.a.weight
    expected = {"layers.0": "Pair", "layers.1": "Pair_1"}
    check(Stack([Pair(), tied], lambda layer, x: layer(x)), expected=expected)


def test_layer_called_twice_is_two_calls() -> None:
    class Twice(Stack):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(super().forward(x))

    model = import_model(randomize(Twice([Layer(4), Layer(4)])).eval(), (x(),))
    assert [block.path for block in model.blocks] == ["layers.0", "layers.1", "layers.0", "layers.1"]
    assert functions(model.mlir) == ["Layer"]


def test_activations_shared_by_all_layers_are_passed_to_each() -> None:
    class WithBias(Stack):
        def forward(self, x: Tensor) -> Tensor:
            bias: Tensor | None = torch.cumsum(x, 0)
            for layer in self.layers:
                x, bias = layer(x, bias)
            return x

    text = check(WithBias([Layer(4), Layer(4)]), expected={"layers.0": "Layer", "layers.1": "Layer"})
    first, second = re.findall(r"call @Layer\(([^)]*)\)", text)
    assert first.split(", ")[1] == second.split(", ")[1]


def test_results_that_only_some_layers_need() -> None:
    """The last layer's second result is used, the first one's is not: two functions, right numbers."""

    class TwoResults(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return self.a(x), self.b(x)

    class Last(Stack):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            y = x
            for layer in self.layers:
                x, y = layer(x)
            return x, y

    check(Last([TwoResults(), TwoResults()]), expected={"layers.0": "TwoResults", "layers.1": "TwoResults_1"})


def test_constant_inside_a_layer_stays_inside() -> None:
    class Constant(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.linear(x) * torch.tensor(2.5)

    check(
        Stack([Constant(), Constant()], lambda layer, x: layer(x)),
        expected={"layers.0": "Constant", "layers.1": "Constant"},
    )


def test_layer_that_writes_in_place() -> None:
    class InPlace(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            x += self.linear(x)
            return x

    class Copy(Stack):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x * 2) + x

    check(
        Copy([InPlace(), InPlace()], lambda layer, x: layer(x)), expected={"layers.0": "InPlace", "layers.1": "InPlace"}
    )


def test_lists_inside_layers_are_part_of_them() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.ModuleList([Layer(4), Layer(4)])

        def forward(self, x: Tensor) -> Tensor:
            for layer in self.inner:
                x, _ = layer(x)
            return x

    module = Stack([Outer(), Outer()], lambda layer, x: layer(x))
    check(module, expected={"layers.0": "Outer", "layers.1": "Outer"})


def test_leaves_and_single_modules_are_no_blocks() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    assert find_blocks(module, "auto") == frozenset()
    text = check(module, expected={})
    assert text.count("func.func") == 1


def test_flat_and_blockwise_give_the_same_numbers() -> None:
    module = randomize(Stack([Layer(4), Layer(4, scale=2.5), Layer(4)])).eval()
    blockwise = import_model(module, (x(),))
    flat = import_model(module, (x(),), block_paths=None)
    assert flat.blocks == ()
    assert flat.mlir.count("func.func") == 1
    assert (execute(blockwise, module, (x(),))["output"] == execute(flat, module, (x(),))["output"]).all()


def test_chosen_paths_and_globs() -> None:
    module = randomize(Stack([Layer(4), Layer(4), Layer(4)])).eval()
    assert [b.path for b in import_model(module, (x(),), block_paths=["layers.1"]).blocks] == ["layers.1"]
    assert find_blocks(module, ["layers.*"]) == {"layers.0", "layers.1", "layers.2"}
    assert find_blocks(module, ["layers.*.up", "layers.2"]) == {"layers.0.up", "layers.1.up", "layers.2.up", "layers.2"}
    with pytest.raises(ImportModelError, match=r"block path 'layer\.\*' matches no module of Stack"):
        import_model(module, (x(),), block_paths=["layer.*"])
    with pytest.raises(ImportModelError, match=r"expected block_paths to be 'auto', None or a list .* but got 'all'"):
        import_model(module, (x(),), block_paths="all")  # pyright: ignore[reportArgumentType]
