# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reinforcement learning of a small language model in plain PyTorch: actor, reward, reference and learner, one after the other.

An iteration: the actor continues prompts by sampling (Gumbel noise is an input, so that a run can be repeated), a reward
model scores the sequences, the frozen reference says how likely it would have been to write them, and the learner takes
one policy-gradient step with a penalty for leaving the reference. Then the actor gets the learner's weights.

``rl.py`` gives each of the four a device group of its own.
"""

import dataclasses

import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel, GPT2Model

from hyperparallel.frontend.weights import randomize


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Sizes of the models, and of a batch."""

    layers: int = 2
    width: int = 64
    heads: int = 4
    vocab: int = 128
    prompt: int = 8
    generate: int = 4
    batch: int = 8


def gpt2_config(sizes: Sizes) -> GPT2Config:
    return GPT2Config(
        n_layer=sizes.layers,
        n_embd=sizes.width,
        n_head=sizes.heads,
        vocab_size=sizes.vocab,
        n_positions=sizes.prompt + sizes.generate,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
        attn_implementation="eager",
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )


class Actor(nn.Module):
    """Continues prompts by sampling."""

    def __init__(self, policy: nn.Module, sizes: Sizes):
        super().__init__()
        self.policy, self.sizes = policy, sizes

    def forward(self, prompts, noise):
        """Whole sequences, for prompts [batch, prompt] and noise [batch, generate, vocab]."""
        batch, start = prompts.shape
        tokens = torch.cat([prompts, torch.zeros(batch, self.sizes.generate, dtype=torch.int64)], dim=1)
        positions = torch.arange(start + self.sizes.generate)
        for index in range(self.sizes.generate):
            scores = self.policy(tokens).logits[:, start + index - 1] + noise[:, index]
            tokens = torch.where(positions == start + index, scores.argmax(-1, keepdim=True), tokens)
        return {"tokens": tokens}


class Reward(nn.Module):
    """Scores sequences."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        self.transformer = GPT2Model(gpt2_config(sizes))
        self.score = nn.Linear(sizes.width, 1)

    def forward(self, tokens):
        """A number for each sequence."""
        return {"rewards": self.score(self.transformer(tokens).last_hidden_state.mean(1)).squeeze(-1)}


class Likelihood(nn.Module):
    """How likely a policy is to write what was written: the reference, and the learner's model."""

    def __init__(self, policy: nn.Module, sizes: Sizes):
        super().__init__()
        self.policy, self.sizes = policy, sizes

    def forward(self, tokens):
        """The logarithm of the probability of each generated token, [batch, generate]."""
        logits = self.policy(tokens).logits[:, self.sizes.prompt - 1 : -1]
        written = tokens[:, self.sizes.prompt :]
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), written.flatten(), reduction="none")
        return {"likelihood": -loss.view(written.shape)}


def policy_loss(output, rewards, reference):
    """Policy gradient with rewards relative to their mean, the penalty exp(r) - r - 1 for r = reference - own, entropy."""
    likelihood = output["likelihood"]
    advantage = rewards - rewards.mean()
    apart = reference - likelihood
    gained = (advantage[:, None] * likelihood).mean()
    return -gained + 0.1 * (apart.exp() - apart - 1).mean() + 0.01 * likelihood.mean()


def make_models(sizes: Sizes, seed: int):
    """Actor, reward, reference and learner; the first and the last two start from the same weights."""
    torch.manual_seed(seed)
    actor, reference, learner = (randomize(GPT2LMHeadModel(gpt2_config(sizes)).eval(), seed=seed + 1) for _ in range(3))
    reward = randomize(Reward(sizes).eval(), seed=seed + 2)
    return Actor(actor, sizes), reward, Likelihood(reference, sizes), Likelihood(learner, sizes)


def make_inputs(sizes: Sizes, seed: int):
    """Prompts and noise; every iteration takes the same."""
    generator = torch.Generator().manual_seed(seed)
    prompts = torch.randint(sizes.vocab, (sizes.batch, sizes.prompt), generator=generator)
    uniform = torch.rand(sizes.batch, sizes.generate, sizes.vocab, generator=generator).clamp(1e-6, 1 - 1e-6)
    return prompts, -(-uniform.log()).log()


def train(iterations: int, sizes: Sizes = Sizes(), lr: float = 1e-3, seed: int = 0):
    """The loss of every iteration, the mean rewards, and the learner's parameters after the last."""
    actor, reward, reference, learner = make_models(sizes, seed)
    prompts, noise = make_inputs(sizes, seed)
    optimizer = torch.optim.Adam(learner.parameters(), lr=lr, eps=1e-5)
    losses, rewards = [], []
    for _ in range(iterations):
        with torch.no_grad():
            tokens = actor(prompts, noise)["tokens"]
            scores = reward(tokens)["rewards"]
            known = reference(tokens)["likelihood"]
        loss = policy_loss(learner(tokens), scores, known)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        actor.policy.load_state_dict(learner.policy.state_dict())
        losses.append(loss.item())
        rewards.append(scores.mean().item())
    return losses, rewards, {name: value.detach() for name, value in learner.named_parameters()}


if __name__ == "__main__":
    for number, (loss, mean) in enumerate(zip(*train(3)[:2], strict=True)):
        print(f"iteration {number}: loss {loss:.6f}, mean reward {mean:.6f}")
