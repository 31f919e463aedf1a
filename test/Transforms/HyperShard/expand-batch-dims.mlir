// Contractions get back the batch dimensions that were collapsed into one.
// RUN: hp-opt %s -split-input-file -hypershard-expand-batch-dims | FileCheck %s

// Batch and heads, collapsed on both sides and expanded after.
// CHECK-LABEL: func @attention
// CHECK-NOT: collapse_shape
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]
// CHECK-SAME: ins(%{{.*}}, %{{.*}} : tensor<4x8x64x32xf32>, tensor<4x8x32x64xf32>)
// CHECK-NOT: expand_shape
func.func @attention(%q: tensor<4x8x64x32xf32>, %k: tensor<4x8x32x64xf32>) -> tensor<4x8x64x64xf32> {
  %c = arith.constant 0.0 : f32
  %a = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<4x8x64x32xf32> into tensor<32x64x32xf32>
  %b = tensor.collapse_shape %k [[0, 1], [2], [3]] : tensor<4x8x32x64xf32> into tensor<32x32x64xf32>
  %e = tensor.empty() : tensor<32x64x64xf32>
  %z = linalg.fill ins(%c : f32) outs(%e : tensor<32x64x64xf32>) -> tensor<32x64x64xf32>
  %s = linalg.batch_matmul ins(%a, %b : tensor<32x64x32xf32>, tensor<32x32x64xf32>) outs(%z : tensor<32x64x64xf32>) -> tensor<32x64x64xf32>
  %r = tensor.expand_shape %s [[0, 1], [2], [3]] output_shape [4, 8, 64, 64] : tensor<32x64x64xf32> into tensor<4x8x64x64xf32>
  return %r : tensor<4x8x64x64xf32>
}

// -----

// Not collapsed here: stays what it is.
// CHECK-LABEL: func @plain
// CHECK-NEXT: linalg.batch_matmul
// CHECK-NEXT: return
func.func @plain(%a: tensor<32x64x32xf32>, %b: tensor<32x32x64xf32>, %z: tensor<32x64x64xf32>) -> tensor<32x64x64xf32> {
  %s = linalg.batch_matmul ins(%a, %b : tensor<32x64x32xf32>, tensor<32x32x64xf32>) outs(%z : tensor<32x64x64xf32>) -> tensor<32x64x64xf32>
  return %s : tensor<32x64x64xf32>
}
