// A public function that is no entry of buffers is refused.
// RUN: hp-opt %s --hp-convert-to-llvm --verify-diagnostics

// expected-error @below {{expected a public function of tensors but got arguments or results of other types}}
func.func @main(%x: f32) -> f32 {
  return %x : f32
}
