// A returned reshape of an allocation is the allocation.
// RUN: hp-opt %s --hp-return-allocations | FileCheck %s

// CHECK-LABEL: func.func @expanded(
// CHECK-NEXT: %[[R:.*]] = memref.alloc() {alignment = 64 : i64} : memref<2x3xf32>
// CHECK-NEXT: %[[A:.*]] = memref.collapse_shape %[[R]] {{\[\[}}0, 1]] : memref<2x3xf32> into memref<6xf32>
// CHECK-NEXT: memref.copy %{{.*}}, %[[A]]
// CHECK-NEXT: return %[[R]]
func.func @expanded(%x: memref<6xf32>) -> memref<2x3xf32> {
  %a = memref.alloc() {alignment = 64 : i64} : memref<6xf32>
  memref.copy %x, %a : memref<6xf32> to memref<6xf32>
  %r = memref.expand_shape %a [[0, 1]] output_shape [2, 3] : memref<6xf32> into memref<2x3xf32>
  return %r : memref<2x3xf32>
}

// Through two reshapes, one of which is used by itself.
// CHECK-LABEL: func.func @twice(
// CHECK-NEXT: %[[R:.*]] = memref.alloc() : memref<3x2xf32>
// CHECK-NEXT: %[[FLAT:.*]] = memref.collapse_shape %[[R]]
// CHECK-NEXT: %[[A:.*]] = memref.expand_shape %[[FLAT]]
// CHECK-NEXT: memref.copy %{{.*}}, %[[A]]
// CHECK-NEXT: memref.load %[[FLAT]]
// CHECK-NEXT: return %[[R]]
func.func @twice(%x: memref<2x3xf32>, %i: index) -> (memref<3x2xf32>, f32) {
  %a = memref.alloc() : memref<2x3xf32>
  memref.copy %x, %a : memref<2x3xf32> to memref<2x3xf32>
  %flat = memref.collapse_shape %a [[0, 1]] : memref<2x3xf32> into memref<6xf32>
  %v = memref.load %flat[%i] : memref<6xf32>
  %r = memref.expand_shape %flat [[0, 1]] output_shape [3, 2] : memref<6xf32> into memref<3x2xf32>
  return %r, %v : memref<3x2xf32>, f32
}

// What is not allocated here, and what is no reshape, stays.
// CHECK-LABEL: func.func @stays(
// CHECK-NEXT: %[[A:.*]] = memref.alloc() : memref<6xf32>
// CHECK-NEXT: %[[E:.*]] = memref.expand_shape
// CHECK-NEXT: return %[[A]], %[[E]]
func.func @stays(%x: memref<6xf32>) -> (memref<6xf32>, memref<2x3xf32>) {
  %a = memref.alloc() : memref<6xf32>
  %e = memref.expand_shape %x [[0, 1]] output_shape [2, 3] : memref<6xf32> into memref<2x3xf32>
  return %a, %e : memref<6xf32>, memref<2x3xf32>
}

// What is returned twice is a copy the second time.
// CHECK-LABEL: func.func @again(
// CHECK: %[[A:.*]] = memref.alloc() : memref<6xf32>
// CHECK: %[[B:.*]] = memref.alloc() : memref<6xf32>
// CHECK-NEXT: memref.copy %[[A]], %[[B]]
// CHECK-NEXT: return %[[A]], %[[B]], %{{.*}} : memref<6xf32>, memref<6xf32>, memref<6xf32>
func.func @again(%x: memref<6xf32>) -> (memref<6xf32>, memref<6xf32>, memref<6xf32>) {
  %a = memref.alloc() : memref<6xf32>
  memref.copy %x, %a : memref<6xf32> to memref<6xf32>
  return %a, %a, %x : memref<6xf32>, memref<6xf32>, memref<6xf32>
}
