# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The batch over four devices, parameters and optimizer state split over them."""

import harness
import torch

# parallel: imports
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

# end


def train(rank: int, world: int) -> list[float] | None:
    model = harness.make_model()
    # parallel: processes, batch, model
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (world,), mesh_dim_names=("dp",))
    tokens, target = (part.chunk(mesh.size())[mesh.get_local_rank()] for part in harness.make_batch())
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    # end
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses: list[float] = []
    for _ in range(harness.STEPS):
        loss = harness.loss_of(model(tokens).logits, target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        # parallel: the loss of the whole batch
        loss = loss.detach()
        dist.all_reduce(loss, group=mesh.get_group())
        losses.append((loss / mesh.size()).item())
        # end
    return losses if rank == 0 else None
