// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A segment is called once.
// RUN: hp-opt %s -verify-diagnostics -hypershard-inline-segments

// expected-error @below {{expected a segment to be a private function with a body of one block that is called once but got 2 calls of @embed}}
func.func private @embed(%a: tensor<4xf32>) -> tensor<4xf32> attributes {hp.segment} {
  return %a : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @embed(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @embed(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
