// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives of an argument that nothing else reads, and of a result that is only returned, are done by the callers; each
// call has its own, with its path and phase.
// RUN: hp-opt %s --split-input-file --hypershard-lift-collectives | FileCheck %s

hypershard.mesh @m = <["dp"=2]>

// CHECK-LABEL: func.func private @block(
// CHECK-SAME:    %[[W:.*]]: tensor<4x4xf32>, %[[X:.*]]: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
func.func private @block(%w: tensor<2x4xf32>, %x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<2x4xf32>) {
  // CHECK-NOT: all_gather
  %whole = hypershard.all_gather %w over @m {"dp"} dim 0 : tensor<2x4xf32> -> tensor<4x4xf32>
  // CHECK: %[[Y:.*]] = linalg.matmul ins(%[[X]], %[[W]]
  %y = linalg.matmul ins(%x, %whole : tensor<4x4xf32>, tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: %[[G:.*]] = linalg.matmul ins(%[[X]], %[[Y]]
  %g = linalg.matmul ins(%x, %y : tensor<4x4xf32>, tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK-NOT: reduce_scatter
  %part = hypershard.reduce_scatter %g over @m {"dp"} <sum> dim 0 : tensor<4x4xf32> -> tensor<2x4xf32>
  // CHECK: return %[[Y]], %[[G]]
  return %y, %part : tensor<4x4xf32>, tensor<2x4xf32>
}

// CHECK-LABEL: func.func @main(
func.func @main(%w: tensor<2x4xf32>, %x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  // CHECK: %[[W0:.*]] = hypershard.all_gather %arg0 over @m {"dp"} dim 0 {hp.path = "h.0", hp.phase = "forward"}
  // CHECK-NEXT: %[[R0:.*]]:2 = call @block(%[[W0]], %arg1) {hp.path = "h.0", hp.phase = "forward"}
  // CHECK-NEXT: %[[G0:.*]] = hypershard.reduce_scatter %[[R0]]#1 over @m {"dp"} <sum> dim 0 {hp.path = "h.0", hp.phase = "forward"}
  %0:2 = call @block(%w, %x) {hp.path = "h.0", hp.phase = "forward"} : (tensor<2x4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<2x4xf32>)
  // CHECK-NEXT: %[[W1:.*]] = hypershard.all_gather %[[G0]] over @m {"dp"} dim 0 {hp.path = "h.1"}
  // CHECK-NEXT: %[[R1:.*]]:2 = call @block(%[[W1]], %[[R0]]#0) {hp.path = "h.1"}
  // CHECK-NEXT: %[[G1:.*]] = hypershard.reduce_scatter %[[R1]]#1
  %1:2 = call @block(%0#1, %0#0) {hp.path = "h.1"} : (tensor<2x4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<2x4xf32>)
  // CHECK-NEXT: return %[[R1]]#0, %[[G0]], %[[G1]]
  return %1#0, %0#1, %1#1 : tensor<4x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

hypershard.mesh @m = <["dp"=2]>

// Through two functions; what is read elsewhere, too, stays.
// CHECK-LABEL: func.func private @inner(
// CHECK-SAME:    tensor<4xf32>, %{{.*}}: tensor<2xf32>)
// CHECK: all_gather %arg1
func.func private @inner(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<2xf32>) {
  %0 = hypershard.all_gather %a over @m {"dp"} dim 0 : tensor<2xf32> -> tensor<4xf32>
  %1 = hypershard.all_gather %b over @m {"dp"} dim 0 : tensor<2xf32> -> tensor<4xf32>
  %2 = math.exp %0 : tensor<4xf32>
  %3 = math.exp %1 : tensor<4xf32>
  return %2, %3, %b : tensor<4xf32>, tensor<4xf32>, tensor<2xf32>
}

// CHECK-LABEL: func.func private @outer(
// CHECK-SAME:    %{{.*}}: tensor<4xf32>, %{{.*}}: tensor<2xf32>)
// CHECK-NEXT: call @inner(%arg0, %arg1)
func.func private @outer(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<2xf32>) {
  %0:3 = call @inner(%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<2xf32>)
  return %0#0, %0#1, %0#2 : tensor<4xf32>, tensor<4xf32>, tensor<2xf32>
}

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[A:.*]] = hypershard.all_gather %arg0
// CHECK-NEXT: call @outer(%[[A]], %arg1)
func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<2xf32>) {
  %0:3 = call @outer(%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<2xf32>)
  return %0#0, %0#1, %0#2 : tensor<4xf32>, tensor<4xf32>, tensor<2xf32>
}
