// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Values in tiers may be copied and handed on.
// RUN: hp-opt %s --offload-verify-tiers | FileCheck %s
!pool = tensor<4xf32, #offload.tier<pool>>

// CHECK-LABEL: func.func private @block(
func.func private @block(%w: !pool, %x: tensor<4xf32>) -> tensor<4xf32> {
  %f = offload.prefetch %w : !pool -> <tensor<4xf32>>
  %d = offload.wait %f : <tensor<4xf32>>
  %y = arith.addf %d, %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @main(
func.func @main(%w: !pool, %v: !pool, %x: tensor<4xf32>, %c: i1) -> (tensor<4xf32>, !pool) {
  %y = call @block(%w, %x) : (!pool, tensor<4xf32>) -> tensor<4xf32>
  %u = scf.if %c -> !pool {
    scf.yield %w : !pool
  } else {
    scf.yield %v : !pool
  }
  return %y, %u : tensor<4xf32>, !pool
}

// CHECK-LABEL: func.func @part(
func.func @part(%w: tensor<8xf32, #offload.tier<pool>>) -> tensor<4xf32> {
  %p = tensor.extract_slice %w[2] [4] [1] : tensor<8xf32, #offload.tier<pool>> to !pool
  %f = offload.prefetch %p : !pool -> <tensor<4xf32>>
  %d = offload.wait %f : <tensor<4xf32>>
  return %d : tensor<4xf32>
}
