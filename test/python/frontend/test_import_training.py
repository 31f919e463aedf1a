# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The program of a training step: its functions, its phases, and what it refuses."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from hyperparallel.errors import ImportModelError
from hyperparallel.frontend.artifact import ImportedModel
from hyperparallel.frontend.training import import_training
from hyperparallel.frontend.training_step import Training

sys.path.append(str(Path(__file__).parents[3] / "examples"))

import gpt2_train
import mlp_train


def imported(**changes: Any) -> ImportedModel:
    """The perceptron of the examples, two blocks."""
    module, inputs, training = mlp_train.build(layers=2)
    return import_training(module, inputs, training=dataclasses.replace(training, **changes))


def calls(model: ImportedModel) -> list[tuple[str, str, str]]:
    """Callee, path and phase of every call, in order."""
    return re.findall(r'call @(\w+)\(.*hp.path = "([\w.]*)", hp.phase = "(\w+)"', model.mlir)


def test_every_block_has_a_function_for_each_phase() -> None:
    model = imported()
    assert [(callee, path) for callee, path, phase in calls(model) if "Block" in callee and phase != "forward"] == [
        ("Block_backward", "blocks.1"),
        ("Block_backward", "blocks.0"),
        ("Block_update", "blocks.0"),
        ("Block_update", "blocks.1"),
    ]
    assert len(re.findall(r"func.func private @Block\w*", model.mlir)) == 3


def test_main_is_calls() -> None:
    """What belongs to no block is a segment of its module."""
    model = imported()
    main = model.mlir[model.mlir.index("func.func @main") :]
    assert set(re.findall(r"= ([\w.]+)", main.partition("{\n")[2])) - {"call"} <= {"arith.constant"}
    segments = set(re.findall(r"func.func private @(\w+)\(.*hp.segment", model.mlir))
    assert {"embed", "head", "loss", "loss_backward", "head_backward", "embed_backward", "head_update"} <= segments


def test_what_changes_is_the_next_value_of_an_argument() -> None:
    model = imported()
    loss, *others = model.results
    assert (loss.name, loss.shape, loss.updates) == ("loss", (), None)
    kept = {argument.name: argument for argument in model.arguments}
    assert {result.updates for result in others} == {name for name in kept if kept[name].role != "input"}
    assert all(kept[str(result.updates)].shape == result.shape for result in others)
    assert kept["blocks.0.up.weight.momentum_buffer"].role == "optimizer"


def test_what_is_kept_for_backward_is_no_view() -> None:
    """Transposed weights and reshaped activations are made again where they are used."""
    model = imported()
    signature = re.search(r"func.func private @Block\(.*\) -> \((.*)\) \{", model.mlir)
    assert signature is not None
    assert sorted(re.findall(r"tensor<(\w+)xf32>", signature.group(1))) == sorted(
        ["8x64", "8x1", "8x1", "8x64", "8x256", "8x256"]
    )


def test_what_simple_arithmetic_makes_of_what_is_kept_is_not_kept() -> None:
    """Of GELU's five values of the width of the middle two are kept: what goes in, and its tangent."""
    module, inputs, training = gpt2_train.build(layers=2, width=32, heads=2)
    model = import_training(module, inputs, training=training)
    results = re.search(r"func.func private @GPT2Block\(.*\) -> \((.*)\) ", model.mlir)
    assert results is not None
    assert len(re.findall(r"x128xf32", results.group(1))) == 2
    backward = re.search(r"func.func private @GPT2Block_backward\((.*)\) -> ", model.mlir)
    assert backward is not None
    assert len(re.findall(r"8x16x128xf32|128x128xf32", backward.group(1))) == 2


def test_recomputing_keeps_what_goes_into_a_block() -> None:
    model = imported(checkpoint=True)
    signature = re.search(r"func.func private @Block\(.*\) -> (.*) \{", model.mlir)
    assert signature is not None
    assert signature.group(1) == "tensor<8x64xf32>"


def test_microbatches_are_a_loop() -> None:
    model = imported(microbatches=2)
    assert model.microbatches == 2
    assert model.arguments[0].shape == (8, 32)
    main = model.mlir[model.mlir.index("func.func @main") :]
    before, loop = main.split("scf.for", 1)
    assert "call" not in before
    assert "hp.microbatches" in loop
    inside = loop[: loop.index("hp.microbatches}")]
    assert 'hp.phase = "backward"' in inside
    assert 'hp.phase = "update"' not in inside
    assert "tensor<4x32xf32>" in inside


def test_a_batch_that_does_not_divide_is_refused() -> None:
    with pytest.raises(ImportModelError, match="a batch of 8 rows does not divide into 3 microbatches"):
        imported(microbatches=3)


@pytest.mark.parametrize(
    ("optimizer", "message"),
    [
        (lambda module: torch.optim.RMSprop(module.parameters()), "class SGD, Adam or AdamW"),
        (lambda module: torch.optim.Adam(module.parameters(), amsgrad=True), "amsgrad=True cannot be imported"),
        (lambda module: torch.optim.SGD([torch.ones(3)], lr=0.1), "no parameter of the model"),
    ],
)
def test_optimizers_that_are_not_known(optimizer: Any, message: str) -> None:
    module, inputs, training = mlp_train.build(layers=1)
    with pytest.raises(ImportModelError, match=message):
        import_training(module, inputs, training=dataclasses.replace(training, optimizer=optimizer(module)))


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda scores, labels: scores, r"one floating-point number but got a tensor of shape \[8, 10\]"),
        (lambda scores, labels: labels.float().sum(), "does not depend on a parameter"),
        (lambda scores, labels: 1.0, "one floating-point number but got a float"),
    ],
)
def test_losses_that_are_none(loss: Any, message: str) -> None:
    with pytest.raises(ImportModelError, match=message):
        imported(loss=loss)


def test_running_statistics_are_state() -> None:
    """Buffers that forward changes are results, too; in another type than they are kept in they would be lost."""
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    training = Training(lambda y: (y * y * y).sum(), torch.optim.SGD(module.parameters(), lr=0.1))
    model = import_training(module, (torch.randn(3, 4),), training=training)
    updated = [result.updates for result in model.results]
    assert updated[-3:] == ["1.running_mean", "1.running_var", "1.num_batches_tracked"]
    halves = dataclasses.replace(training, compute_dtype=torch.bfloat16)
    with pytest.raises(ImportModelError, match=r"buffer 1\.running_mean, .* leave compute_dtype out"):
        import_training(module, (torch.randn(3, 4),), training=halves)


def test_random_numbers_that_are_not_of_dropout_are_refused() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.AlphaDropout(0.5))
    training = Training(lambda y: y.sum(), torch.optim.SGD(module.parameters(), lr=0.1))
    with pytest.raises(ImportModelError, match="draws random numbers"):
        import_training(module, (torch.randn(3, 4),), training=training)


def test_a_saved_step_is_loaded_as_it_was(tmp_path: Path) -> None:
    model = imported(microbatches=2)
    loaded = ImportedModel.load(model.save(tmp_path / "model"))
    assert (loaded.results, loaded.blocks, loaded.microbatches) == (model.results, model.blocks, 2)
    assert not loaded.weight("head.weight.momentum_buffer").any()


def test_three_layers_stand_for_all_that_are_alike() -> None:
    """The same program, byte for byte, with state in the same order."""
    module, inputs, training = mlp_train.build(layers=6)
    training = dataclasses.replace(training, clip_norm=1.0, microbatches=2)
    whole = import_training(module, inputs, training=training)
    short = import_training(module, inputs, training=dataclasses.replace(training, trust_repeats=True))
    assert short.mlir == whole.mlir
    assert (short.arguments, short.results, short.blocks) == (whole.arguments, whole.results, whole.blocks)
    assert (short.weight("blocks.4.up.weight") == whole.weight("blocks.4.up.weight")).all()


@pytest.mark.parametrize("layer", [1, 3, 5])
def test_layers_that_differ_do_not_stand_for_each_other(layer: int) -> None:
    """Another epsilon in one layer: all are traced."""
    module, inputs, training = mlp_train.build(layers=6)
    module.blocks[layer].norm.eps = 0.5
    model = import_training(module, inputs, training=dataclasses.replace(training, trust_repeats=True))
    assert len(re.findall(r"func.func private @Block(_\d)?\(", model.mlir)) == 2


def test_a_model_that_takes_every_layer_is_traced_whole() -> None:
    """A sum of what all layers make is no business of one layer."""

    class Sum(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            pair = [torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()) for _ in range(6)]
            self.layers = torch.nn.ModuleList(pair)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            total = x
            for layer in self.layers:
                x = layer(x)
                total = total + x
            return total

    module = Sum()
    training = Training(lambda y: y.square().mean(), torch.optim.SGD(module.parameters(), lr=0.1), trust_repeats=True)
    model = import_training(module, (torch.randn(3, 4),), training=training)
    assert len([block for block in model.blocks if block.phase == "forward"]) == 6
