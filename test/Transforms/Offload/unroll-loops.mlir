// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Iterations become ops; what one puts into a stack for another is handed over (case 14).
// RUN: hp-opt %s --offload-unroll-loops --canonicalize --split-input-file | FileCheck %s
// RUN: hp-opt %s --offload-unroll-loops=max-ops=4 --split-input-file --mlir-print-op-on-diagnostic=false 2>&1 | FileCheck %s --check-prefix=LONG
// RUN: hp-opt %s --offload-unroll-loops=max-ops=4 --split-input-file 2>/dev/null | FileCheck %s --check-prefix=KEPT

func.func private @forward(tensor<4xf32>) -> tensor<4xf32>
func.func private @backward(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
// CHECK-NEXT: %[[A0:.*]] = call @forward(%[[X]])
// CHECK-NEXT: %[[A1:.*]] = call @forward(%[[A0]])
// CHECK-NEXT: %[[A2:.*]] = call @forward(%[[A1]])
// CHECK-NEXT: %[[G2:.*]] = call @backward(%[[A2]], %[[A1]])
// CHECK-NEXT: %[[G1:.*]] = call @backward(%[[G2]], %[[A0]])
// CHECK-NEXT: %[[G0:.*]] = call @backward(%[[G1]], %[[X]])
// CHECK-NEXT: return %[[G0]]
// LONG: remark: offload: a loop stays one op: its iterations would be 6 ops, more than 4
// KEPT-LABEL: func.func @main(
// KEPT: scf.for
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %e = tensor.empty() : tensor<3x4xf32>
  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%v = %x, %stack = %e) -> (tensor<4xf32>, tensor<3x4xf32>) {
    %s = tensor.insert_slice %v into %stack[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<3x4xf32>
    %n = func.call @forward(%v) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %n, %s : tensor<4xf32>, tensor<3x4xf32>
  }
  %g = scf.for %i = %c0 to %c3 step %c1 iter_args(%v = %r#0) -> (tensor<4xf32>) {
    %j = arith.subi %c2, %i : index
    %s = tensor.extract_slice %r#1[%j, 0] [1, 4] [1, 1] : tensor<3x4xf32> to tensor<4xf32>
    %n = func.call @backward(%v, %s) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  return %g : tensor<4xf32>
}

// -----

func.func private @forward(tensor<4xf32>) -> tensor<4xf32>

// LONG: remark: offload: a loop stays one op: how often it runs is known only then
// A loop on numbers is none of ours, nor is one of an unknown number of iterations.
// CHECK-LABEL: func.func @main(
// CHECK: scf.for
// CHECK: scf.for
func.func @main(%x: tensor<4xf32>, %n: index) -> (tensor<4xf32>, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %a = scf.for %i = %c0 to %n step %c1 iter_args(%v = %x) -> (tensor<4xf32>) {
    %m = func.call @forward(%v) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %m : tensor<4xf32>
  }
  %b = scf.for %i = %c0 to %c3 step %c1 iter_args(%v = %n) -> (index) {
    %m = arith.muli %v, %v : index
    scf.yield %m : index
  }
  return %a, %b : tensor<4xf32>, index
}

// -----

// Slices that may overlap are left as they are.
// CHECK-LABEL: func.func @main(
// CHECK: tensor.insert_slice
// CHECK: tensor.extract_slice
func.func @main(%x: tensor<2xf32>, %y: tensor<4xf32>) -> tensor<2xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %s = scf.for %i = %c0 to %c2 step %c1 iter_args(%v = %y) -> (tensor<4xf32>) {
    %w = tensor.insert_slice %x into %v[%i] [2] [1] : tensor<2xf32> into tensor<4xf32>
    scf.yield %w : tensor<4xf32>
  }
  %r = tensor.extract_slice %s[0] [2] [1] : tensor<4xf32> to tensor<2xf32>
  return %r : tensor<2xf32>
}
