# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two stages of two devices each: 1F1B between them, tensor parallelism within."""

import harness
import torch

# parallel: imports
import torch.distributed as dist
from stages import Stage
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

# end


def train(rank: int, world: int) -> list[float] | None:
    tokens, target = harness.make_batch()
    model = harness.make_model()
    # parallel: processes, model, schedule
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (2, world // 2), mesh_dim_names=("pp", "tp"))
    index, stages = mesh["pp"].get_local_rank(), mesh["pp"].size()
    layers = len(model.model.layers)
    bounds = [layers * number // stages for number in range(stages + 1)]
    model = Stage(model, bounds[index], bounds[index + 1], index, stages)
    if model.embed_tokens is not None:
        parallelize_module(model, mesh["tp"], {"embed_tokens": RowwiseParallel(input_layouts=Replicate())})
    if model.lm_head is not None:
        parallelize_module(model, mesh["tp"], {"lm_head": ColwiseParallel(output_layouts=Replicate())})
    for layer in model.layers:
        parallelize_module(
            layer,
            mesh["tp"],
            {
                "self_attn.q_proj": ColwiseParallel(),
                "self_attn.k_proj": ColwiseParallel(),
                "self_attn.v_proj": ColwiseParallel(),
                "self_attn.o_proj": RowwiseParallel(),
                "mlp.gate_proj": ColwiseParallel(),
                "mlp.up_proj": ColwiseParallel(),
                "mlp.down_proj": RowwiseParallel(),
            },
        )
    stage = PipelineStage(model, index, stages, torch.device("cpu"), group=mesh["pp"].get_group())
    schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=harness.loss_of)
    # end
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, foreach=False)
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
        # parallel: the loss is known to the last stage
        losses.append(sum(part.item() for part in parts) / 4)
        # end
    return losses if rank == world - 1 else None
