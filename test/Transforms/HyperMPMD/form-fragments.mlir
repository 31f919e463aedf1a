// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls become fragments of their stage, phase and microbatch; other ops go where they are used or made.
// RUN: hp-opt %s --split-input-file --pass-pipeline='builtin.module(hypermpmd-form-fragments{plan={{"groups":[{"name":"g0","axes":[["tp",2]]},{"name":"g1","axes":[["tp",1]]}],"stages":[{"group":"g0","blocks":["h.0","h.1"]},{"group":"g1","blocks":["h.2"]}]}}})' | FileCheck %s

// Two blocks of a stage are one fragment. The constant and what depends on arguments alone are made where they are read; what
// follows the last block stays with it.
// CHECK: module attributes {hypermpmd.topology = #hypermpmd.topology<"g0" = <["tp"=2]>, "g1" = <["tp"=1]>>}
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32> {{.*}}, %[[M:.*]]: tensor<4xf32> {
// CHECK-NEXT: %[[F0:.*]] = hypermpmd.fragment on "g0" stage 0 forward(%[[M]], %[[X]])
// CHECK-NEXT: ^bb0(%[[M0:.*]]: tensor<4xf32>, %[[X0:.*]]: tensor<4xf32>):
// CHECK-NEXT: %[[MASK0:.*]] = math.exp %[[M0]]
// CHECK-NEXT: %[[A:.*]] = func.call @block(%[[X0]], %[[MASK0]]) {hp.path = "h.0"}
// CHECK-NEXT: %[[B:.*]] = func.call @block(%[[A]], %[[MASK0]]) {hp.path = "h.1"}
// CHECK-NEXT: hypermpmd.yield %[[B]]
// CHECK: %[[F1:.*]] = hypermpmd.fragment on "g1" stage 1 forward(%[[M]], %[[F0]])
// CHECK-NEXT: ^bb0(%[[M1:.*]]: tensor<4xf32>, %[[X1:.*]]: tensor<4xf32>):
// CHECK-NEXT: %[[C2:.*]] = arith.constant
// CHECK-NEXT: %[[MASK1:.*]] = math.exp %[[M1]]
// CHECK-NEXT: %[[C:.*]] = func.call @block(%[[X1]], %[[MASK1]]) {hp.path = "h.2"}
// CHECK-NEXT: %[[D:.*]] = arith.mulf %[[C]], %[[C2]]
// CHECK-NEXT: hypermpmd.yield %[[D]]
// CHECK: return %[[F1]]
func.func @main(%x: tensor<4xf32> {hp.name = "x", hp.role = "input"}, %m: tensor<4xf32> {hp.name = "m", hp.role = "input"}) -> tensor<4xf32> {
  %two = arith.constant dense<2.0> : tensor<4xf32>
  %mask = math.exp %m : tensor<4xf32>
  %a = call @block(%x, %mask) {hp.path = "h.0"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = call @block(%a, %mask) {hp.path = "h.1"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %c = call @block(%b, %mask) {hp.path = "h.2"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d = arith.mulf %c, %two : tensor<4xf32>
  return %d : tensor<4xf32>
}
func.func private @block(%x: tensor<4xf32>, %m: tensor<4xf32>) -> tensor<4xf32> {
  %y = arith.addf %x, %m : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// A broadcast goes where it is read, so that the small value is moved.
// CHECK-LABEL: func.func @main(
// CHECK: %[[F0:.*]] = hypermpmd.fragment on "g0" stage 0 forward
// CHECK: hypermpmd.yield %{{.*}} : tensor<4xf32>
// CHECK: hypermpmd.fragment on "g1" stage 1 forward(%[[F0]]) : (tensor<4xf32>)
// CHECK: linalg.broadcast
func.func @main(%x: tensor<4xf32>) -> tensor<4x8xf32> {
  %a = call @small(%x) {hp.path = "h.0"} : (tensor<4xf32>) -> tensor<4xf32>
  %b = call @small(%a) {hp.path = "h.1"} : (tensor<4xf32>) -> tensor<4xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %c = linalg.broadcast ins(%b : tensor<4xf32>) outs(%e : tensor<4x8xf32>) dimensions = [1]
  %d = call @large(%c) {hp.path = "h.2"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %d : tensor<4x8xf32>
}
func.func private @small(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @large(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}

// -----

// Phases and microbatches: forward up, backward down, then updates; a value that comes back to a stage begins another fragment.
// CHECK-LABEL: func.func @main(
// CHECK: hypermpmd.fragment on "g0" stage 0 microbatch 0 forward
// CHECK: hypermpmd.fragment on "g0" stage 0 microbatch 1 forward
// CHECK: hypermpmd.fragment on "g1" stage 1 microbatch 0 forward
// CHECK: hypermpmd.fragment on "g1" stage 1 microbatch 1 forward
// CHECK: hypermpmd.fragment on "g1" stage 1 microbatch 0 backward(
// CHECK: hypermpmd.fragment on "g1" stage 1 microbatch 1 backward(
// CHECK: hypermpmd.fragment on "g0" stage 0 microbatch 0 backward(
// CHECK: hypermpmd.fragment on "g0" stage 0 microbatch 1 backward(
// CHECK-NOT: hypermpmd.microbatch
// CHECK: hypermpmd.fragment on "g0" stage 0 update
// CHECK: hypermpmd.fragment on "g1" stage 1 forward(
func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a0 = call @f(%x) {hp.path = "h.0", hp.phase = "forward", hypermpmd.microbatch = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %b0 = call @f(%a0) {hp.path = "h.2", hp.phase = "forward", hypermpmd.microbatch = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %c0 = call @f(%b0) {hp.path = "h.2", hp.phase = "backward", hypermpmd.microbatch = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %d0 = call @f(%c0) {hp.path = "h.0", hp.phase = "backward", hypermpmd.microbatch = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %a1 = call @f(%x) {hp.path = "h.0", hp.phase = "forward", hypermpmd.microbatch = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %b1 = call @f(%a1) {hp.path = "h.2", hp.phase = "forward", hypermpmd.microbatch = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %c1 = call @f(%b1) {hp.path = "h.2", hp.phase = "backward", hypermpmd.microbatch = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %d1 = call @f(%c1) {hp.path = "h.0", hp.phase = "backward", hypermpmd.microbatch = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %g = arith.addf %d0, %d1 : tensor<4xf32>
  %u = call @f(%g) {hp.path = "h.1", hp.phase = "update"} : (tensor<4xf32>) -> tensor<4xf32>
  %v = call @f(%u) {hp.path = "h.2", hp.phase = "forward"} : (tensor<4xf32>) -> tensor<4xf32>
  return %u, %v : tensor<4xf32>, tensor<4xf32>
}
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
