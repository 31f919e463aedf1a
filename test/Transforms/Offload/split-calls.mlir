// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A called function that touches more than the grain becomes several, its calls one call of each.
// RUN: hp-opt %s --offload-split-calls=grain=3000 --split-input-file --mlir-print-op-on-diagnostic=false 2>&1 | FileCheck %s
// RUN: hp-opt %s --offload-split-calls --split-input-file | FileCheck %s --check-prefix=WHOLE

// Two products with what follows them: a part takes the weight that it uses, the declaration is made where it is needed, and
// what is returned has the shape in which it is returned. The attributes of the call stay.
// CHECK: remark: offload: @block is done in 2 parts, so that not all that it uses is needed at once
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<4x16xf32>, %[[V:.*]]: tensor<16x16xf32>, %[[W:.*]]: tensor<16x16xf32>
// CHECK-NEXT: %[[A:.*]] = call @block_1(%[[X]], %[[V]]) {hp.path = "layers.0"}
// CHECK-NEXT: %[[B:.*]] = call @block_2(%[[A]], %[[W]]) {hp.path = "layers.0"}
// CHECK-NEXT: return %[[B]] : tensor<64xf32>
// CHECK: func.func private @block_1(%{{.*}}: tensor<4x16xf32>, %{{.*}}: tensor<16x16xf32>) -> tensor<4x16xf32>
// CHECK: linalg.fill
// CHECK: linalg.matmul
// CHECK: linalg.exp
// CHECK-NOT: linalg.matmul
// CHECK: func.func private @block_2(%{{.*}}: tensor<4x16xf32>, %{{.*}}: tensor<16x16xf32>) -> tensor<64xf32>
// CHECK: linalg.fill
// CHECK: linalg.matmul
// CHECK: %[[VIEW:.*]] = tensor.collapse_shape
// CHECK-NEXT: return %[[VIEW]]

// WHOLE-LABEL: func.func @main(
// WHOLE-NEXT: call @block(
func.func @main(%x: tensor<4x16xf32>, %v: tensor<16x16xf32>, %w: tensor<16x16xf32>) -> tensor<64xf32> {
  %0 = call @block(%x, %v, %w) {hp.path = "layers.0"} : (tensor<4x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @block(%x: tensor<4x16xf32>, %v: tensor<16x16xf32>, %w: tensor<16x16xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x16xf32>) -> tensor<4x16xf32>
  %a = linalg.matmul ins(%x, %v : tensor<4x16xf32>, tensor<16x16xf32>) outs(%z : tensor<4x16xf32>) -> tensor<4x16xf32>
  %b = linalg.exp ins(%a : tensor<4x16xf32>) outs(%e : tensor<4x16xf32>) -> tensor<4x16xf32>
  %c = linalg.matmul ins(%b, %w : tensor<4x16xf32>, tensor<16x16xf32>) outs(%z : tensor<4x16xf32>) -> tensor<4x16xf32>
  %r = tensor.collapse_shape %c [[0, 1]] : tensor<4x16xf32> into tensor<64xf32>
  return %r : tensor<64xf32>
}

// -----

// What is returned in another shape, and used in the one in which it was made: the caller shapes it back for the next part.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[A:.*]] = call @block_1({{.*}}) : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<64xf32>
// CHECK-NEXT: %[[BACK:.*]] = tensor.expand_shape %[[A]] {{\[}}[0, 1]] output_shape [4, 16] : tensor<64xf32> into tensor<4x16xf32>
// CHECK-NEXT: %[[B:.*]] = call @block_2(%[[BACK]], %{{.*}}) : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
// CHECK-NEXT: return %[[A]], %[[B]]
func.func @main(%x: tensor<4x16xf32>, %v: tensor<16x16xf32>, %w: tensor<16x16xf32>) -> (tensor<64xf32>, tensor<4x16xf32>) {
  %0:2 = call @block(%x, %v, %w) : (tensor<4x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) -> (tensor<64xf32>, tensor<4x16xf32>)
  return %0#0, %0#1 : tensor<64xf32>, tensor<4x16xf32>
}
func.func private @block(%x: tensor<4x16xf32>, %v: tensor<16x16xf32>, %w: tensor<16x16xf32>) -> (tensor<64xf32>, tensor<4x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x16xf32>) -> tensor<4x16xf32>
  %a = linalg.matmul ins(%x, %v : tensor<4x16xf32>, tensor<16x16xf32>) outs(%z : tensor<4x16xf32>) -> tensor<4x16xf32>
  %c = linalg.exp ins(%a : tensor<4x16xf32>) outs(%e : tensor<4x16xf32>) -> tensor<4x16xf32>
  %b = linalg.matmul ins(%c, %w : tensor<4x16xf32>, tensor<16x16xf32>) outs(%z : tensor<4x16xf32>) -> tensor<4x16xf32>
  %r = tensor.collapse_shape %c [[0, 1]] : tensor<4x16xf32> into tensor<64xf32>
  return %r, %b : tensor<64xf32>, tensor<4x16xf32>
}

// -----

// Every call of a function, and functions in functions: a part that is a call alone is that call, and split in turn.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: call @inner_1(
// CHECK-NEXT: call @inner_2(
// CHECK-NEXT: call @inner_1(
// CHECK-NEXT: call @inner_2(
// CHECK-NEXT: return
func.func @main(%x: tensor<16x16xf32>, %v: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = call @outer(%x, %v) : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}
func.func private @outer(%x: tensor<16x16xf32>, %v: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = call @inner(%x, %v) : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %1 = call @inner(%0, %v) : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return %1 : tensor<16x16xf32>
}
func.func private @inner(%x: tensor<16x16xf32>, %v: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %a = linalg.matmul ins(%x, %v : tensor<16x16xf32>, tensor<16x16xf32>) outs(%z : tensor<16x16xf32>) -> tensor<16x16xf32>
  %b = linalg.matmul ins(%a, %a : tensor<16x16xf32>, tensor<16x16xf32>) outs(%z : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %b : tensor<16x16xf32>
}

// -----

// Ops of one kernel stay together, whatever they touch; so nothing changes.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: call @chain(
func.func @main(%x: tensor<64x16xf32>) -> tensor<64x16xf32> {
  %0 = call @chain(%x) : (tensor<64x16xf32>) -> tensor<64x16xf32>
  return %0 : tensor<64x16xf32>
}
func.func private @chain(%x: tensor<64x16xf32>) -> tensor<64x16xf32> {
  %e = tensor.empty() : tensor<64x16xf32>
  %a = linalg.exp ins(%x : tensor<64x16xf32>) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  %b = linalg.exp ins(%a : tensor<64x16xf32>) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  return %b : tensor<64x16xf32>
}
