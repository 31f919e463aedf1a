// Structured ops on buffers become functions over a range of outer iterations; equal ones are written once.
// RUN: hp-opt %s --hp-form-kernels | FileCheck %s

#map = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: func.func @scale(
// CHECK-SAME: %[[A:.*]]: memref<16x8xf32>, %[[B:.*]]: memref<16x8xf32>
// CHECK-NOT: linalg
// CHECK-DAG: %[[ROWS:.*]] = arith.constant 16 : index
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK: call @[[$KERNEL:.*]](%[[A]], %[[B]], %{{.*}}, %{{.*}})
func.func @scale(%a: memref<16x8xf32>, %b: memref<16x8xf32>) {
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<16x8xf32>) outs(%b : memref<16x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.negf %x : f32
    linalg.yield %0 : f32
  }
  return
}

// CHECK-LABEL: func.func @the_same_again
// CHECK: call @[[$KERNEL]](
func.func @the_same_again(%a: memref<16x8xf32>, %b: memref<16x8xf32>) {
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<16x8xf32>) outs(%b : memref<16x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.negf %x : f32
    linalg.yield %0 : f32
  }
  return
}

// A contraction that the runtime computes is left alone.
// CHECK-LABEL: func.func @contraction
// CHECK: linalg.matmul
func.func @contraction(%a: memref<4x8xf32>, %b: memref<8x6xf32>, %c: memref<4x6xf32>) {
  linalg.matmul ins(%a, %b : memref<4x8xf32>, memref<8x6xf32>) outs(%c : memref<4x6xf32>)
  return
}

// CHECK: func.func private @[[$KERNEL]](%[[IN:.*]]: memref<16x8xf32> {llvm.noalias}, %[[OUT:.*]]: memref<16x8xf32> {llvm.noalias}, %[[BEGIN:.*]]: index, %[[END:.*]]: index)
// CHECK: scf.for %[[I:.*]] = %[[BEGIN]] to %[[END]]
// CHECK: scf.for %[[J:.*]] =
// CHECK: %[[X:.*]] = memref.load %[[IN]][%[[I]], %[[J]]]
// CHECK: %[[Y:.*]] = arith.negf %[[X]]
// CHECK: memref.store %[[Y]], %[[OUT]][%[[I]], %[[J]]]
