// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every op survives text and bytecode, in global and in local form.
// RUN: hp-opt %s | hp-opt | FileCheck %s
// RUN: hp-opt --emit-bytecode %s | hp-opt | FileCheck %s
// RUN: hp-opt --mlir-print-op-generic %s | hp-opt | FileCheck %s

hypershard.mesh @m = <["dp"=2, "tp"=4]>

// CHECK-LABEL: func.func @annotations
func.func @annotations(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // CHECK: %[[C:.*]] = hypershard.constraint %{{.*}} <@m, [{"dp"}, {?}]> : tensor<8x4xf32>
  %0 = hypershard.constraint %x <@m, [{"dp"}, {?}]> : tensor<8x4xf32>
  // CHECK: %[[B:.*]] = hypershard.barrier %[[C]] allow none : tensor<8x4xf32>
  %1 = hypershard.barrier %0 allow none : tensor<8x4xf32>
  // CHECK: hypershard.barrier %[[B]] allow forward : tensor<8x4xf32>
  %2 = hypershard.barrier %1 allow forward : tensor<8x4xf32>
  // CHECK: hypershard.barrier %{{.*}} allow backward : tensor<8x4xf32>
  %3 = hypershard.barrier %2 allow backward : tensor<8x4xf32>
  // CHECK: hypershard.reshard %{{.*}} <@m, [{}, {"tp"}]> : tensor<8x4xf32>
  %4 = hypershard.reshard %3 <@m, [{}, {"tp"}]> : tensor<8x4xf32>
  return %4 : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @manual
func.func @manual(%x: tensor<8x4xf32>) -> tensor<8xf32> {
  // CHECK: hypershard.manual(%{{.*}}) in [#hypershard.sharding<@m, [{"dp"}, {"tp"}]>] out [#hypershard.sharding<@m, [{"dp"}]>] {
  // CHECK: ^bb0(%[[X:.*]]: tensor<4x1xf32>):
  // CHECK: %[[R:.*]] = hypershard.all_reduce %[[X]] over @m {"tp"} <sum> : tensor<4x1xf32> -> tensor<4x1xf32>
  // CHECK: hypershard.return %{{.*}} : tensor<4xf32>
  // CHECK: } : (tensor<8x4xf32>) -> tensor<8xf32>
  %0 = hypershard.manual(%x) in [#hypershard.sharding<@m, [{"dp"}, {"tp"}]>] out [#hypershard.sharding<@m, [{"dp"}]>] {
  ^bb0(%local: tensor<4x1xf32>):
    %1 = hypershard.all_reduce %local over @m {"tp"} <sum> : tensor<4x1xf32> -> tensor<4x1xf32>
    %2 = tensor.collapse_shape %1 [[0, 1]] : tensor<4x1xf32> into tensor<4xf32>
    hypershard.return %2 : tensor<4xf32>
  } : (tensor<8x4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @local_form
func.func @local_form(%x: tensor<8x4xf32>) {
  // CHECK: hypershard.all_gather %{{.*}} over @m {"dp", "tp":(1)2} dim 1 : tensor<8x4xf32> -> tensor<8x16xf32>
  %0 = hypershard.all_gather %x over @m {"dp", "tp":(1)2} dim 1 : tensor<8x4xf32> -> tensor<8x16xf32>
  // CHECK: hypershard.all_reduce %{{.*}} over @m {} <avg> : tensor<8x4xf32> -> tensor<8x4xf32>
  %1 = hypershard.all_reduce %x over @m {} <avg> : tensor<8x4xf32> -> tensor<8x4xf32>
  // CHECK: hypershard.reduce_scatter %{{.*}} over @m {"tp"} <max> dim 0 : tensor<8x4xf32> -> tensor<2x4xf32>
  %2 = hypershard.reduce_scatter %x over @m {"tp"} <max> dim 0 : tensor<8x4xf32> -> tensor<2x4xf32>
  // CHECK: hypershard.all_to_all %{{.*}} over @m {"tp"} split 0 concat 1 : tensor<8x4xf32> -> tensor<2x16xf32>
  %3 = hypershard.all_to_all %x over @m {"tp"} split 0 concat 1 : tensor<8x4xf32> -> tensor<2x16xf32>
  // CHECK: hypershard.permute %{{.*}} over @m {"dp", "tp"} to {"tp", "dp"} : tensor<8x4xf32> -> tensor<8x4xf32>
  %4 = hypershard.permute %x over @m {"dp", "tp"} to {"tp", "dp"} : tensor<8x4xf32> -> tensor<8x4xf32>
  // The last block is not full: 4 over 8 devices, and 3 over 2.
  // CHECK: hypershard.slice_local %{{.*}} over @m {"dp", "tp"} dim 1 : tensor<8x4xf32> -> tensor<8x1xf32>
  %5 = hypershard.slice_local %x over @m {"dp", "tp"} dim 1 : tensor<8x4xf32> -> tensor<8x1xf32>
  // CHECK: hypershard.halo_exchange %{{.*}} over @m {"dp"} dim 0 of 15 window -1 step 8 size 10 : tensor<8x4xf32> -> tensor<10x4xf32>
  %6 = hypershard.halo_exchange %x over @m {"dp"} dim 0 of 15 window -1 step 8 size 10 : tensor<8x4xf32> -> tensor<10x4xf32>
  // CHECK: hypershard.axis_index @m {"tp":(1)2, "dp"}
  %7 = hypershard.axis_index @m {"tp":(1)2, "dp"}
  return
}

// The verifier knows the global form by its sharding: the type stays.
// CHECK-LABEL: func.func @global_form
func.func @global_form(%x: tensor<5x4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"dp"}, {}]>}) {
  // CHECK: hypershard.all_gather %{{.*}} over @m {"dp"} dim 0 {hypershard.sharding = #hypershard.sharding<@m, [{}, {}]>} : tensor<5x4xf32> -> tensor<5x4xf32>
  %0 = hypershard.all_gather %x over @m {"dp"} dim 0 {hypershard.sharding = #hypershard.sharding<@m, [{}, {}]>} : tensor<5x4xf32> -> tensor<5x4xf32>
  return
}

// An op of several results: one sharding each, a unit for what is no tensor.
// CHECK-LABEL: func.func @several_results
func.func @several_results(%x: tensor<4xf32>, %c: i1) {
  // CHECK: {hypershard.sharding = [#hypershard.sharding<@m, [{"dp"}]>, unit]}
  %0:2 = scf.if %c -> (tensor<4xf32>, i1) {
    scf.yield %x, %c : tensor<4xf32>, i1
  } else {
    scf.yield %x, %c : tensor<4xf32>, i1
  } {hypershard.sharding = [#hypershard.sharding<@m, [{"dp"}]>, unit]}
  return
}
