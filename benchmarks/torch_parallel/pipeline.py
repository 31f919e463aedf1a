# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Four stages, 1F1B over four microbatches."""

import harness
import torch

# parallel: imports
import torch.distributed as dist
from stages import Stage
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

# end


def train(rank: int, world: int) -> list[float] | None:
    tokens, target = harness.make_batch()
    model = harness.make_model()
    # parallel: processes, model, schedule
    dist.init_process_group("gloo")
    layers = len(model.model.layers)
    bounds = [layers * index // world for index in range(world + 1)]
    model = Stage(model, bounds[rank], bounds[rank + 1], rank, world)
    stage = PipelineStage(model, rank, world, torch.device("cpu"))
    schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=harness.loss_of)
    # end
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses: list[float] = []
    for _ in range(harness.STEPS):
        # parallel: a step
        parts: list[torch.Tensor] = []
        if rank == 0:
            schedule.step(tokens)
        elif rank == world - 1:
            schedule.step(target=target, losses=parts)
        else:
            schedule.step()
        # end
        optimizer.step()
        optimizer.zero_grad()
        # parallel: the loss is known to the last stage
        losses.append(sum(part.item() for part in parts) / 4)
        # end
    return losses if rank == world - 1 else None
