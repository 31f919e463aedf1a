# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the pipeline scripts share: a stage of the Llama as a module. All of it is counted in each of them."""

# parallel: a stage
import torch
from torch import nn


class Stage(nn.Module):
    """Some layers, with the embedding before the first and the head after the last."""

    def __init__(self, model: nn.Module, first: int, last: int, stage: int, stages: int) -> None:
        super().__init__()
        inner = model.model
        self.embed_tokens = inner.embed_tokens if stage == 0 else None
        self.layers = nn.ModuleList(inner.layers[first:last])
        self.rotary_emb = inner.rotary_emb
        self.norm = inner.norm if stage == stages - 1 else None
        self.lm_head = model.lm_head if stage == stages - 1 else None

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits, or what the next stage takes."""
        if self.embed_tokens is not None:
            hidden = self.embed_tokens(hidden)
        length = hidden.shape[1]
        positions = torch.arange(length).unsqueeze(0)
        mask = torch.full((1, 1, length, length), float("-inf")).triu(1)
        angles = self.rotary_emb(hidden, positions)
        for layer in self.layers:
            hidden = layer(hidden, attention_mask=mask, position_ids=positions, position_embeddings=angles)
        if self.norm is not None and self.lm_head is not None:
            hidden = self.lm_head(self.norm(hidden))
        return hidden


# end
