// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The body once for each microbatch; sums go from one to the next; calls say which they are of. Other loops stay.
// RUN: hp-opt %s --hypermpmd-unroll-microbatches --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<2x3x4xf32>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00>
// CHECK-DAG: %[[X0:.*]] = tensor.extract_slice %[[X]][0, 0, 0] [2, 1, 4] [1, 1, 1]
// CHECK: %[[F0:.*]] = call @f(%[[X0]]) {hp.path = "h.0", hypermpmd.microbatch = 0 : i64}
// CHECK: %[[S0:.*]] = arith.addf %[[F0]], %[[ZERO]]
// CHECK: %[[X1:.*]] = tensor.extract_slice %[[X]][0, 1, 0]
// CHECK: %[[F1:.*]] = call @f(%[[X1]]) {hp.path = "h.0", hypermpmd.microbatch = 1 : i64}
// CHECK: %[[S1:.*]] = arith.addf %[[S0]], %[[F1]]
// CHECK: %[[F2:.*]] = call @f(%{{.*}}) {hp.path = "h.0", hypermpmd.microbatch = 2 : i64}
// CHECK: %[[S2:.*]] = arith.addf %[[S1]], %[[F2]]
// CHECK-NOT: scf.for
// CHECK: return %[[S2]]
func.func @main(%x: tensor<2x3x4xf32>) -> tensor<2x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant dense<0.0> : tensor<2x4xf32>
  %sum = scf.for %m = %c0 to %c3 step %c1 iter_args(%acc = %zero) -> tensor<2x4xf32> {
    %part = tensor.extract_slice %x[0, %m, 0] [2, 1, 4] [1, 1, 1] : tensor<2x3x4xf32> to tensor<2x4xf32>
    %f = func.call @f(%part) {hp.path = "h.0"} : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %s = arith.addf %acc, %f : tensor<2x4xf32>
    scf.yield %s : tensor<2x4xf32>
  } {hp.microbatches}
  return %sum : tensor<2x4xf32>
}
// CHECK-LABEL: func.func @f(
// CHECK: scf.for
func.func @f(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %y = scf.for %m = %c0 to %c3 step %c1 iter_args(%acc = %x) -> tensor<2x4xf32> {
    %s = arith.addf %acc, %acc : tensor<2x4xf32>
    scf.yield %s : tensor<2x4xf32>
  }
  return %y : tensor<2x4xf32>
}
