# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs wired into one: it computes what the parts compute one after the other, and refuses what does not fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hyperparallel.compile import compile_model
from hyperparallel.composition import Composition, TensorKind
from hyperparallel.enums import Role
from hyperparallel.errors import CompilationError
from hyperparallel.execute import run_compiled
from hyperparallel.frontend.artifact import ArgumentInfo, ImportedModel, ResultInfo

Array = np.ndarray[Any, np.dtype[Any]]
WEIGHT = np.float32([[1.5, -2.0, 0.25], [0.5, 3.0, -1.0]])


def _product() -> ImportedModel:
    """y = x w, with x 4x2 and w 2x3."""
    return ImportedModel(
        "product",
        """
        func.func @main(%x: tensor<4x2xf32> {hp.name = "x", hp.role = "input"},
                        %w: tensor<2x3xf32> {hp.name = "w", hp.role = "parameter"})
            -> (tensor<4x3xf32> {hp.name = "y"}) {
          %y = call @body(%x, %w) {hp.path = "layer"} : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
          return %y : tensor<4x3xf32>
        }
        func.func private @body(%x: tensor<4x2xf32>, %w: tensor<2x3xf32>) -> tensor<4x3xf32> {
          %zero = arith.constant 0.0 : f32
          %empty = tensor.empty() : tensor<4x3xf32>
          %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x3xf32>) -> tensor<4x3xf32>
          %y = linalg.matmul ins(%x, %w : tensor<4x2xf32>, tensor<2x3xf32>) outs(%init : tensor<4x3xf32>)
              -> tensor<4x3xf32>
          return %y : tensor<4x3xf32>
        }""",
        (ArgumentInfo("x", Role.INPUT, (4, 2), "f32"), ArgumentInfo("w", Role.PARAMETER, (2, 3), "f32")),
        (ResultInfo("y", (4, 3), "f32"),),
        has_weights=True,
        _read_weight=lambda key: {"w": WEIGHT}[key],
    )


def _decay() -> ImportedModel:
    """The loss w + g, and w + w for the next step: a training program of the smallest kind."""
    return ImportedModel(
        "decay",
        """
        func.func @main(%g: tensor<2x3xf32> {hp.name = "g", hp.role = "input"},
                        %w: tensor<2x3xf32> {hp.name = "w", hp.role = "parameter"})
            -> (tensor<2x3xf32> {hp.name = "loss"}, tensor<2x3xf32> {hp.name = "w", hp.updates = "w"}) {
          %sum = arith.addf %g, %w : tensor<2x3xf32>
          %next = arith.addf %w, %w : tensor<2x3xf32>
          return %sum, %next : tensor<2x3xf32>, tensor<2x3xf32>
        }""",
        (ArgumentInfo("g", Role.INPUT, (2, 3), "f32"), ArgumentInfo("w", Role.PARAMETER, (2, 3), "f32")),
        (ResultInfo("loss", (2, 3), "f32"), ResultInfo("w", (2, 3), "f32", updates="w")),
        has_weights=True,
        _read_weight=lambda key: {"w": WEIGHT}[key],
    )


def _run(model: ImportedModel, inputs: dict[str, Array], folder: Path) -> dict[str, Array]:
    program = compile_model(model, "fsdp", "dp=2", folder / "program")
    values = {**inputs, **{a.name: model.weight(a.name) for a in model.arguments if a.role is not Role.INPUT}}
    return dict(run_compiled(program, values).results)


X = np.float32(np.arange(-3, 5)).reshape(4, 2)


def test_programs_feed_each_other_and_state_goes_from_call_to_call(tmp_path: Path) -> None:
    step = Composition("pair")
    actor, learner = step.program("actor", _product()), step.program("learner", _decay())
    x, g = step.input("x", actor.argument("x")), step.input("g", learner.argument("g"))
    step.result("first", actor(x=x)["y"])
    step.result("loss", learner(g=g)["loss"])
    step.result("again", learner(g=g)["loss"])
    actor.follow(learner)
    step.result("second", actor(x=x)["y"])
    model = step.build()
    assert [argument.name for argument in model.arguments] == ["x", "g", "actor.w", "learner.w"]
    assert [block.path for block in model.blocks] == ["actor", "learner", "learner", "actor"]
    assert model.mlir.count("func.func private @actor.body") == 1
    assert 'hp.path = "actor.layer"' in model.mlir
    g_value = np.float32(np.linspace(-1, 1, 6)).reshape(2, 3)
    results = _run(model, {"x": X, "g": g_value}, tmp_path)
    np.testing.assert_allclose(results["first"], X @ WEIGHT)
    np.testing.assert_allclose(results["loss"], g_value + WEIGHT)
    np.testing.assert_allclose(results["again"], g_value + 2 * WEIGHT)
    np.testing.assert_allclose(results["second"], X @ (4 * WEIGHT))
    np.testing.assert_allclose(results["actor.w"], 4 * WEIGHT)
    np.testing.assert_allclose(results["learner.w"], 4 * WEIGHT)
    assert 'hp.updates = "actor.w"' in model.mlir


def test_a_delayed_value_is_that_many_steps_old(tmp_path: Path) -> None:
    step = Composition("channel")
    actor = step.program("actor", _product())
    y = actor(x=step.input("x", actor.argument("x")))["y"]
    start = np.float32(np.arange(12)).reshape(4, 3)
    step.result("old", step.delayed("channel", y, start, steps=2))
    model = step.build()
    assert "hp.staleness = 2 : i64" in model.mlir
    state = {"channel": model.weight("channel"), "channel.1": model.weight("channel.1")}
    program = compile_model(model, "fsdp", "dp=2", tmp_path / "program")
    seen: list[Array] = []
    for turn in range(4):
        results = run_compiled(program, {"x": X + turn, "actor.w": WEIGHT, **state}).results
        seen.append(results["old"])
        state = {name: results[name] for name in state}
    for got, wanted in zip(seen, [start, start, X @ WEIGHT, (X + 1) @ WEIGHT], strict=True):
        np.testing.assert_allclose(got, wanted)


def test_a_built_program_can_be_saved_and_built_again(tmp_path: Path) -> None:
    step = Composition("one")
    actor = step.program("actor", _product())
    step.result("y", actor(x=step.input("x", actor.argument("x")))["y"])
    first, second = step.build(), step.build()
    assert first.mlir == second.mlir
    loaded = ImportedModel.load(first.save(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.weight("actor.w"), WEIGHT)


def _twice(step: Composition) -> None:
    step.program("actor", _product())
    step.program("actor", _product())


def _main(step: Composition) -> None:
    step.program("main", _product())


def _unknown(step: Composition) -> None:
    actor = step.program("actor", _product())
    actor(z=step.input("z", TensorKind((4, 2), "f32")))


def _missing(step: Composition) -> None:
    step.program("actor", _product())()


def _shape(step: Composition) -> None:
    actor = step.program("actor", _product())
    actor(x=step.input("x", TensorKind((2, 4), "f32")))


def _foreign(step: Composition) -> None:
    actor = step.program("actor", _product())
    actor(x=Composition("other").input("x", actor.argument("x")))


def _uncalled(step: Composition) -> None:
    step.program("actor", _product())
    step.build()


def _same_input(step: Composition) -> None:
    step.input("x", TensorKind((1,), "f32"))
    step.input("x", TensorKind((1,), "f32"))


def _no_delay(step: Composition) -> None:
    x = step.input("x", TensorKind((1,), "f32"))
    step.delayed("d", x, np.zeros(1, np.float32), steps=0)


def _other_initial(step: Composition) -> None:
    x = step.input("x", TensorKind((1,), "f32"))
    step.delayed("d", x, np.zeros(2, np.float32))


def _other_parameters(step: Composition) -> None:
    actor = step.program("actor", _product())
    actor.follow(step.program("empty", ImportedModel("empty", "func.func @main() { return }", (), ())))


def _early(step: Composition) -> None:
    actor = step.program("actor", _product())
    actor.follow(step.program("learner", _decay()), late=-1)


def _empty(step: Composition) -> None:
    step.input("x", TensorKind((1,), "f32"))
    step.build()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (_twice, "composition bad has two programs actor; give each a name of its own"),
        (_main, "expected a word other than main as the name of a program but got 'main'"),
        (_unknown, "program actor has no input 'z'; expected x"),
        (_missing, "program actor needs a value for its input x"),
        (_shape, r"program actor takes x as f32\[4, 2\] but x is f32\[2, 4\]; import the program with inputs of that"),
        (_foreign, "x, given as x of actor, belongs to another composition"),
        (_uncalled, "program actor of composition bad is never called"),
        (_same_input, "composition bad has two arguments x; rename one"),
        (_no_delay, "channel d: expected a delay of one step or more but got 0"),
        (_other_initial, r"channel d: expected an initial value of f32\[1\] but got float32\[2\]"),
        (_other_parameters, "actor cannot follow empty, which has no w"),
        (_early, "actor cannot follow learner -1 steps late; expected 0 or more"),
        (_empty, r"composition bad has no result; name one with result\(\)"),
    ],
)
def test_what_does_not_fit_is_refused(wrong: Callable[[Composition], None], message: str) -> None:
    with pytest.raises(CompilationError, match=message):
        wrong(Composition("bad"))
