# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A Mixtral over four devices: each has its own experts and a part of the batch, and tokens go where their experts are."""

import harness
import torch

# parallel: imports
import torch.distributed as dist
from torch.distributed._functional_collectives import all_to_all_single_autograd
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

# end

make_model = harness.make_model_of_experts


# parallel: experts on devices of their own
def spread_experts(model: torch.nn.Module, mesh: DeviceMesh) -> list[torch.nn.Parameter]:
    """Leave each device its own experts, and send tokens to them; returns the parameters of experts."""
    size, group = mesh.size(), mesh.get_group()
    own: list[torch.nn.Parameter] = []
    for layer in model.model.layers:
        experts = layer.mlp.experts
        for name in ("gate_up_proj", "down_proj"):
            part = getattr(experts, name).detach().chunk(size)[mesh.get_local_rank()]
            setattr(experts, name, torch.nn.Parameter(part.clone()))
            own.append(getattr(experts, name))

    def forward(self, hidden, chosen, weights):
        local = self.gate_up_proj.shape[0]
        order = chosen.flatten().argsort(stable=True)
        token = order // chosen.shape[1]
        counts = torch.bincount(chosen.flatten(), minlength=size * local)
        arriving = torch.empty_like(counts)
        dist.all_to_all_single(arriving, counts, group=group)
        sent, received = (each.view(size, local).sum(1).tolist() for each in (counts, arriving))
        rows = all_to_all_single_autograd(hidden[token], received, sent, group)
        expert = torch.arange(local).repeat(size).repeat_interleave(arriving)
        made = torch.zeros_like(rows)
        for number in range(local):
            mine = (expert == number).nonzero().flatten()
            wide = torch.nn.functional.linear(rows[mine], self.gate_up_proj[number])
            narrow = torch.nn.functional.linear(self._apply_gate(wide), self.down_proj[number])
            made = made.index_copy(0, mine, narrow)
        back = all_to_all_single_autograd(made, sent, received, group)
        return torch.zeros_like(hidden).index_add(0, token, back * weights.flatten()[order].unsqueeze(1))

    ALL_EXPERTS_FUNCTIONS.register("spread", forward)
    model.config._experts_implementation = "spread"
    return own


# end


def train(rank: int, world: int) -> list[float] | None:
    model = make_model()
    # parallel: processes, batch, model
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (world,), mesh_dim_names=("ep",))
    tokens, target = (part.chunk(mesh.size())[mesh.get_local_rank()] for part in harness.make_batch())
    own = {id(parameter) for parameter in spread_experts(model, mesh)}
    # end
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, eps=1e-5)
    losses: list[float] = []
    for _ in range(harness.STEPS):
        loss = harness.loss_of(model(tokens).logits, target)
        loss.backward()
        # parallel: gradients; those of experts come from all tokens as it is
        for parameter in model.parameters():
            if id(parameter) not in own:
                dist.all_reduce(parameter.grad, group=mesh.get_group())
            parameter.grad /= mesh.size()
        # end
        optimizer.step()
        optimizer.zero_grad()
        # parallel: the loss of the whole batch
        loss = loss.detach()
        dist.all_reduce(loss, group=mesh.get_group())
        losses.append((loss / mesh.size()).item())
        # end
    return losses if rank == 0 else None
