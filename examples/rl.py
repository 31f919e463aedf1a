# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reinforcement learning of rl_torch.py as one program of four parts: actor, reward, reference, learner."""

import rl_torch
import torch

from hyperparallel.composition import Composition
from hyperparallel.frontend.composed import Composed
from hyperparallel.frontend.torch import import_model
from hyperparallel.frontend.training import import_training
from hyperparallel.frontend.training_step import Training
from hyperparallel.frontend.worker_process import worker_session


def build(
    *,
    layers: int = 2,
    width: int = 64,
    heads: int = 4,
    vocab: int = 128,
    prompt: int = 8,
    generate: int = 4,
    batch: int = 8,
    lr: float = 1e-3,
    seed: int = 0,
):
    sizes = rl_torch.Sizes(layers, width, heads, vocab, prompt, generate, batch)
    actor, reward, reference, learner = rl_torch.make_models(sizes, seed)
    prompts, noise = rl_torch.make_inputs(sizes, seed)
    tokens = torch.zeros(batch, prompt + generate, dtype=torch.int64)
    training = Training(
        loss=rl_torch.policy_loss,
        optimizer=torch.optim.Adam(learner.parameters(), lr=lr, eps=1e-5),
        targets={"rewards": torch.zeros(batch), "reference": torch.zeros(batch, generate)},
    )
    step = Composition("rl")
    with worker_session():
        act = step.program("actor", import_model(actor, (prompts, noise)))
        score = step.program("reward", import_model(reward, (tokens,)))
        know = step.program("reference", import_model(reference, (tokens,)))
        learn = step.program("learner", import_training(learner, (tokens,), training=training))

    written = act(
        prompts=step.input("prompts", act.argument("prompts")), noise=step.input("noise", act.argument("noise"))
    )["tokens"]
    rewards = score(tokens=written)["rewards"]
    likelihood = know(tokens=written)["likelihood"]
    step.result("loss", learn(tokens=written, rewards=rewards, reference=likelihood)["loss"])
    act.follow(learn)

    def in_torch(steps: int):
        losses, _, parameters = rl_torch.train(steps, sizes, lr, seed)
        return {"losses": torch.tensor(losses), **{f"learner.{name}": value for name, value in parameters.items()}}

    return Composed(step.build(), {"prompts": prompts.numpy(), "noise": noise.numpy()}, in_torch)
