# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two stages of two devices each: 1F1B between them, the batch, parameters and optimizer state split within."""

import harness
import torch

# parallel: imports
import torch.distributed as dist
from stages import Stage
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

# end


def train(rank: int, world: int) -> list[float] | None:
    tokens, target = harness.make_batch()
    model = harness.make_model()
    # parallel: processes, batch, model, schedule
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (2, world // 2), mesh_dim_names=("pp", "dp"))
    index, stages = mesh["pp"].get_local_rank(), mesh["pp"].size()
    data = mesh["dp"]
    tokens, target = (part.chunk(data.size())[data.get_local_rank()] for part in (tokens, target))
    layers = len(model.model.layers)
    bounds = [layers * number // stages for number in range(stages + 1)]
    model = Stage(model, bounds[index], bounds[index + 1], index, stages)
    for layer in model.layers:
        fully_shard(layer, mesh=data)
    fully_shard(model, mesh=data)
    stage = PipelineStage(model, index, stages, torch.device("cpu"), group=mesh["pp"].get_group())
    schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=harness.loss_of)
    # end
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses: list[float] = []
    for _ in range(harness.STEPS):
        # parallel: a step
        parts: list[torch.Tensor] = []
        if index == 0:
            schedule.step(tokens)
        else:
            schedule.step(target=target, losses=parts)
        # end
        optimizer.step()
        optimizer.zero_grad()
        # parallel: the loss of the whole batch is known to the last stage
        loss = torch.tensor(sum(part.item() for part in parts) / 4)
        dist.all_reduce(loss, group=data.get_group())
        losses.append((loss / data.size()).item())
        # end
    return losses if rank == world - 1 else None
