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

// A layer has nine weights, gathered by its caller, beside what the layer before computes, in one message: 43,136
// elements of the second layer's, and with the embedding's 524,288 the first's. The last norm and the head follow.
// FSDP-LABEL: func.func private @LlamaDecoderLayer
// FSDP-NOT:     = hypershard.
// FSDP-LABEL: func.func @main
// FSDP-NOT:     = hypershard.{{(all_|reduce_|permute|halo)}}
// FSDP:         = hypershard.all_gather {{.*}} over @mesh {"dp"} dim 0 : tensor<141856xf32> -> tensor<567424xf32>
// FSDP-NOT:     = hypershard.{{(all_|reduce_|permute|halo)}}
// FSDP:         = hypershard.all_gather {{.*}} over @mesh {"dp"} dim 0 {hp.path = "model.layers.1"} : tensor<10784xf32> -> tensor<43136xf32>
// FSDP-NOT:     = hypershard.{{(all_|reduce_|permute|halo)}}
// FSDP:         call @LlamaDecoderLayer({{.*}}hp.path = "model.layers.0"
// FSDP-NEXT:    = hypershard.all_gather %arg20 over @mesh {"dp"} dim 0 : tensor<16xf32> -> tensor<64xf32>
// FSDP-NOT:     = hypershard.{{(all_|reduce_|permute|halo)}}
// FSDP:         call @LlamaDecoderLayer({{.*}}hp.path = "model.layers.1"
// FSDP-NOT:     = hypershard.{{(all_|reduce_|permute|halo)}}
// FSDP:         = hypershard.all_gather %arg21 over @mesh {"dp"} dim 0 : tensor<2048x64xf32> -> tensor<8192x64xf32>
// FSDP-NOT:     = hypershard.{{(all_|reduce_|permute|halo)}}
