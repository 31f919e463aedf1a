// What an operator would compute otherwise, or twice, stays as it is.
// RUN: hp-opt %s --hp-outline-operators --split-input-file | FileCheck %s

#map = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i, 0)>

// The exponentials are used elsewhere: an operator does not give them.
// CHECK-LABEL: func.func @exponentials_are_wanted(
// CHECK-NOT: call
// CHECK-NOT: hp.operator
func.func @exponentials_are_wanted(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %least = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %rows = tensor.empty() : tensor<4x1xf32>
  %wide = tensor.empty() : tensor<4x8xf32>
  %lowest = linalg.fill ins(%least : f32) outs(%rows : tensor<4x1xf32>) -> tensor<4x1xf32>
  %none = linalg.fill ins(%zero : f32) outs(%rows : tensor<4x1xf32>) -> tensor<4x1xf32>
  %most = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%lowest : tensor<4x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x1xf32>
  %power = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x, %most : tensor<4x8xf32>, tensor<4x1xf32>) outs(%wide : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %sum = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
      ins(%power : tensor<4x8xf32>) outs(%none : tensor<4x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x1xf32>
  %y = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
      ins(%power, %sum : tensor<4x8xf32>, tensor<4x1xf32>) outs(%wide : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  return %y, %power : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

#map = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i, 0)>
#column = affine_map<(i, j) -> (j)>

// The sum is divided by another number than the row has elements.
// CHECK-LABEL: func.func @another_mean(
// CHECK-NOT: call
// CHECK-NOT: hp.operator
func.func @another_mean(%x: tensor<4x8xf32>, %w: tensor<8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 7.0 : f32
  %e = arith.constant 1.0e-5 : f32
  %rows = tensor.empty() : tensor<4x1xf32>
  %wide = tensor.empty() : tensor<4x8xf32>
  %none = linalg.fill ins(%zero : f32) outs(%rows : tensor<4x1xf32>) -> tensor<4x1xf32>
  %square = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%wide : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.mulf %a, %a : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %sum = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
      ins(%square : tensor<4x8xf32>) outs(%none : tensor<4x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x1xf32>
  %y = linalg.generic {indexing_maps = [#map, #row, #column, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum, %w : tensor<4x8xf32>, tensor<4x1xf32>, tensor<8xf32>) outs(%wide : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %m = arith.divf %b, %n : f32
    %s = arith.addf %m, %e : f32
    %q = arith.mulf %a, %c : f32
    %t = math.rsqrt %s : f32
    %r = arith.mulf %q, %t : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
