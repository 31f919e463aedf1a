// What is not the program of one device, and what the runtime has no elements for, is refused.
// RUN: hp-opt %s --split-input-file --convert-hypershard-to-runtime --verify-diagnostics

hypershard.mesh @m = <["x"=2]>
func.func @unpartitioned(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{expected the program of one device but got hypershard.reshard; run hypershard-partition-program first}}
  %y = hypershard.reshard %x <@m, [{"x"}]> : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

hypershard.mesh @m = <["x"=2]>
func.func @complex_elements(%x: tensor<4xcomplex<f32>>) -> tensor<8xcomplex<f32>> {
  // expected-error @below {{expected elements that the runtime has (i1, i8, i16, i32, i64, f16, bf16, f32, f64) but got 'complex<f32>'}}
  %y = hypershard.all_gather %x over @m {"x"} dim 0 : tensor<4xcomplex<f32>> -> tensor<8xcomplex<f32>>
  return %y : tensor<8xcomplex<f32>>
}
