// Products take in the bias of their columns and the activations that the library has; what it has not stays, with a reason.
// RUN: hp-opt %s --hp-fold-epilogues=activations=relu,gelu_tanh --split-input-file | FileCheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>

// CHECK: #[[$A:map]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK: #[[$B:map1]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK: #[[$BIAS:map2]] = affine_map<(d0, d1, d2) -> (d1)>
// CHECK: #[[$C:map3]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK: module attributes {hp.epilogues = {"bias and gelu_tanh" = 1 : i64}}
// CHECK-LABEL: func @gelu_tanh
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<8x6xf32>, %[[V:.*]]: tensor<6xf32>
// CHECK: %[[Y:.*]] = linalg.generic {indexing_maps = [#[[$A]], #[[$B]], #[[$BIAS]], #[[$C]]]
// CHECK-SAME: ins(%[[X]], %[[W]], %[[V]] :
// CHECK-SAME: attrs = {hp.epilogue = 3 : i64}
// CHECK: ^bb0(%[[XE:.*]]: f32, %[[WE:.*]]: f32, %[[VE:.*]]: f32, %[[SO_FAR:.*]]: f32):
// CHECK: %[[PRODUCT:.*]] = arith.mulf %[[XE]], %[[WE]]
// CHECK: %[[SUM:.*]] = arith.addf %[[SO_FAR]], %[[PRODUCT]]
// CHECK: %[[WITH:.*]] = arith.addf %[[VE]], %[[SUM]]
// CHECK: math.tanh
// CHECK: arith.mulf %[[WITH]]
// CHECK-NEXT: %[[GELU:.*]] = arith.mulf
// CHECK-NEXT: %[[K:.*]] = linalg.index 2
// CHECK: %[[LAST:.*]] = arith.cmpi eq, %[[K]], %c7
// CHECK: %[[OUT:.*]] = arith.select %[[LAST]], %[[GELU]], %[[SUM]]
// CHECK: linalg.yield %[[OUT]]
// CHECK-NOT: linalg.generic
// CHECK: return %[[Y]]
func.func @gelu_tanh(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>, %v: tensor<6xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 5.000000e-01 : f32
  %one = arith.constant 1.0 : f32
  %root = arith.constant 0.797884583 : f32
  %cubic = arith.constant 4.471500e-02 : f32
  %empty = tensor.empty() : tensor<4x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x6xf32>) -> tensor<4x6xf32>
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>) outs(%init : tensor<4x6xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  %y = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %v : tensor<4x6xf32>, tensor<6xf32>) outs(%empty : tensor<4x6xf32>) {
  ^bb0(%in: f32, %bias: f32, %o: f32):
    %s = arith.addf %bias, %in : f32
    %s2 = arith.mulf %s, %s : f32
    %s3 = arith.mulf %s2, %s : f32
    %c3 = arith.mulf %s3, %cubic : f32
    %inner = arith.addf %s, %c3 : f32
    %arg = arith.mulf %inner, %root : f32
    %t = math.tanh %arg : f32
    %t1 = arith.addf %one, %t : f32
    %h = arith.mulf %s, %half : f32
    %g = arith.mulf %h, %t1 : f32
    linalg.yield %g : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(d0, d1) -> (d0, d1)>
#id3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#col3 = affine_map<(d0, d1, d2) -> (d2)>

// The exact GELU stays in the kernel, without the bias, behind a reshape of the rows.
// CHECK: module attributes {hp.epilogues = {"bias, no more: the library has no epilogue for gelu" = 1 : i64}}
// CHECK-LABEL: func @gelu
// CHECK: %[[Y:.*]] = linalg.generic
// CHECK-SAME: attrs = {hp.epilogue = 0 : i64}
// CHECK: %[[ROWS:.*]] = tensor.expand_shape %[[Y]]
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[ROWS]] : tensor<2x2x6xf32>)
// CHECK-NOT: arith.addf %{{.*}}, %in_
// CHECK: math.erf
func.func @gelu(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>, %v: tensor<6xf32>) -> tensor<2x2x6xf32> {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 5.000000e-01 : f32
  %one = arith.constant 1.0 : f32
  %root = arith.constant 0.707106769 : f32
  %empty = tensor.empty() : tensor<4x6xf32>
  %wide = tensor.empty() : tensor<2x2x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x6xf32>) -> tensor<4x6xf32>
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>) outs(%init : tensor<4x6xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  %rows = tensor.expand_shape %p [[0, 1], [2]] output_shape [2, 2, 6] : tensor<4x6xf32> into tensor<2x2x6xf32>
  %y = linalg.generic {indexing_maps = [#id3, #col3, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%rows, %v : tensor<2x2x6xf32>, tensor<6xf32>) outs(%wide : tensor<2x2x6xf32>) {
  ^bb0(%in: f32, %bias: f32, %o: f32):
    %s = arith.addf %in, %bias : f32
    %arg = arith.mulf %s, %root : f32
    %t = math.erf %arg : f32
    %t1 = arith.addf %t, %one : f32
    %h = arith.mulf %t1, %half : f32
    %g = arith.mulf %s, %h : f32
    linalg.yield %g : f32
  } -> tensor<2x2x6xf32>
  return %y : tensor<2x2x6xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>

// A ReLU without a bias; a vector along the rows; what the ReLU is taken of is needed itself, too; SiLU.
// CHECK: module attributes {hp.epilogues = {
// CHECK-SAME: "bias, no more: what relu is taken of is read by others, too" = 1 : i64
// CHECK-SAME: "none: nothing follows that an epilogue does" = 1 : i64
// CHECK-SAME: "none: the library has no epilogue for silu" = 1 : i64
// CHECK-SAME: relu = 1 : i64
// CHECK-LABEL: func @others
func.func @others(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>, %rows: tensor<4xf32>, %v: tensor<6xf32>)
    -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %empty = tensor.empty() : tensor<4x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x6xf32>) -> tensor<4x6xf32>
  // CHECK: %[[RELU:.*]] = linalg.generic
  // CHECK-SAME: ins(%{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<8x6xf32>)
  // CHECK-SAME: attrs = {hp.epilogue = 1 : i64}
  %p0 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>) outs(%init : tensor<4x6xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  %y0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p0 : tensor<4x6xf32>) outs(%empty : tensor<4x6xf32>) {
  ^bb0(%in: f32, %o: f32):
    %above = arith.cmpf ugt, %in, %zero : f32
    %g = arith.select %above, %in, %zero : f32
    linalg.yield %g : f32
  } -> tensor<4x6xf32>
  // CHECK: linalg.generic
  // CHECK-NOT: hp.epilogue
  // CHECK: linalg.generic
  // CHECK-SAME: tensor<4xf32>
  %p1 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>) outs(%y0 : tensor<4x6xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  %y1 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p1, %rows : tensor<4x6xf32>, tensor<4xf32>) outs(%empty : tensor<4x6xf32>) {
  ^bb0(%in: f32, %of_row: f32, %o: f32):
    %s = arith.addf %in, %of_row : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  // CHECK: linalg.generic
  // CHECK-SAME: tensor<6xf32>
  // CHECK-SAME: attrs = {hp.epilogue = 0 : i64}
  %p2 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>) outs(%y1 : tensor<4x6xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  %y2:2 = linalg.generic {indexing_maps = [#id, #col, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p2, %v : tensor<4x6xf32>, tensor<6xf32>) outs(%empty, %empty : tensor<4x6xf32>, tensor<4x6xf32>) {
  ^bb0(%in: f32, %bias: f32, %o0: f32, %o1: f32):
    %s = arith.addf %in, %bias : f32
    %g = arith.maximumf %s, %zero : f32
    linalg.yield %s, %g : f32, f32
  } -> (tensor<4x6xf32>, tensor<4x6xf32>)
  %p3 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>) outs(%y1 : tensor<4x6xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  %y3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p3 : tensor<4x6xf32>) outs(%empty : tensor<4x6xf32>) {
  ^bb0(%in: f32, %o: f32):
    %minus = arith.negf %in : f32
    %e = math.exp %minus : f32
    %e1 = arith.addf %e, %one : f32
    %sigmoid = arith.divf %one, %e1 : f32
    %g = arith.mulf %in, %sigmoid : f32
    linalg.yield %g : f32
  } -> tensor<4x6xf32>
  return %y1, %y2#0, %y2#1, %y3 : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>
}

// -----

// Nothing may change where there is no product.
// CHECK-NOT: hp.epilogues
// CHECK-LABEL: func @nothing
func.func @nothing(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
