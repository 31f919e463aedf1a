// RUN: hp-opt %s --hp-call-library --verify-diagnostics

#q = affine_map<(b, m, n, k, e) -> (b, m, k)>
#k = affine_map<(b, m, n, k, e) -> (b, n, k)>
#v = affine_map<(b, m, n, k, e) -> (b, n, e)>
#o = affine_map<(b, m, n, k, e) -> (b, m, e)>

func.func @two_widths(%q: memref<2x5x4xf32>, %k: memref<2x7x4xf32>, %v: memref<2x7x6xf32>, %o: memref<2x5x6xf32>) {
  // expected-error @below {{expected keys and values of one width for the operator `attention` but got 4 and 6; run hp-form-attention with equal-widths}}
  fused.attention {indexing_maps = [#q, #k, #v, #o], scale = 5.0e-01 : f64}
      ins(%q, %k, %v : memref<2x5x4xf32>, memref<2x7x4xf32>, memref<2x7x6xf32>) outs(%o : memref<2x5x6xf32>)
  return
}
