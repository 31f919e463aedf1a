# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several programs wired into one, each on devices of its own: a loop of actor, reference, reward and learner gives what
the same loop gives in PyTorch, and its weights go to the actor once a step.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hyperparallel.compile import compile_model
from hyperparallel.composition import Composition
from hyperparallel.enums import Role
from hyperparallel.execute import run_compiled
from hyperparallel.frontend.artifact import ArgumentInfo, ImportedModel, ResultInfo
from hyperparallel.plan import Plan
from hyperparallel.simulator import simulate_file

torch = pytest.importorskip("torch")

Array = np.ndarray[Any, np.dtype[Any]]
RATE = 0.125
STEPS = 3
GENERATOR = np.random.default_rng(3)
PROMPTS = GENERATOR.normal(size=(4, 2)).astype(np.float32)
POLICY = GENERATOR.normal(size=(2, 3)).astype(np.float32)
FROZEN = GENERATOR.normal(size=(2, 3)).astype(np.float32)


def product(weight: Array) -> ImportedModel:
    """y = x w."""
    return ImportedModel(
        "product",
        """
        func.func @main(%x: tensor<4x2xf32> {hp.name = "x", hp.role = "input"},
                        %w: tensor<2x3xf32> {hp.name = "w", hp.role = "parameter"})
            -> (tensor<4x3xf32> {hp.name = "y"}) {
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
        _read_weight=lambda key: {"w": weight}[key],
    )


def difference() -> ImportedModel:
    """r = y - z."""
    return ImportedModel(
        "difference",
        """
        func.func @main(%y: tensor<4x3xf32> {hp.name = "y", hp.role = "input"},
                        %z: tensor<4x3xf32> {hp.name = "z", hp.role = "input"}) -> (tensor<4x3xf32> {hp.name = "r"}) {
          %r = arith.subf %y, %z : tensor<4x3xf32>
          return %r : tensor<4x3xf32>
        }""",
        (ArgumentInfo("y", Role.INPUT, (4, 3), "f32"), ArgumentInfo("z", Role.INPUT, (4, 3), "f32")),
        (ResultInfo("r", (4, 3), "f32"),),
    )


def descent() -> ImportedModel:
    """The loss r r by element, and w - rate x^T r for the next step."""
    return ImportedModel(
        "descent",
        f"""
        func.func @main(%x: tensor<4x2xf32> {{hp.name = "x", hp.role = "input"}},
                        %r: tensor<4x3xf32> {{hp.name = "r", hp.role = "input"}},
                        %w: tensor<2x3xf32> {{hp.name = "w", hp.role = "parameter"}})
            -> (tensor<4x3xf32> {{hp.name = "loss"}}, tensor<2x3xf32> {{hp.name = "w", hp.updates = "w"}}) {{
          %loss = arith.mulf %r, %r : tensor<4x3xf32>
          %zero = arith.constant 0.0 : f32
          %rate = arith.constant dense<{RATE}> : tensor<2x3xf32>
          %turned = tensor.empty() : tensor<2x4xf32>
          %t = linalg.transpose ins(%x : tensor<4x2xf32>) outs(%turned : tensor<2x4xf32>) permutation = [1, 0]
          %empty = tensor.empty() : tensor<2x3xf32>
          %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x3xf32>) -> tensor<2x3xf32>
          %g = linalg.matmul ins(%t, %r : tensor<2x4xf32>, tensor<4x3xf32>) outs(%init : tensor<2x3xf32>)
              -> tensor<2x3xf32>
          %step = arith.mulf %g, %rate : tensor<2x3xf32>
          %next = arith.subf %w, %step : tensor<2x3xf32>
          return %loss, %next : tensor<4x3xf32>, tensor<2x3xf32>
        }}""",
        (
            ArgumentInfo("x", Role.INPUT, (4, 2), "f32"),
            ArgumentInfo("r", Role.INPUT, (4, 3), "f32"),
            ArgumentInfo("w", Role.PARAMETER, (2, 3), "f32"),
        ),
        (ResultInfo("loss", (4, 3), "f32"), ResultInfo("w", (2, 3), "f32", updates="w")),
        has_weights=True,
        _read_weight=lambda key: {"w": POLICY}[key],
    )


def test_a_loop_of_four_groups(tmp_path: Path) -> None:
    step = Composition("loop")
    actor, reference = step.program("actor", product(POLICY)), step.program("reference", product(FROZEN))
    reward, learner = step.program("reward", difference()), step.program("learner", descent())
    x = step.input("prompts", actor.argument("x"))
    r = reward(y=actor(x=x)["y"], z=reference(x=x)["y"])["r"]
    step.result("loss", learner(x=x, r=r)["loss"])
    actor.follow(learner)
    model = step.build()
    plan = Plan(
        groups={"acting": "tp=1", "judging": "tp=1", "rewarding": "tp=1", "learning": "dp=2"},
        stages={"acting": "actor", "judging": "reference", "rewarding": "reward", "learning": "learner"},
        preset="data_parallel",
    )
    program = compile_model(model, plan, None, tmp_path / "program")
    homes = {argument.name: one.group for one in program.programs for argument in one.arguments}
    assert homes["reference.w"] == "judging"
    assert homes["learner.w"] == "learning"
    values = {a.name: model.weight(a.name) for a in model.arguments if a.role is not Role.INPUT}
    run = run_compiled(program, {"prompts": PROMPTS, **values}, repeat=STEPS)

    prompts, frozen = torch.tensor(PROMPTS), torch.tensor(FROZEN)
    policy = torch.tensor(POLICY, requires_grad=True)
    optimizer = torch.optim.SGD([policy], lr=RATE)
    error = prompts @ policy - prompts @ frozen
    for turn in range(STEPS):
        if turn > 0:
            error = prompts @ policy - prompts @ frozen
        optimizer.zero_grad()
        (error * error).sum().mul(0.5).backward()
        optimizer.step()
    np.testing.assert_allclose(run.results["loss"], (error * error).detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(run.results["learner.w"], policy.detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(run.results["actor.w"], policy.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("late", [0, 1, 2])
def test_an_actor_that_lags_behind_its_learner(late: int, tmp_path: Path) -> None:
    """The actor samples with weights of ``late`` steps ago, on a group of its own, and does not wait for the learner."""
    step = Composition("lagging")
    actor, learner = step.program("actor", product(POLICY)), step.program("learner", descent())
    x = step.input("prompts", actor.argument("x"))
    made = actor(x=x)["y"]
    # What is learned from is what was made in the step before.
    seen = step.delayed("samples", made, np.zeros((4, 3), np.float32), steps=max(late, 1))
    step.result("loss", learner(x=x, r=seen)["loss"])
    actor.follow(learner, late=late)
    model = step.build()
    assert [f"hp.staleness = {age} : i64" in model.mlir for age in (1, 2)] == [True, late == 2]
    plan = Plan(groups={"a": "dp=1", "b": "dp=2"}, stages={"a": "actor", "b": "learner"}, preset="data_parallel")
    program = compile_model(model, plan, None, tmp_path / "program")
    values = {a.name: model.weight(a.name) for a in model.arguments if a.role is not Role.INPUT}
    run = run_compiled(program, {"prompts": PROMPTS, **values}, repeat=5)

    acting, weights = [POLICY] * (late + 1), POLICY
    queue = [np.zeros((4, 3), np.float32)] * max(late, 1)
    losses = np.zeros(0)
    for _ in range(5):
        queue.append(PROMPTS @ acting[0])
        error = queue.pop(0)
        losses = error * error
        weights = weights - np.float32(RATE) * PROMPTS.T @ error
        acting = [*acting[1:], weights]
    np.testing.assert_allclose(run.results["loss"], losses, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(run.results["learner.w"], weights, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(run.results["actor.w"], acting[0], rtol=1e-5, atol=1e-6)


def test_who_takes_what_is_old_waits_for_nobody(tmp_path: Path) -> None:
    """With samples and weights of the step before, both groups work at once."""
    seconds: list[float] = []
    for late in (0, 1):
        step = Composition("both")
        actor, learner = step.program("actor", product(POLICY)), step.program("learner", descent())
        x = step.input("prompts", actor.argument("x"))
        made = actor(x=x)["y"]
        if late:
            made = step.delayed("samples", made, np.zeros((4, 3), np.float32), steps=late)
        step.result("loss", learner(x=x, r=made)["loss"])
        actor.follow(learner, late=late)
        plan = Plan(groups={"a": "dp=1", "b": "dp=1"}, stages={"a": "actor", "b": "learner"})
        compile_model(step.build(), plan, None, tmp_path / f"{late}", target="none", machine="h200-node")
        seconds.append(simulate_file(tmp_path / f"{late}").seconds)
    assert seconds[1] < 0.7 * seconds[0], seconds
