// A contraction on buffers is one call of the runtime's matmul; other structured ops stay.
// RUN: hp-opt %s --convert-contractions-to-runtime | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#map = affine_map<(i, j) -> (i, j)>

// CHECK: llvm.func @hp_rt_matmul(!llvm.ptr)

// CHECK-LABEL: func.func @product
func.func @product(%a: memref<4x8xf32>, %b: memref<6x8xf32>, %c: memref<4x6xf32>) {
  // CHECK-NOT: linalg
  // CHECK: llvm.alloca
  // CHECK: llvm.call @hp_rt_matmul
  // CHECK-NOT: linalg
  // CHECK: return
  linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<4x8xf32>, memref<6x8xf32>) outs(%c : memref<4x6xf32>) attrs = {hp.overwrite} {
  ^bb0(%l: f32, %r: f32, %acc: f32):
    %0 = arith.mulf %l, %r : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// CHECK-LABEL: func.func @elementwise
func.func @elementwise(%a: memref<4x8xf32>, %b: memref<4x8xf32>) {
  // CHECK: linalg.generic
  // CHECK-NOT: hp_rt_matmul
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<4x8xf32>) outs(%b : memref<4x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.negf %x : f32
    linalg.yield %0 : f32
  }
  return
}
