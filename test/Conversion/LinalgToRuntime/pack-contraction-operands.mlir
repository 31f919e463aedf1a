// An operand without a unit stride is copied; one that a matmul can read as it is, transposed included, is not.
// RUN: hp-opt %s --hp-pack-contraction-operands | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @strided(
// CHECK-SAME: %[[A:.*]]: memref<4x8xf32, strided<[32, 2]>>, %[[B:.*]]: memref<8x6xf32>, %[[C:.*]]: memref<4x6xf32>
func.func @strided(%a: memref<4x8xf32, strided<[32, 2]>>, %b: memref<8x6xf32>, %c: memref<4x6xf32>) {
  // CHECK: %[[PACKED:.*]] = memref.alloc() {{.*}}: memref<4x8xf32>
  // CHECK: linalg.generic
  // CHECK-SAME: ins(%[[A]] : memref<4x8xf32, strided<[32, 2]>>) outs(%[[PACKED]] : memref<4x8xf32>)
  // CHECK: linalg.generic
  // CHECK-SAME: ins(%[[PACKED]], %[[B]] : memref<4x8xf32>, memref<8x6xf32>) outs(%[[C]] :
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<4x8xf32, strided<[32, 2]>>, memref<8x6xf32>) outs(%c : memref<4x6xf32>) {
  ^bb0(%l: f32, %r: f32, %acc: f32):
    %0 = arith.mulf %l, %r : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// CHECK-LABEL: func.func @transposed
func.func @transposed(%a: memref<4x8xf32>, %b: memref<6x8xf32>, %c: memref<4x6xf32>) {
  // CHECK-NOT: memref.alloc
  linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<4x8xf32>, memref<6x8xf32>) outs(%c : memref<4x6xf32>) {
  ^bb0(%l: f32, %r: f32, %acc: f32):
    %0 = arith.mulf %l, %r : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
