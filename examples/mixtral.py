# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small Mixtral: 2 layers at width 64 with 4 experts, of which each token has 2; random weights.

With ``experts="dense"`` every expert computes every token, and the router's weights (zero for most) choose: what is
split over devices by experts is then a plain product. ``"batched_mm"`` is that of transformers, which gathers the
weights of each token's experts.
"""

import torch
from transformers import MixtralConfig, MixtralForCausalLM
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

from hyperparallel.frontend.weights import randomize


def dense_experts(self, hidden_states, top_k_index, top_k_weights):
    """All experts on all tokens; a sum with the weight of each expert for each token."""
    number = torch.arange(self.num_experts)
    weights = torch.where(top_k_index.unsqueeze(-1) == number, top_k_weights.unsqueeze(-1), 0.0).sum(1)
    wide = torch.einsum("nh,efh->enf", hidden_states, self.gate_up_proj)
    narrow = torch.einsum("enf,ehf->enh", self._apply_gate(wide), self.down_proj)
    return torch.einsum("enh,ne->nh", narrow, weights.to(narrow.dtype)).to(hidden_states.dtype)


ALL_EXPERTS_FUNCTIONS.register("dense", dense_experts)


def build(
    *,
    layers: int = 2,
    width: int = 64,
    ff: int = 96,
    heads: int = 8,
    kv_heads: int = 4,
    num_experts: int = 4,
    per_token: int = 2,
    vocab: int = 256,
    batch: int = 4,
    seq: int = 16,
    experts: str = "dense",
    seed: int = 0,
):
    torch.manual_seed(seed)
    config = MixtralConfig(
        num_hidden_layers=layers,
        hidden_size=width,
        intermediate_size=ff,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        num_local_experts=num_experts,
        num_experts_per_tok=per_token,
        vocab_size=vocab,
        max_position_embeddings=max(seq, 512),
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
        output_router_logits=False,
        attn_implementation="eager",
        experts_implementation=experts,
    )
    model = randomize(MixtralForCausalLM(config).eval(), seed=seed)
    return model, (torch.randint(vocab, (batch, seq)),)
