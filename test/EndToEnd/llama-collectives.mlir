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

// A layer has nine weights, each gathered once by its caller, beside what the layer before computes; the embedding, the
// last norm and the head are gathered in main, too.
// FSDP-LABEL: func.func private @LlamaDecoderLayer
// FSDP-NOT:     = hypershard.
// FSDP-LABEL: func.func @main
// FSDP-NOT:     = hypershard.{{(all_reduce|all_to_all|reduce_|permute|halo)}}
// FSDP:         = hypershard.all_gather %arg{{[0-9]+}} over @mesh {"dp"}
// FSDP-COUNT-9: = hypershard.all_gather %arg{{[0-9]+}} over @mesh {"dp"} dim 0 {hp.path = "model.layers.0"}
// FSDP-COUNT-9: = hypershard.all_gather %arg{{[0-9]+}} over @mesh {"dp"} dim 0 {hp.path = "model.layers.1"}
// FSDP:         call @LlamaDecoderLayer({{.*}}hp.path = "model.layers.0"
// FSDP:         = hypershard.all_gather %arg{{[0-9]+}} over @mesh {"dp"}
// FSDP:         call @LlamaDecoderLayer({{.*}}hp.path = "model.layers.1"
// FSDP:         = hypershard.all_gather %arg{{[0-9]+}} over @mesh {"dp"}
// FSDP-NOT:     = hypershard.{{(all_|reduce_|permute|halo)}}
