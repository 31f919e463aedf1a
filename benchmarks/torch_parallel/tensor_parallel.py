# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Megatron's tensor parallelism over four devices."""

import harness
import torch

# parallel: imports
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

# end


def train(rank: int, world: int) -> list[float] | None:
    tokens, target = harness.make_batch()
    model = harness.make_model()
    # parallel: processes, model
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (world,), mesh_dim_names=("tp",))
    parallelize_module(
        model,
        mesh,
        {
            "model.embed_tokens": RowwiseParallel(input_layouts=Replicate()),
            "lm_head": ColwiseParallel(output_layouts=Replicate()),
        },
    )
    for layer in model.model.layers:
        parallelize_module(
            layer,
            mesh,
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
    # end
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, foreach=False)
    losses: list[float] = []
    for _ in range(harness.STEPS):
        loss = harness.loss_of(model(tokens).logits, target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses if rank == 0 else None
