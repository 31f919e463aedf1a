// A product in f32 of bf16 gets operands in f32, made by ops of their own; one whose types agree stays.
// RUN: hp-opt %s --hp-unify-product-types | FileCheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @mixed(
// CHECK-SAME: %[[A:.*]]: tensor<4x8xbf16>, %[[B:.*]]: tensor<8x6xbf16>, %[[C:.*]]: tensor<4x6xf32>
// CHECK: %[[WIDE_A:.*]] = linalg.generic {{.*}} ins(%[[A]] : tensor<4x8xbf16>)
// CHECK: arith.extf
// CHECK: %[[WIDE_B:.*]] = linalg.generic {{.*}} ins(%[[B]] : tensor<8x6xbf16>)
// CHECK: arith.extf
// CHECK: linalg.generic {{.*}} ins(%[[WIDE_A]], %[[WIDE_B]] : tensor<4x8xf32>, tensor<8x6xf32>) outs(%[[C]]
// CHECK-NOT: arith.extf
// CHECK: arith.mulf
func.func @mixed(%a: tensor<4x8xbf16>, %b: tensor<8x6xbf16>, %c: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<4x8xbf16>, tensor<8x6xbf16>) outs(%c : tensor<4x6xf32>) {
  ^bb0(%x: bf16, %w: bf16, %o: f32):
    %p = arith.extf %x : bf16 to f32
    %q = arith.extf %w : bf16 to f32
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// CHECK-LABEL: func.func @alike(
// CHECK-NOT: arith.extf
// CHECK: return
func.func @alike(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %c: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%c : tensor<4x6xf32>) {
  ^bb0(%x: f32, %w: f32, %o: f32):
    %m = arith.mulf %x, %w : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// All that is done with the sum is to round it: the product does, through the reshape.
// CHECK-LABEL: func.func @rounded(
// CHECK-SAME: %[[A:.*]]: tensor<4x8xbf16>, %[[B:.*]]: tensor<8x6xbf16>
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%[[A]], %[[B]] : tensor<4x8xbf16>, tensor<8x6xbf16>) outs({{.*}} : tensor<4x6xbf16>)
// CHECK: tensor.expand_shape %[[Y]] {{.*}} : tensor<4x6xbf16> into tensor<2x2x6xbf16>
// CHECK: ^bb0(%[[X:.*]]: bf16, {{.*}}):
// CHECK-NEXT: arith.negf %[[X]]
func.func @rounded(%a: tensor<4x8xbf16>, %b: tensor<8x6xbf16>) -> tensor<2x2x6xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %c = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<4x8xbf16>, tensor<8x6xbf16>) outs(%c : tensor<4x6xf32>) {
  ^bb0(%x: bf16, %w: bf16, %o: f32):
    %p = arith.extf %x : bf16 to f32
    %q = arith.extf %w : bf16 to f32
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  %expanded = tensor.expand_shape %y [[0, 1], [2]] output_shape [2, 2, 6] : tensor<4x6xf32> into tensor<2x2x6xf32>
  %h = tensor.empty() : tensor<2x2x6xbf16>
  %z = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>],
      iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x2x6xf32>) outs(%h : tensor<2x2x6xbf16>) {
  ^bb0(%x: f32, %o: bf16):
    %t = arith.truncf %x : f32 to bf16
    %r = arith.negf %t : bf16
    linalg.yield %r : bf16
  } -> tensor<2x2x6xbf16>
  return %z : tensor<2x2x6xbf16>
}
