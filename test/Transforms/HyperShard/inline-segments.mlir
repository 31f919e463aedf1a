// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Segments go back where they are called; blocks stay functions.
// RUN: hp-opt %s -hypershard-inline-segments | FileCheck %s

// CHECK-NOT: @embed
// CHECK: func.func private @Block
// CHECK-NOT: @head
// CHECK: func.func @main(%[[X:.*]]: tensor<4xf32>, %[[W:.*]]: tensor<4xf32>)
// CHECK-NEXT: %[[E:.*]] = arith.addf %[[X]], %[[W]]
// CHECK-NEXT: %[[B:.*]] = call @Block(%[[E]]) {hp.path = "blocks.0"}
// CHECK-NEXT: %[[L:.*]] = arith.mulf %[[B]], %[[W]]
// CHECK-NEXT: return %[[L]], %[[B]]
func.func private @embed(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> attributes {hp.segment} {
  %0 = arith.addf %a, %b : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @Block(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.exp %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @head(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {hp.segment} {
  %0 = arith.mulf %a, %b : tensor<4xf32>
  return %0, %a : tensor<4xf32>, tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = call @embed(%x, %w) {hp.path = "embed"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = call @Block(%0) {hp.path = "blocks.0"} : (tensor<4xf32>) -> tensor<4xf32>
  %2:2 = call @head(%1, %w) {hp.path = "head"} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %2#0, %2#1 : tensor<4xf32>, tensor<4xf32>
}
