// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every op survives text, generic text and bytecode.
// RUN: hp-opt %s | hp-opt | FileCheck %s
// RUN: hp-opt %s --mlir-print-op-generic | hp-opt | FileCheck %s
// RUN: hp-opt %s --emit-bytecode | hp-opt | FileCheck %s

// CHECK-LABEL: func.func @scatter_add(
// CHECK-SAME: %[[U:.*]]: tensor<6x4xf32>, %[[I:.*]]: tensor<6xi64>, %[[T:.*]]: tensor<8x4xf32>
func.func @scatter_add(%u: tensor<6x4xf32>, %i: tensor<6xi64>, %t: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // CHECK: indexing.scatter_add %[[U]] at %[[I]] into %[[T]] : tensor<6x4xf32>, tensor<6xi64> into tensor<8x4xf32>
  %0 = indexing.scatter_add %u at %i into %t : tensor<6x4xf32>, tensor<6xi64> into tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
