// RUN: hp-opt %s --hp-call-library --split-input-file --verify-diagnostics

#map = affine_map<(i) -> (i)>
func.func @unknown_extent(%rows: memref<?xi64>, %table: memref<?xf32>, %out: memref<?xf32>) {
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%rows : memref<?xi64>) outs(%out : memref<?xf32>) {
  ^bb0(%n: i64, %o: f32):
    %i = arith.index_cast %n : i64 to index
    // expected-error @below {{expected a gather of static shape in an op without reductions for a vendor's operator}}
    %x = memref.load %table[%i] : memref<?xf32>
    linalg.yield %x : f32
  }
  return
}

// -----

#map = affine_map<(i) -> (i)>
func.func @unknown_strides(%a: memref<4xf32, strided<[?]>>, %b: memref<4xf32>) {
  // expected-error @below {{expected buffers of static shape and strides for a vendor's operators but got}}
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%a : memref<4xf32, strided<[?]>>) outs(%b : memref<4xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.negf %x : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#map = affine_map<(i, j) -> (i, j)>
func.func @index_along_the_row(%rows: memref<5x4xi64>, %table: memref<9x4xf32>, %out: memref<5x4xf32>) {
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%rows : memref<5x4xi64>) outs(%out : memref<5x4xf32>) {
  ^bb0(%n: i64, %o: f32):
    %i = arith.index_cast %n : i64 to index
    %j = linalg.index 1 : index
    // expected-error @below {{expected the index of a row that does not depend on the place in the row}}
    %x = memref.load %table[%i, %j] : memref<9x4xf32>
    linalg.yield %x : f32
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
