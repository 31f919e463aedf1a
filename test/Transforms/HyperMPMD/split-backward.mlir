// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the next backward call reads is made first; gradients of weights take the rest of what they need over.
// RUN: hp-opt %s --hypermpmd-split-backward | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[G:[^:]*]]: tensor<4xf32>, %[[S:[^:]*]]: tensor<4xf32>
// CHECK: %[[I1:.*]]:2 = call @block_input(%[[G]], %[[S]]) {hp.path = "h.1", hp.phase = "backward_input"}
// CHECK: %[[W1:.*]] = call @block_weight(%[[S]], %[[I1]]#1) {hp.path = "h.1", hp.phase = "backward_weight"}
// CHECK: %[[N:.*]] = arith.negf %[[I1]]#0
// CHECK: %[[I0:.*]]:2 = call @block_input(%[[N]], %[[S]]) {hp.path = "h.0", hp.phase = "backward_input"}
// CHECK: %[[W0:.*]] = call @block_weight(%[[S]], %[[I0]]#1) {hp.path = "h.0", hp.phase = "backward_weight"}
// CHECK: %[[E:.*]] = call @embedding(%[[I0]]#0) {hp.path = "wte", hp.phase = "backward_weight"}
// CHECK: call @block_forward(%{{.*}}) {hp.path = "h.0", hp.phase = "forward"}
// CHECK: return %[[W1]], %[[W0]], %[[E]]
func.func @main(%g: tensor<4xf32>, %s: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a:2 = call @block(%g, %s) {hp.path = "h.1", hp.phase = "backward"} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %n = arith.negf %a#1 : tensor<4xf32>
  %b:2 = call @block(%n, %s) {hp.path = "h.0", hp.phase = "backward"} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %e = call @embedding(%b#1) {hp.path = "wte", hp.phase = "backward"} : (tensor<4xf32>) -> tensor<4xf32>
  %f = call @block_forward(%s) {hp.path = "h.0", hp.phase = "forward"} : (tensor<4xf32>) -> tensor<4xf32>
  return %a#0, %b#0, %e : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK: func.func private @block_input(%[[G:.*]]: tensor<4xf32>, %[[S:.*]]: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK: %[[T:.*]] = arith.mulf %[[G]]
// CHECK: %[[I:.*]] = arith.addf %[[T]]
// CHECK-NOT: arith.mulf
// CHECK: return %[[I]], %[[T]]
// CHECK: func.func private @block_weight(%[[S:.*]]: tensor<4xf32>, %[[T:.*]]: tensor<4xf32>) -> tensor<4xf32>
// CHECK: arith.constant
// CHECK: %[[W:.*]] = arith.mulf %[[T]], %[[S]]
// CHECK: return
// CHECK-NOT: @block(
func.func private @block(%g: tensor<4xf32>, %s: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %two = arith.constant dense<2.0> : tensor<4xf32>
  %t = arith.mulf %g, %two : tensor<4xf32>
  %i = arith.addf %t, %two : tensor<4xf32>
  %w = arith.mulf %t, %s : tensor<4xf32>
  %v = arith.addf %w, %two : tensor<4xf32>
  return %v, %i : tensor<4xf32>, tensor<4xf32>
}
func.func private @embedding(%g: tensor<4xf32>) -> tensor<4xf32> {
  return %g : tensor<4xf32>
}
func.func private @block_forward(%g: tensor<4xf32>) -> tensor<4xf32> {
  return %g : tensor<4xf32>
}
