// RUN: hp-opt %s --hp-form-device-kernels --split-input-file --verify-diagnostics

#map = affine_map<(i) -> (i)>
func.func @unknown_extent(%a: memref<?xf32>, %b: memref<?xf32>) {
  // expected-error @below {{expected loops of static extent for a kernel of the device but got one of unknown extent}}
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%a : memref<?xf32>) outs(%b : memref<?xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  return
}

// -----

#map = affine_map<(i, j) -> (i, j)>
func.func @too_many(%a: memref<65536x65536xi8>, %b: memref<65536x65536xi8>) {
  // expected-error @below {{expected at most 2147483647 iterations for a kernel of the device but got more}}
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<65536x65536xi8>) outs(%b : memref<65536x65536xi8>) {
  ^bb0(%x: i8, %y: i8):
    linalg.yield %x : i8
  }
  return
}

// -----

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
