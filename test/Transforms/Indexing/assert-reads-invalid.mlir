// A constant that is no place of its dimension.
// RUN: hp-opt %s --indexing-assert-reads --split-input-file --verify-diagnostics

#map = affine_map<(i) -> (i)>
func.func @beyond(%table: tensor<6xf32>) -> tensor<3xf32> {
  %six = arith.constant 6 : index
  %empty = tensor.empty() : tensor<3xf32>
  %0 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%empty : tensor<3xf32>) {
  ^bb0(%out: f32):
    // expected-error @below {{expected index #0 to be a place of 'tensor<6xf32>' but it is 6}}
    %element = tensor.extract %table[%six] : tensor<6xf32>
    linalg.yield %element : f32
  } -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
