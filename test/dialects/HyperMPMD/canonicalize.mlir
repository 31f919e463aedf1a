// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// There and back is nowhere; over another group is straight; what a fragment only hands on is not its result.
// RUN: hp-opt %s --canonicalize | FileCheck %s

module attributes {hypermpmd.topology = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>, "c" = <["tp"=1]>>} {
  // CHECK-LABEL: func.func @there_and_back(
  // CHECK-SAME: %[[X:.*]]: tensor<2xf32>
  func.func @there_and_back(%x: tensor<2xf32>) -> tensor<2xf32> {
    %t = hypermpmd.transfer %x from "a" to "b" : tensor<2xf32>
    // CHECK-NOT: hypermpmd
    %u = hypermpmd.transfer %t from "b" to "a" : tensor<2xf32>
    // CHECK: return %[[X]]
    return %u : tensor<2xf32>
  }

  // CHECK-LABEL: func.func @straight(
  // CHECK-SAME: %[[X:.*]]: tensor<2xf32>
  func.func @straight(%x: tensor<2xf32>) -> tensor<2xf32> {
    %t = hypermpmd.transfer %x from "a" to "b" : tensor<2xf32>
    // CHECK-NEXT: %[[T:.*]] = hypermpmd.transfer %[[X]] from "a" to "c"
    %u = hypermpmd.transfer %t from "b" to "c" : tensor<2xf32>
    // CHECK-NEXT: return %[[T]]
    return %u : tensor<2xf32>
  }

  // A value that a fragment hands on goes around it; operands and results that nobody needs go.
  // CHECK-LABEL: func.func @handed_on(
  // CHECK-SAME: %[[X:.*]]: tensor<2xf32>, %[[Y:.*]]: tensor<2xf32>
  func.func @handed_on(%x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    // CHECK: %[[F:.*]] = hypermpmd.fragment on "a" stage 1 forward(%[[Y]]) : (tensor<2xf32>) -> tensor<2xf32> {
    // CHECK-NEXT: ^bb0(%[[IN:.*]]: tensor<2xf32>):
    // CHECK-NEXT: %[[S:.*]] = arith.addf %[[IN]], %[[IN]]
    // CHECK-NEXT: hypermpmd.yield %[[S]]
    %f:3 = hypermpmd.fragment on "a" stage 1 forward (%x, %y, %y)
        : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
    ^bb0(%p: tensor<2xf32>, %q: tensor<2xf32>, %r: tensor<2xf32>):
      %s = arith.addf %q, %r : tensor<2xf32>
      %u = arith.mulf %q, %r : tensor<2xf32>
      hypermpmd.yield %p, %s, %u : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
    }
    // CHECK: return %[[X]], %[[F]]
    return %f#0, %f#1 : tensor<2xf32>, tensor<2xf32>
  }

  // Nothing changes.
  // CHECK-LABEL: func.func @needed(
  // CHECK: hypermpmd.fragment on "a" forward
  // CHECK: hypermpmd.transfer %{{.*}} from "a" to "b"
  // CHECK: hypermpmd.transfer %{{.*}} from "a" to "c"
  func.func @needed(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %f = hypermpmd.fragment on "a" forward (%x) : (tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%in: tensor<2xf32>):
      %s = arith.negf %in : tensor<2xf32>
      hypermpmd.yield %s : tensor<2xf32>
    }
    %t = hypermpmd.transfer %f from "a" to "b" : tensor<2xf32>
    %u = hypermpmd.transfer %f from "a" to "c" : tensor<2xf32>
    return %t, %u : tensor<2xf32>, tensor<2xf32>
  }
}
