// A product in f32 of bf16 gets operands in f32, made by ops of their own; one whose types agree stays.
// RUN: hp-opt %s --hp-widen-operands | FileCheck %s

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
