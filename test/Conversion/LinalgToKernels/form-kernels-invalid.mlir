// Kernels are formed of ops on buffers.
// RUN: hp-opt %s --hp-form-kernels --verify-diagnostics

#map = affine_map<(i) -> (i)>
func.func @tensors(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{expected an op on buffers but got 'tensor<4xf32>'}}
  // expected-note @below {{bufferize the program first}}
  %0 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%a : tensor<4xf32>) {
  ^bb0(%x: f32):
    linalg.yield %x : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
