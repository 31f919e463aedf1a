// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every op, attribute and type survives text, generic text and bytecode.
// RUN: hp-opt %s | hp-opt | FileCheck %s
// RUN: hp-opt %s --mlir-print-op-generic | hp-opt | FileCheck %s
// RUN: hp-opt %s --emit-bytecode | hp-opt | FileCheck %s

// CHECK-LABEL: func.func @fetch(
// CHECK-SAME: tensor<8x4xf32, #offload.tier<pool>> {offload.place = #offload.tier<pool>}
// CHECK-SAME: tensor<2xf32> {offload.keep}
// CHECK-SAME: attributes {offload.moves = [#offload.move<value = 0, tier = <pool>, evict_after = 1, free_before = 2, prefetch_before = 0, clean = true>]}
func.func @fetch(%w: tensor<8x4xf32, #offload.tier<pool>> {offload.place = #offload.tier<pool>},
                 %b: tensor<2xf32> {offload.keep}) -> tensor<8x4xf32>
    attributes {offload.moves = [#offload.move<value = 0, tier = <pool>, evict_after = 1, free_before = 2, prefetch_before = 0, clean = true>]} {
  // CHECK: %[[F:.*]] = offload.prefetch %{{.*}} : tensor<8x4xf32, #offload.tier<pool>> -> <tensor<8x4xf32>>
  %f = offload.prefetch %w : tensor<8x4xf32, #offload.tier<pool>> -> <tensor<8x4xf32>>
  // CHECK: offload.wait %[[F]] : <tensor<8x4xf32>>
  %d = offload.wait %f : <tensor<8x4xf32>>
  return %d : tensor<8x4xf32>
}

// A tier whose name is no keyword is quoted.
// CHECK-LABEL: func.func @keep(
func.func @keep(%x: tensor<2xi8>) -> tensor<2xi8, #offload.tier<"node dram">> {
  // CHECK: %[[F:.*]] = offload.store %{{.*}} : tensor<2xi8> -> <tensor<2xi8, #offload.tier<"node dram">>>
  %f = offload.store %x : tensor<2xi8> -> <tensor<2xi8, #offload.tier<"node dram">>>
  %h = offload.wait %f : <tensor<2xi8, #offload.tier<"node dram">>>
  // CHECK: offload.detach %{{.*}} : tensor<2xi8>
  offload.detach %x : tensor<2xi8>
  return %h : tensor<2xi8, #offload.tier<"node dram">>
}

// CHECK-LABEL: func.func @rows(
func.func @rows(%t: tensor<8x4xf32, #offload.tier<pool>>, %i: tensor<2x3xi64>) -> tensor<2x3x4xf32> {
  // CHECK: offload.prefetch_rows %{{.*}} at %{{.*}} : tensor<8x4xf32, #offload.tier<pool>>, tensor<2x3xi64> -> <tensor<2x3x4xf32>>
  %f = offload.prefetch_rows %t at %i : tensor<8x4xf32, #offload.tier<pool>>, tensor<2x3xi64> -> <tensor<2x3x4xf32>>
  %d = offload.wait %f : <tensor<2x3x4xf32>>
  return %d : tensor<2x3x4xf32>
}
