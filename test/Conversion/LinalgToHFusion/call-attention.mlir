// Attention is the operator of that name: a loop of the batch, one of heads, of which keys and values may have fewer.
// RUN: hp-opt %s --hp-call-library | FileCheck %s

#q = affine_map<(b, g, r, m, n, k, e) -> (b, m, g, r, k)>
#k = affine_map<(b, g, r, m, n, k, e) -> (b, n, g, k)>
#v = affine_map<(b, g, r, m, n, k, e) -> (b, n, g, e)>
#mask = affine_map<(b, g, r, m, n, k, e) -> (b, m, n)>
#o = affine_map<(b, g, r, m, n, k, e) -> (b, m, g, r, e)>

// Three heads of Q for each of K and V; the mask is the same for all heads (a stride of 0). Nothing is copied.
// CHECK-LABEL: func.func @grouped(
// CHECK-SAME: %[[Q:.*]]: memref<2x5x2x3x4xf32>, %[[K:.*]]: memref<2x7x2x4xf32>, %[[V:.*]]: memref<2x7x2x4xf32>, %[[MASK:.*]]: memref<2x5x7xf32>, %[[O:.*]]: memref<2x5x2x3x4xf32>)
// CHECK-NEXT: %[[MOST:.*]] = memref.alloc() {{.*}} : memref<2x6x5x8xf32>
// CHECK-NEXT: %[[SUMS:.*]] = memref.alloc() {{.*}} : memref<2x6x5x8xf32>
// CHECK-NEXT: call @[[$GROUPED:library_attention[_0-9]*]](%[[Q]], %[[K]], %[[V]], %[[MASK]], %[[MOST]], %[[SUMS]], %[[O]])
// CHECK-NEXT: return
func.func @grouped(%q: memref<2x5x2x3x4xf32>, %k: memref<2x7x2x4xf32>, %v: memref<2x7x2x4xf32>,
                   %mask: memref<2x5x7xf32>, %o: memref<2x5x2x3x4xf32>) {
  fused.attention {indexing_maps = [#q, #k, #v, #mask, #o], scale = 5.0e-01 : f64}
      ins(%q, %k, %v, %mask : memref<2x5x2x3x4xf32>, memref<2x7x2x4xf32>, memref<2x7x2x4xf32>, memref<2x5x7xf32>)
      outs(%o : memref<2x5x2x3x4xf32>)
  return
}

#q1 = affine_map<(r, g, m, n, k, e) -> (r, g, m, k)>
#k1 = affine_map<(r, g, m, n, k, e) -> (g, n, k)>
#v1 = affine_map<(r, g, m, n, k, e) -> (g, n, e)>
#o1 = affine_map<(r, g, m, n, k, e) -> (m, g, r, e)>

// Keys and values are the same along the first loop: the batch's stride is 0. The result of the first of three loops, and a mask
// in another type, are copies.
// CHECK-LABEL: func.func @shared(
// CHECK-SAME: %[[Q:.*]]: memref<2x3x5x4xbf16>, %[[K:.*]]: memref<3x7x4xbf16>, %[[V:.*]]: memref<3x7x4xbf16>, %[[MASK:.*]]: memref<5x7xf32>, %[[O:.*]]: memref<5x3x2x4xbf16>)
// CHECK: %[[NARROW:.*]] = memref.alloc() {{.*}} : memref<2x3x5x7xbf16>
// CHECK: call @[[$CAST:library_cast[_0-9]*]](%[[MASK]], %[[NARROW]])
// CHECK: call @[[$SHARED:library_attention[_0-9]*]](%[[Q]], %[[K]], %[[V]], %[[NARROW]], {{.*}}, {{.*}}, %[[O]])
func.func @shared(%q: memref<2x3x5x4xbf16>, %k: memref<3x7x4xbf16>, %v: memref<3x7x4xbf16>, %mask: memref<5x7xf32>,
                  %o: memref<5x3x2x4xbf16>) {
  fused.attention {indexing_maps = [#q1, #k1, #v1, affine_map<(r, g, m, n, k, e) -> (m, n)>, #o1], scale = 5.0e-01 : f64}
      ins(%q, %k, %v, %mask : memref<2x3x5x4xbf16>, memref<3x7x4xbf16>, memref<3x7x4xbf16>, memref<5x7xf32>)
      outs(%o : memref<5x3x2x4xbf16>)
  return
}

// Words: f32, and batch, heads, rows, columns of Q, K, V, the mask, the rows' numbers and the result; the scale's bits.
// CHECK: func.func private @[[$GROUPED]](
// CHECK-SAME: hp.words = array<i64: 7, 4, 2, 6, 5, 4, 120, 4, 24, 1, 7, 4, 2, 2, 7, 4, 56, 4, 8, 1, 7, 4, 2, 2, 7, 4, 56, 4, 8, 1, 7, 4, 2, 6, 5, 7, 35, 0, 7, 1,
// CHECK-SAME: 7, 4, 2, 6, 5, 4, 120, 4, 24, 1, 4602678819172646912>
