// The presets on a Llama forward (Inputs/llama: two layers, imported from transformers) place the collectives that a
// person would: Megatron two all-reduces a layer and one for the split vocabulary; FSDP all-gathers of weights only.

// RUN: %python -m hyperparallel.cli.main plan %S/Inputs/llama --preset megatron --mesh dp=2,tp=2 --resolved -q > %t.json
// RUN: hp-opt %S/Inputs/llama/model.mlir --pass-pipeline='builtin.module(hp-normalize,hypershard-apply-plan{plan=@%t.json},hp-shard)' 2>&1 | FileCheck %s --check-prefix=MEGATRON

// MEGATRON-LABEL: func.func private @LlamaDecoderLayer
// MEGATRON-COUNT-2: = hypershard.all_reduce {{.*}} over @mesh {"tp"}
// MEGATRON-NOT:     = hypershard.
// MEGATRON-LABEL: func.func @main
// MEGATRON:         = hypershard.all_reduce {{.*}} over @mesh {"tp"}
// MEGATRON-NOT:     = hypershard.{{(all_|reduce_|permute|halo)}}

// RUN: %python -m hyperparallel.cli.main plan %S/Inputs/llama --preset fsdp --mesh dp=4 --resolved -q > %t.json
// RUN: hp-opt %S/Inputs/llama/model.mlir --pass-pipeline='builtin.module(hp-normalize,hypershard-apply-plan{plan=@%t.json},hp-shard)' 2>&1 | FileCheck %s --check-prefix=FSDP

// A layer has nine weights, each gathered where it is used; the embedding, the last norm and the head follow in main.
// FSDP-LABEL: func.func private @LlamaDecoderLayer
// FSDP-NOT:     = hypershard.{{(all_reduce|all_to_all|reduce_|permute|halo)}}
// FSDP-COUNT-9: = hypershard.all_gather %arg{{[0-9]+}} over @mesh {"dp"}
// FSDP-NOT:     = hypershard.
// FSDP-LABEL: func.func @main
// FSDP-COUNT-3: = hypershard.all_gather %arg{{[0-9]+}} over @mesh {"dp"}
// FSDP-NOT:     = hypershard.{{(all_|reduce_|permute|halo)}}
