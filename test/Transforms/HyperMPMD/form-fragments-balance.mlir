// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the plan names no blocks, the dearest stage costs least: three cheap blocks against one that is four times as dear, which
// the ops behind it make dearer still.
// RUN: hp-opt %s --pass-pipeline='builtin.module(hypermpmd-form-fragments{plan={{"groups":[{"name":"g0","axes":[["tp",1]]},{"name":"g1","axes":[["tp",1]]}],"stages":[{"group":"g0"},{"group":"g1"}]}}})' | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK: hypermpmd.fragment on "g0" stage 0
// CHECK: {hp.path = "h.0"}
// CHECK: {hp.path = "h.1"}
// CHECK: {hp.path = "h.2"}
// CHECK: hypermpmd.fragment on "g1" stage 1
// CHECK: {hp.path = "h.3"}
func.func @main(%x: tensor<512x512xf32>, %w: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %a = call @cheap(%x, %w) {hp.path = "h.0"} : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %b = call @cheap(%a, %w) {hp.path = "h.1"} : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %c = call @cheap(%b, %w) {hp.path = "h.2"} : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %d = call @dear(%c, %w) {hp.path = "h.3"} : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %z = tensor.empty() : tensor<512x512xf32>
  %e = linalg.matmul ins(%d, %w : tensor<512x512xf32>, tensor<512x512xf32>) outs(%z : tensor<512x512xf32>) -> tensor<512x512xf32>
  return %e : tensor<512x512xf32>
}
func.func private @cheap(%x: tensor<512x512xf32>, %w: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %z = tensor.empty() : tensor<512x512xf32>
  %y = linalg.matmul ins(%x, %w : tensor<512x512xf32>, tensor<512x512xf32>) outs(%z : tensor<512x512xf32>) -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}
func.func private @dear(%x: tensor<512x512xf32>, %w: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %a = call @cheap(%x, %w) : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %b = call @cheap(%a, %w) : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %c = call @cheap(%b, %w) : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  return %c : tensor<512x512xf32>
}
