// What is no product of hp_rt_matmul keeps its operands: here it is done in half precision, and widened then.
// RUN: hp-opt %s --hp-unify-product-types | FileCheck %s

// CHECK-LABEL: func.func @rounded(
// CHECK-NOT: tensor.empty
// CHECK: arith.mulf {{.*}} : bf16
func.func @rounded(%a: tensor<4x8xbf16>, %b: tensor<8x6xbf16>, %c: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
      affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<4x8xbf16>, tensor<8x6xbf16>) outs(%c : tensor<4x6xf32>) {
  ^bb0(%x: bf16, %w: bf16, %o: f32):
    %m = arith.mulf %x, %w : bf16
    %p = arith.extf %m : bf16 to f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
