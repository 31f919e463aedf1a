// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The gradient of a tied weight over two microbatches: each group adds up its own terms, and one sum crosses. What autograd
// added inside the last backward function is added by its callers.
// RUN: hp-opt %s --pass-pipeline='builtin.module(hypermpmd-form-fragments{plan={{"groups":[{"name":"a","axes":[["tp",1]]},{"name":"b","axes":[["tp",1]]}],"stages":[{"group":"a","blocks":["wte"]},{"group":"b","blocks":["head"]}]}}},hypermpmd-infer-transfers)' | FileCheck %s

// CHECK-LABEL: func.func @main(
// The head's gradients stay on b until both are there.
// CHECK: hypermpmd.fragment on "b" stage 1 microbatch 0 backward
// CHECK: func.call @head
// CHECK: %[[SUM:.*]]:{{.*}} = hypermpmd.fragment on "b" stage 1 microbatch 1 backward
// CHECK: func.call @head
// CHECK: arith.addf
// CHECK: %[[THERE:.*]] = hypermpmd.transfer %[[SUM]]#{{.*}} from "b" to "a" : tensor<4xf32>
// CHECK: hypermpmd.fragment on "a" stage 0 microbatch 0 backward
// CHECK: func.call @embedding(%{{.*}}) {hp.path = "wte"
// CHECK: hypermpmd.fragment on "a" stage 0 microbatch 1 backward(%{{.*}}%[[THERE]]
// CHECK: func.func private @embedding(%{{.*}}: tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: arith.negf
// CHECK-NEXT: return
func.func @main(%g0: tensor<4xf32>, %g1: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %h0:2 = call @head(%g0) {hp.path = "head", hp.phase = "backward", hypermpmd.microbatch = 0 : i64} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %e0 = call @embedding(%h0#0, %h0#1) {hp.path = "wte", hp.phase = "backward", hypermpmd.microbatch = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s0 = arith.addf %zero, %e0 : tensor<4xf32>
  %h1:2 = call @head(%g1) {hp.path = "head", hp.phase = "backward", hypermpmd.microbatch = 1 : i64} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %e1 = call @embedding(%h1#0, %h1#1) {hp.path = "wte", hp.phase = "backward", hypermpmd.microbatch = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s1 = arith.addf %s0, %e1 : tensor<4xf32>
  return %s1 : tensor<4xf32>
}
func.func private @head(%g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %i = math.exp %g : tensor<4xf32>
  %w = math.tanh %g : tensor<4xf32>
  return %i, %w : tensor<4xf32>, tensor<4xf32>
}
func.func private @embedding(%g: tensor<4xf32>, %tied: tensor<4xf32>) -> tensor<4xf32> {
  %own = arith.negf %g : tensor<4xf32>
  %both = arith.addf %tied, %own : tensor<4xf32>
  return %both : tensor<4xf32>
}
