// What one operator computes goes into a function of its own, with the ops as they were.
// RUN: hp-opt %s --hp-outline-operators --split-input-file | FileCheck %s

#map = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i, 0)>
#column = affine_map<(i, j) -> (j)>

// CHECK-LABEL: func.func @softmax(
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
// CHECK-NEXT: %[[Y:.*]] = call @operator_softmax(%[[X]]) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT: return %[[Y]]
// CHECK: func.func private @operator_softmax(
// CHECK-SAME: hp.operator = "softmax", hp.results = array<i64: 0>
// CHECK: arith.maximumf
// CHECK: math.exp
// CHECK: arith.divf
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
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
  // Two ops in one body are the same as one after the other.
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
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<4x1xf32>
  %y = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
      ins(%power, %sum : tensor<4x8xf32>, tensor<4x1xf32>) outs(%wide : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

#map = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i, 0)>
#column = affine_map<(i, j) -> (j)>

// In bf16, with the mean square in f32; the reciprocal is wanted elsewhere, so it is a result, too.
// CHECK-LABEL: func.func @rms_norm(
// CHECK: %[[Y:.*]]:2 = call @operator_rms_norm(
// CHECK-NEXT: return %[[Y]]#0, %[[Y]]#1
// CHECK: hp.epsilon = {{.*}}, hp.operator = "rms_norm", hp.results = array<i64: 0, 1>
func.func @rms_norm(%x: tensor<4x8xbf16>, %w: tensor<8xbf16>) -> (tensor<4x8xbf16>, tensor<4x1xf32>) {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 8.0 : f32
  %e = arith.constant 1.0e-5 : f32
  %rows = tensor.empty() : tensor<4x1xf32>
  %wide = tensor.empty() : tensor<4x8xbf16>
  %single = tensor.empty() : tensor<4x8xf32>
  %none = linalg.fill ins(%zero : f32) outs(%rows : tensor<4x1xf32>) -> tensor<4x1xf32>
  %square = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xbf16>) outs(%single : tensor<4x8xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %r = arith.mulf %f, %f : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %sum = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
      ins(%square : tensor<4x8xf32>) outs(%none : tensor<4x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x1xf32>
  %rstd = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<4x1xf32>) outs(%rows : tensor<4x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.divf %a, %n : f32
    %s = arith.addf %m, %e : f32
    %r = math.rsqrt %s : f32
    linalg.yield %r : f32
  } -> tensor<4x1xf32>
  %y = linalg.generic {indexing_maps = [#map, #row, #column, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x, %rstd, %w : tensor<4x8xbf16>, tensor<4x1xf32>, tensor<8xbf16>) outs(%wide : tensor<4x8xbf16>) {
  ^bb0(%a: bf16, %b: f32, %c: bf16, %o: bf16):
    %f = arith.extf %a : bf16 to f32
    %s = arith.mulf %f, %b : f32
    %h = arith.truncf %s : f32 to bf16
    %r = arith.mulf %c, %h : bf16
    linalg.yield %r : bf16
  } -> tensor<4x8xbf16>
  return %y, %rstd : tensor<4x8xbf16>, tensor<4x1xf32>
}
