// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every message of the dialect.
// RUN: hp-opt %s --split-input-file --verify-diagnostics

#q = affine_map<(m, n, k, e) -> (m, k)>
#k = affine_map<(m, n, k, e) -> (n, k)>
func.func @c1_inputs(%q: tensor<8x4xf32>, %k: tensor<6x4xf32>, %o: tensor<8x4xf32>) {
  // expected-error @below {{expected Q, K, V and perhaps a mask, with a map each and one for the init, but got 2 inputs and 3 maps}}
  %0 = fused.attention {indexing_maps = [#q, #k, #q], scale = 1.0 : f64}
    ins(%q, %k : tensor<8x4xf32>, tensor<6x4xf32>) outs(%o : tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
func.func @c1_loops(%q: tensor<8x4xf32>) {
  // expected-error @below {{expected loops of the batch, m, n, k and e but got 3 loops}}
  %0 = fused.attention {indexing_maps = [#a, #a, #a, #a], scale = 1.0 : f64}
    ins(%q, %q, %q : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) outs(%q : tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

#q = affine_map<(m, n, k, e) -> (m, k)>
#k = affine_map<(m, n, k, e) -> (n)>
#v = affine_map<(m, n, k, e) -> (n, e)>
#o = affine_map<(m, n, k, e) -> (m, e)>
func.func @c1_map(%q: tensor<8x4xf32>, %k: tensor<6x4xf32>, %o: tensor<8x4xf32>) {
  // expected-error @below {{expected a map of 4 loops to the 2 dimensions of K but got}}
  %0 = fused.attention {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f64}
    ins(%q, %k, %k : tensor<8x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>) outs(%o : tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

#q = affine_map<(m, n, k, e) -> (m, k)>
#k = affine_map<(m, n, k, e) -> (m, k)>
#v = affine_map<(m, n, k, e) -> (n, e)>
#o = affine_map<(m, n, k, e) -> (m, e)>
func.func @c2_foreign(%q: tensor<8x4xf32>, %k: tensor<8x4xf32>, %o: tensor<8x4xf32>) {
  // expected-error @below {{expected each dimension of K to move with a loop of its own but got}}
  %0 = fused.attention {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f64}
    ins(%q, %k, %k : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) outs(%o : tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

#q = affine_map<(m, n, k, e) -> (m, 0)>
#k = affine_map<(m, n, k, e) -> (n, k)>
#v = affine_map<(m, n, k, e) -> (n, e)>
#o = affine_map<(m, n, k, e) -> (m, e)>
func.func @c2_missing(%q: tensor<8x1xf32>, %k: tensor<6x4xf32>, %o: tensor<8x4xf32>) {
  // expected-error @below {{expected Q to move with loop 2 but got}}
  %0 = fused.attention {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f64}
    ins(%q, %k, %k : tensor<8x1xf32>, tensor<6x4xf32>, tensor<6x4xf32>) outs(%o : tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

#q = affine_map<(m, n, k, e) -> (m, k)>
#k = affine_map<(m, n, k, e) -> (n, k)>
#v = affine_map<(m, n, k, e) -> (n, e)>
#o = affine_map<(m, n, k, e) -> (m, e)>
func.func @c3_extent(%q: tensor<8x4xf32>, %k: tensor<6x5xf32>, %o: tensor<8x4xf32>) {
  // expected-error @below {{expected loop 2 to have one extent but got 4 and 5 (K)}}
  %0 = fused.attention {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f64}
    ins(%q, %k, %k : tensor<8x4xf32>, tensor<6x5xf32>, tensor<6x5xf32>) outs(%o : tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

#q = affine_map<(m, n, k, e) -> (m, k)>
#k = affine_map<(m, n, k, e) -> (n, k)>
#v = affine_map<(m, n, k, e) -> (n, e)>
#o = affine_map<(m, n, k, e) -> (m, e)>
func.func @c3_static(%q: tensor<8x4xf32>, %k: tensor<?x4xf32>, %o: tensor<8x4xf32>) {
  // expected-error @below {{expected static shapes but got 'tensor<?x4xf32>' for K}}
  %0 = fused.attention {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f64}
    ins(%q, %k, %k : tensor<8x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>) outs(%o : tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

#q = affine_map<(m, n, k, e) -> (m, k)>
#k = affine_map<(m, n, k, e) -> (n, k)>
#v = affine_map<(m, n, k, e) -> (n, e)>
#o = affine_map<(m, n, k, e) -> (m, e)>
func.func @c4_elements(%q: tensor<8x4xbf16>, %k: tensor<6x4xf32>, %o: tensor<8x4xf32>) {
  // expected-error @below {{expected floats of the init's type 'f32' but got 'bf16' for Q}}
  %0 = fused.attention {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f64}
    ins(%q, %k, %k : tensor<8x4xbf16>, tensor<6x4xf32>, tensor<6x4xf32>) outs(%o : tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

#q = affine_map<(m, n, k, e) -> (m, k)>
#k = affine_map<(m, n, k, e) -> (n, k)>
#v = affine_map<(m, n, k, e) -> (n, e)>
#o = affine_map<(m, n, k, e) -> (m, e)>
func.func @c5_mixed(%q: tensor<8x4xf32>, %k: memref<6x4xf32>, %v: tensor<6x4xf32>, %o: tensor<8x4xf32>) {
  // expected-error @below {{expected operands all to be tensors, or all buffers, but got 'memref<6x4xf32>' for K}}
  %0 = fused.attention {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f64}
    ins(%q, %k, %v : tensor<8x4xf32>, memref<6x4xf32>, tensor<6x4xf32>) outs(%o : tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

#q = affine_map<(m, n, k, e) -> (m, k)>
#k = affine_map<(m, n, k, e) -> (n, k)>
#v = affine_map<(m, n, k, e) -> (n, e)>
#o = affine_map<(m, n, k, e) -> (m, e)>
func.func @c5_result(%q: tensor<8x4xf32>, %k: tensor<6x4xf32>, %o: tensor<8x4xf32>) {
  // expected-error @below {{expected a result of the init's type for tensors, and none for buffers}}
  fused.attention {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f64}
    ins(%q, %k, %k : tensor<8x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>) outs(%o : tensor<8x4xf32>)
  return
}
