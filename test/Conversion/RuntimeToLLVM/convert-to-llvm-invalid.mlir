// A public function that is no entry of buffers is refused.
// RUN: hp-opt %s --split-input-file --hp-convert-to-llvm --verify-diagnostics

// expected-error @below {{expected a public function of tensors but got arguments or results of other types}}
func.func @main(%x: f32) -> f32 {
  return %x : f32
}

// -----

// expected-error @below {{expected hp.num_results to be at most the 1 buffers but got 2147483648}}
func.func @main(%x: memref<4xf32>) attributes {hp.num_results = 2147483648 : i64} {
  return
}
