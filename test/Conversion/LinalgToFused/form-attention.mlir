// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention becomes one op where the back end has a call for it; what stays says why.
// RUN: hp-opt %s --hp-form-attention=types=f32 | FileCheck %s
// RUN: hp-opt %s --hp-form-attention=types=bf16 | FileCheck %s --check-prefix=OTHER
// RUN: hp-opt %s --hp-form-attention="types=f32 most-width=8" | FileCheck %s --check-prefix=WIDE
// RUN: hp-opt %s --hp-form-attention | FileCheck %s --check-prefix=NONE

#q = affine_map<(b, h, m, n, k) -> (b, m, h, k)>
#k = affine_map<(b, h, m, n, k) -> (b, n, h, k)>
#s = affine_map<(b, h, m, n, k) -> (b, h, m, n)>
#p = affine_map<(b, h, m, e, n) -> (b, h, m, n)>
#v = affine_map<(b, h, m, e, n) -> (b, n, h, e)>
#o = affine_map<(b, h, m, e, n) -> (b, h, m, e)>
#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#row = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>

// CHECK: #[[$Q:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d2, d1, d4)>
// CHECK: #[[$K:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d3, d1, d4)>
// CHECK: #[[$V:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d3, d1, d5)>
// CHECK: #[[$O:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d5)>
// CHECK: #[[$CAUSAL:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d2, d3)>
// CHECK: #[[$GIVEN:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d2, d3)>
// CHECK: hp.attention = {"none: its probabilities are read by others, as by a backward pass" = 1 : i64,
// CHECK-SAME: "none: scores go through more than a scale and a mask" = 1 : i64,
// CHECK-SAME: "one call" = 1 : i64, "one call, with a mask" = 2 : i64}
// OTHER: hp.attention = {{.*}}"none: the back end's call does not take f32" = 3 : i64}
// OTHER-NOT: fused.attention
// WIDE: hp.attention = {{.*}}"none: heads are wider than the back end's call takes" = 3 : i64
// WIDE-NOT: fused.attention
// NONE: hp.attention = {{.*}}"none: the back end has no call for it" = 3 : i64}
// NONE-NOT: fused.attention

// Heads stay in the order in which they lie in memory.
// CHECK-LABEL: func.func @plain(
// CHECK-SAME: %[[Q:.*]]: tensor<2x8x4x16xf32>, %[[K:.*]]: tensor<2x8x4x16xf32>, %[[V:.*]]: tensor<2x8x4x16xf32>
// CHECK: %[[INIT:.*]] = tensor.empty() : tensor<2x4x8x16xf32>
// CHECK-NEXT: %[[R:.*]] = fused.attention {indexing_maps = [#[[$Q]], #[[$K]], #[[$V]], #[[$O]]], scale = 2.500000e-01 : f64}
// CHECK-SAME: ins(%[[Q]], %[[K]], %[[V]] : {{.*}}) outs(%[[INIT]] : {{.*}})
// CHECK-NEXT: return %[[R]]
func.func @plain(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %scale = arith.constant 2.5e-01 : f32
  %e = tensor.empty() : tensor<2x4x8x8xf32>
  %r = tensor.empty() : tensor<2x4x8xf32>
  %w = tensor.empty() : tensor<2x4x8x16xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %rz = linalg.fill ins(%zero : f32) outs(%r : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %rl = linalg.fill ins(%lowest : f32) outs(%r : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%w : tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>) outs(%sz : tensor<2x4x8x8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x4x8x8xf32>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s : tensor<2x4x8x8xf32>) outs(%e : tensor<2x4x8x8xf32>) {
  ^bb0(%x0: f32, %z: f32):
    %0 = arith.mulf %x0, %scale : f32
    linalg.yield %0 : f32
  } -> tensor<2x4x8x8xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%t : tensor<2x4x8x8xf32>) outs(%rl : tensor<2x4x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.maximumf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<2x4x8xf32>
  %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%t, %max : tensor<2x4x8x8xf32>, tensor<2x4x8xf32>) outs(%e : tensor<2x4x8x8xf32>) {
  ^bb0(%x0: f32, %x1: f32, %z: f32):
    %0 = arith.subf %x0, %x1 : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x4x8x8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%exp : tensor<2x4x8x8xf32>) outs(%rz : tensor<2x4x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<2x4x8xf32>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%exp, %sum : tensor<2x4x8x8xf32>, tensor<2x4x8xf32>) outs(%e : tensor<2x4x8x8xf32>) {
  ^bb0(%x0: f32, %x1: f32, %z: f32):
    %0 = arith.divf %x0, %x1 : f32
    linalg.yield %0 : f32
  } -> tensor<2x4x8x8xf32>
  %o = linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<2x4x8x8xf32>, tensor<2x8x4x16xf32>) outs(%oz : tensor<2x4x8x16xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x4x8x16xf32>
  return %o : tensor<2x4x8x16xf32>
}

// What the mask is made of depends on rows and columns only: it is computed for these.
// CHECK-LABEL: func.func @causal(
// CHECK: %[[MASK:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<8x8xf32>)
// CHECK: %[[ROW:.*]] = linalg.index 0
// CHECK: %[[COLUMN:.*]] = linalg.index 1
// CHECK: %[[SEES:.*]] = arith.cmpi ule, %[[COLUMN]], %[[ROW]]
// CHECK: arith.select %[[SEES]]
// CHECK: fused.attention {indexing_maps = [#[[$Q]], #[[$K]], #[[$V]], #[[$CAUSAL]], #[[$O]]]
// CHECK-SAME: ins(%{{.*}}, %{{.*}}, %{{.*}}, %[[MASK]] :
// CHECK-NOT: math.exp
func.func @causal(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %scale = arith.constant 2.5e-01 : f32
  %e = tensor.empty() : tensor<2x4x8x8xf32>
  %r = tensor.empty() : tensor<2x4x8xf32>
  %w = tensor.empty() : tensor<2x4x8x16xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %rz = linalg.fill ins(%zero : f32) outs(%r : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %rl = linalg.fill ins(%lowest : f32) outs(%r : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%w : tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>) outs(%sz : tensor<2x4x8x8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x4x8x8xf32>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s : tensor<2x4x8x8xf32>) outs(%e : tensor<2x4x8x8xf32>) {
  ^bb0(%x0: f32, %z: f32):
    %row = linalg.index 2 : index
    %column = linalg.index 3 : index
    %sees = arith.cmpi ule, %column, %row : index
    %m = arith.select %sees, %zero, %lowest : f32
    %0 = arith.mulf %x0, %scale : f32
    %1 = arith.addf %0, %m : f32
    linalg.yield %1 : f32
  } -> tensor<2x4x8x8xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%t : tensor<2x4x8x8xf32>) outs(%rl : tensor<2x4x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.maximumf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<2x4x8xf32>
  %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%t, %max : tensor<2x4x8x8xf32>, tensor<2x4x8xf32>) outs(%e : tensor<2x4x8x8xf32>) {
  ^bb0(%x0: f32, %x1: f32, %z: f32):
    %0 = arith.subf %x0, %x1 : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x4x8x8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%exp : tensor<2x4x8x8xf32>) outs(%rz : tensor<2x4x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<2x4x8xf32>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%exp, %sum : tensor<2x4x8x8xf32>, tensor<2x4x8xf32>) outs(%e : tensor<2x4x8x8xf32>) {
  ^bb0(%x0: f32, %x1: f32, %z: f32):
    %0 = arith.divf %x0, %x1 : f32
    linalg.yield %0 : f32
  } -> tensor<2x4x8x8xf32>
  %o = linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<2x4x8x8xf32>, tensor<2x8x4x16xf32>) outs(%oz : tensor<2x4x8x16xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x4x8x16xf32>
  return %o : tensor<2x4x8x16xf32>
}

// A mask that is there is taken as it is.
// CHECK-LABEL: func.func @given(
// CHECK-SAME: %[[GIVEN:[a-z0-9]+]]: tensor<2x8x8xf32>
// CHECK-NOT: linalg.generic
// CHECK: fused.attention {indexing_maps = [#[[$Q]], #[[$K]], #[[$V]], #[[$GIVEN]], #[[$O]]]
// CHECK-SAME: ins(%{{.*}}, %{{.*}}, %{{.*}}, %[[GIVEN]] :
func.func @given(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %mask: tensor<2x8x8xf32>) -> tensor<2x4x8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %scale = arith.constant 2.5e-01 : f32
  %e = tensor.empty() : tensor<2x4x8x8xf32>
  %r = tensor.empty() : tensor<2x4x8xf32>
  %w = tensor.empty() : tensor<2x4x8x16xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %rz = linalg.fill ins(%zero : f32) outs(%r : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %rl = linalg.fill ins(%lowest : f32) outs(%r : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%w : tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>) outs(%sz : tensor<2x4x8x8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x4x8x8xf32>
  %t = linalg.generic {indexing_maps = [#id, affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s, %mask : tensor<2x4x8x8xf32>, tensor<2x8x8xf32>) outs(%e : tensor<2x4x8x8xf32>) {
  ^bb0(%x0: f32, %x1: f32, %z: f32):
    %0 = arith.mulf %x0, %scale : f32
    %1 = arith.addf %0, %x1 : f32
    linalg.yield %1 : f32
  } -> tensor<2x4x8x8xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%t : tensor<2x4x8x8xf32>) outs(%rl : tensor<2x4x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.maximumf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<2x4x8xf32>
  %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%t, %max : tensor<2x4x8x8xf32>, tensor<2x4x8xf32>) outs(%e : tensor<2x4x8x8xf32>) {
  ^bb0(%x0: f32, %x1: f32, %z: f32):
    %0 = arith.subf %x0, %x1 : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x4x8x8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%exp : tensor<2x4x8x8xf32>) outs(%rz : tensor<2x4x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<2x4x8xf32>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%exp, %sum : tensor<2x4x8x8xf32>, tensor<2x4x8xf32>) outs(%e : tensor<2x4x8x8xf32>) {
  ^bb0(%x0: f32, %x1: f32, %z: f32):
    %0 = arith.divf %x0, %x1 : f32
    linalg.yield %0 : f32
  } -> tensor<2x4x8x8xf32>
  %o = linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<2x4x8x8xf32>, tensor<2x8x4x16xf32>) outs(%oz : tensor<2x4x8x16xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x4x8x16xf32>
  return %o : tensor<2x4x8x16xf32>
}

// The backward pass needs the probabilities.
// CHECK-LABEL: func.func @kept(
// CHECK-NOT: fused.attention
// CHECK: math.exp
func.func @kept(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %scale = arith.constant 2.5e-01 : f32
  %e = tensor.empty() : tensor<2x4x8x8xf32>
  %r = tensor.empty() : tensor<2x4x8xf32>
  %w = tensor.empty() : tensor<2x4x8x16xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %rz = linalg.fill ins(%zero : f32) outs(%r : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %rl = linalg.fill ins(%lowest : f32) outs(%r : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%w : tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>) outs(%sz : tensor<2x4x8x8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x4x8x8xf32>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s : tensor<2x4x8x8xf32>) outs(%e : tensor<2x4x8x8xf32>) {
  ^bb0(%x0: f32, %z: f32):
    %0 = arith.mulf %x0, %scale : f32
    linalg.yield %0 : f32
  } -> tensor<2x4x8x8xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%t : tensor<2x4x8x8xf32>) outs(%rl : tensor<2x4x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.maximumf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<2x4x8xf32>
  %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%t, %max : tensor<2x4x8x8xf32>, tensor<2x4x8xf32>) outs(%e : tensor<2x4x8x8xf32>) {
  ^bb0(%x0: f32, %x1: f32, %z: f32):
    %0 = arith.subf %x0, %x1 : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x4x8x8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%exp : tensor<2x4x8x8xf32>) outs(%rz : tensor<2x4x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<2x4x8xf32>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%exp, %sum : tensor<2x4x8x8xf32>, tensor<2x4x8xf32>) outs(%e : tensor<2x4x8x8xf32>) {
  ^bb0(%x0: f32, %x1: f32, %z: f32):
    %0 = arith.divf %x0, %x1 : f32
    linalg.yield %0 : f32
  } -> tensor<2x4x8x8xf32>
  %o = linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<2x4x8x8xf32>, tensor<2x8x4x16xf32>) outs(%oz : tensor<2x4x8x16xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x4x8x16xf32>
  return %o, %p : tensor<2x4x8x16xf32>, tensor<2x4x8x8xf32>
}

// Scores that are replaced are not masked by a sum.
// CHECK-LABEL: func.func @replaced(
// CHECK-NOT: fused.attention
// CHECK: math.exp
func.func @replaced(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %mask: tensor<2x8x8xi1>) -> tensor<2x4x8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %scale = arith.constant 2.5e-01 : f32
  %e = tensor.empty() : tensor<2x4x8x8xf32>
  %r = tensor.empty() : tensor<2x4x8xf32>
  %w = tensor.empty() : tensor<2x4x8x16xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %rz = linalg.fill ins(%zero : f32) outs(%r : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %rl = linalg.fill ins(%lowest : f32) outs(%r : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%w : tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>) outs(%sz : tensor<2x4x8x8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x4x8x8xf32>
  %t = linalg.generic {indexing_maps = [#id, affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s, %mask : tensor<2x4x8x8xf32>, tensor<2x8x8xi1>) outs(%e : tensor<2x4x8x8xf32>) {
  ^bb0(%x0: f32, %x1: i1, %z: f32):
    %0 = arith.select %x1, %x0, %lowest : f32
    linalg.yield %0 : f32
  } -> tensor<2x4x8x8xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%t : tensor<2x4x8x8xf32>) outs(%rl : tensor<2x4x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.maximumf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<2x4x8xf32>
  %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%t, %max : tensor<2x4x8x8xf32>, tensor<2x4x8xf32>) outs(%e : tensor<2x4x8x8xf32>) {
  ^bb0(%x0: f32, %x1: f32, %z: f32):
    %0 = arith.subf %x0, %x1 : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x4x8x8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%exp : tensor<2x4x8x8xf32>) outs(%rz : tensor<2x4x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<2x4x8xf32>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%exp, %sum : tensor<2x4x8x8xf32>, tensor<2x4x8xf32>) outs(%e : tensor<2x4x8x8xf32>) {
  ^bb0(%x0: f32, %x1: f32, %z: f32):
    %0 = arith.divf %x0, %x1 : f32
    linalg.yield %0 : f32
  } -> tensor<2x4x8x8xf32>
  %o = linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<2x4x8x8xf32>, tensor<2x8x4x16xf32>) outs(%oz : tensor<2x4x8x16xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x4x8x16xf32>
  return %o : tensor<2x4x8x16xf32>
}
