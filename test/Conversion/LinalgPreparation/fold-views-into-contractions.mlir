// A matmul reads a transposed or broadcast operand in place; copies that nothing else needs are gone.
// RUN: hp-opt %s --split-input-file --hp-fold-views-into-contractions | FileCheck %s

// CHECK-DAG: #[[$MK:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[$NK:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[$MN:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>

// CHECK-LABEL: func.func @transposed_weight(
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<6x8xf32>
func.func @transposed_weight(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>) -> tensor<4x6xf32> {
  // CHECK-NOT: tensor<8x6xf32>
  // CHECK: linalg.generic {indexing_maps = [#[[$MK]], #[[$NK]], #[[$MN]]]
  // CHECK-SAME: ins(%[[X]], %[[W]] :
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x6xf32>
  %t = linalg.transpose ins(%w : tensor<6x8xf32>) outs(%e : tensor<8x6xf32>) permutation = [1, 0]
  %o = tensor.empty() : tensor<4x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.matmul ins(%x, %t : tensor<4x8xf32>, tensor<8x6xf32>) outs(%f : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// -----

// One weight for every member of the batch: no copies of it.
// CHECK-LABEL: func.func @broadcast_weight(
// CHECK-SAME: %{{.*}}: tensor<3x4x8xf32>, %[[W:.*]]: tensor<8x6xf32>
func.func @broadcast_weight(%x: tensor<3x4x8xf32>, %w: tensor<8x6xf32>, %o: tensor<3x4x6xf32>) -> tensor<3x4x6xf32> {
  // CHECK-NOT: tensor<3x8x6xf32>
  // CHECK: linalg.generic
  // CHECK-SAME: ins(%{{.*}}, %[[W]] : tensor<3x4x8xf32>, tensor<8x6xf32>)
  %e = tensor.empty() : tensor<3x8x6xf32>
  %b = linalg.broadcast ins(%w : tensor<8x6xf32>) outs(%e : tensor<3x8x6xf32>) dimensions = [0]
  %y = linalg.batch_matmul ins(%x, %b : tensor<3x4x8xf32>, tensor<3x8x6xf32>) outs(%o : tensor<3x4x6xf32>) -> tensor<3x4x6xf32>
  return %y : tensor<3x4x6xf32>
}

// -----

// A transpose that is asked for by itself stays.
// CHECK-LABEL: func.func @no_contraction
func.func @no_contraction(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
  // CHECK: linalg.generic
  // CHECK-SAME: iterator_types = ["parallel", "parallel"]
  // CHECK-SAME: outs(%{{.*}} : tensor<8x4xf32>)
  %e = tensor.empty() : tensor<8x4xf32>
  %t = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  return %t : tensor<8x4xf32>
}
