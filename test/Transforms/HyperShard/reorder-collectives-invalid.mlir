// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass refuses nothing. A program that is to be synchronous, and one that does not communicate, stay as they are.
// RUN: hp-opt %s --split-input-file --verify-diagnostics --hypershard-reorder-collectives | FileCheck %s

module attributes {hp.synchronous} {
  hypershard.mesh @m = <["dp"=2]>
  // CHECK-LABEL: func.func @main(
  // CHECK-NEXT: math.exp
  // CHECK-NEXT: math.exp
  // CHECK-NEXT: hypershard.all_reduce
  func.func @main(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
    %0 = math.exp %x : tensor<64xf32>
    %1 = math.exp %0 : tensor<64xf32>
    %2 = hypershard.all_reduce %0 over @m {"dp"} <sum> : tensor<64xf32> -> tensor<64xf32>
    return %1, %2 : tensor<64xf32>, tensor<64xf32>
  }
}

// -----

// CHECK-LABEL: func.func @alone(
// CHECK-NEXT: tensor.collapse_shape
// CHECK-NEXT: math.exp
func.func @alone(%x: tensor<8x8xf32>) -> (tensor<64xf32>, tensor<8x8xf32>) {
  %0 = tensor.collapse_shape %x [[0, 1]] : tensor<8x8xf32> into tensor<64xf32>
  %1 = math.exp %x : tensor<8x8xf32>
  return %0, %1 : tensor<64xf32>, tensor<8x8xf32>
}
