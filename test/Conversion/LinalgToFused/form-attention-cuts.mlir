// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Heads may be one dimension of the softmax and two of the products; a softmax that is a call by then is told of.
// RUN: hp-opt %s --hp-form-attention=types=f32 | FileCheck %s
// RUN: hp-opt %s --hp-form-attention="types=f32 most-width=8" | FileCheck %s --check-prefix=WIDE

#q = affine_map<(b, g, r, m, n, k) -> (b, g, r, m, k)>
#k = affine_map<(b, g, r, m, n, k) -> (b, g, n, k)>
#s = affine_map<(b, g, r, m, n, k) -> (b, g, r, m, n)>
#p = affine_map<(b, h, m, e, n) -> (b, h, m, n)>
#v = affine_map<(b, h, m, e, n) -> (b, n, h, e)>
#o = affine_map<(b, h, m, e, n) -> (b, h, m, e)>
#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#row = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#left = affine_map<(m, e, n) -> (m, n)>
#right = affine_map<(m, e, n) -> (n, e)>
#both = affine_map<(m, e, n) -> (m, e)>
#scores = affine_map<(m, n, k) -> (m, k)>
#keys = affine_map<(m, n, k) -> (n, k)>
#matrix = affine_map<(m, n, k) -> (m, n)>

// CHECK: #[[$Q:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3, d5)>
// CHECK: #[[$K:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d4, d5)>
// CHECK: #[[$V:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d1, d2, d6)>
// CHECK: #[[$O:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3, d6)>
// CHECK: hp.attention = {"none: its probabilities are read by others, as by a backward pass" = 1 : i64, "one call" = 1 : i64}
// WIDE: hp.attention = {"none: heads are wider than the back end's call takes" = 1 : i64,
// WIDE-NOT: fused.attention

// Keys have two heads for six of queries; values have six.
// CHECK-LABEL: func.func @grouped(
// CHECK-SAME: %[[Q:.*]]: tensor<2x2x3x8x16xf32>, %[[K:.*]]: tensor<2x2x8x16xf32>, %[[V:.*]]: tensor<2x8x6x16xf32>
// CHECK: %[[VALUES:.*]] = tensor.expand_shape %[[V]] {{\[}}[0], [1], [2, 3], [4]] {{.*}} into tensor<2x8x2x3x16xf32>
// CHECK: %[[INIT:.*]] = tensor.empty() : tensor<2x2x3x8x16xf32>
// CHECK-NEXT: %[[R:.*]] = fused.attention {indexing_maps = [#[[$Q]], #[[$K]], #[[$V]], #[[$O]]], scale = 1.000000e+00 : f64}
// CHECK-SAME: ins(%[[Q]], %[[K]], %[[VALUES]] : {{.*}}) outs(%[[INIT]] : {{.*}})
// CHECK-NEXT: %[[WHOLE:.*]] = tensor.collapse_shape %[[R]] {{\[}}[0], [1, 2], [3], [4]] {{.*}} into tensor<2x6x8x16xf32>
// CHECK-NEXT: return %[[WHOLE]]
func.func @grouped(%q: tensor<2x2x3x8x16xf32>, %k: tensor<2x2x8x16xf32>, %v: tensor<2x8x6x16xf32>) -> tensor<2x6x8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %c = tensor.empty() : tensor<2x2x3x8x8xf32>
  %e = tensor.empty() : tensor<2x6x8x8xf32>
  %r = tensor.empty() : tensor<2x6x8xf32>
  %w = tensor.empty() : tensor<2x6x8x16xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%c : tensor<2x2x3x8x8xf32>) -> tensor<2x2x3x8x8xf32>
  %rz = linalg.fill ins(%zero : f32) outs(%r : tensor<2x6x8xf32>) -> tensor<2x6x8xf32>
  %rl = linalg.fill ins(%lowest : f32) outs(%r : tensor<2x6x8xf32>) -> tensor<2x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%w : tensor<2x6x8x16xf32>) -> tensor<2x6x8x16xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x2x3x8x16xf32>, tensor<2x2x8x16xf32>) outs(%sz : tensor<2x2x3x8x8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x2x3x8x8xf32>
  %t = tensor.collapse_shape %s [[0], [1, 2], [3], [4]] : tensor<2x2x3x8x8xf32> into tensor<2x6x8x8xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%t : tensor<2x6x8x8xf32>) outs(%rl : tensor<2x6x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.maximumf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<2x6x8xf32>
  %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%t, %max : tensor<2x6x8x8xf32>, tensor<2x6x8xf32>) outs(%e : tensor<2x6x8x8xf32>) {
  ^bb0(%x0: f32, %x1: f32, %z: f32):
    %0 = arith.subf %x0, %x1 : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x6x8x8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%exp : tensor<2x6x8x8xf32>) outs(%rz : tensor<2x6x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<2x6x8xf32>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%exp, %sum : tensor<2x6x8x8xf32>, tensor<2x6x8xf32>) outs(%e : tensor<2x6x8x8xf32>) {
  ^bb0(%x0: f32, %x1: f32, %z: f32):
    %0 = arith.divf %x0, %x1 : f32
    linalg.yield %0 : f32
  } -> tensor<2x6x8x8xf32>
  %o = linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<2x6x8x8xf32>, tensor<2x8x6x16xf32>) outs(%oz : tensor<2x6x8x16xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x6x8x16xf32>
  return %o : tensor<2x6x8x16xf32>
}

// What only a product had read would have been left.
func.func private @operator_softmax(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {hp.operator = "softmax"}

// CHECK-LABEL: func.func @outlined(
// CHECK: call @operator_softmax
func.func @outlined(%q: tensor<8x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %w = tensor.empty() : tensor<8x16xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%w : tensor<8x16xf32>) -> tensor<8x16xf32>
  %s = linalg.generic {indexing_maps = [#scores, #keys, #matrix], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<8x16xf32>, tensor<8x16xf32>) outs(%sz : tensor<8x8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<8x8xf32>
  %p = call @operator_softmax(%s) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %o = linalg.generic {indexing_maps = [#left, #right, #both], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<8x8xf32>, tensor<8x16xf32>) outs(%oz : tensor<8x16xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<8x16xf32>
  return %o, %p : tensor<8x16xf32>, tensor<8x8xf32>
}
