// RUN: hp-opt %s --hp-form-fragments --split-input-file --verify-diagnostics

#map = affine_map<(i) -> (i)>
func.func @doubles(%a: memref<4xf64>, %b: memref<4xf64>) {
  // expected-error @below {{expected elements of i1, i8, i16, i32, i64, f16, bf16 or f32 for Ascend but got 'f64'; compute it in f32}}
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%a : memref<4xf64>) outs(%b : memref<4xf64>) {
  ^bb0(%x: f64, %y: f64):
    linalg.yield %x : f64
  }
  return
}

// -----

func.func @windows(%a: memref<7xf32>, %b: memref<4xf32>) {
  // expected-error @below {{expected an operand that loops read whole, each dimension by a loop of its own, for Ascend but got the map}}
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i + j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>], iterator_types = ["parallel", "reduction"]}
      ins(%a, %b : memref<7xf32>, memref<4xf32>) outs(%b : memref<4xf32>) {
  ^bb0(%x: f32, %w: f32, %y: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#map = affine_map<(i) -> (i)>
func.func @no_such_op(%a: memref<4xi32>, %b: memref<4xi32>) {
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%a : memref<4xi32>) outs(%b : memref<4xi32>) {
  ^bb0(%x: i32, %y: i32):
    // expected-error @below {{expected an op that Ascend has for whole tensors but got math.ctpop}}
    %0 = math.ctpop %x : i32
    linalg.yield %0 : i32
  }
  return
}

// -----

#map = affine_map<(i) -> (i)>
func.func @known_at_run_time(%s: f32, %b: memref<4xf32>) {
  // expected-error @below {{expected scalars that are known when the program is compiled, for Ascend, but got one of type 'f32'}}
  linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%b : memref<4xf32>) {
  ^bb0(%y: f32):
    linalg.yield %s : f32
  }
  return
}

// -----

#map = affine_map<(i) -> (i)>
func.func @unsigned(%a: memref<4xi64>, %c: memref<4xi64>, %b: memref<4xi1>) {
  linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
      ins(%a, %c : memref<4xi64>, memref<4xi64>) outs(%b : memref<4xi1>) {
  ^bb0(%x: i64, %z: i64, %y: i1):
    // expected-error @below {{expected a comparison that Ascend has but got one without sign of two numbers that may be negative}}
    %0 = arith.cmpi ult, %x, %z : i64
    linalg.yield %0 : i1
  }
  return
}

// -----

func.func @two_combiners(%a: memref<4xf32>, %b: memref<f32>) {
  // expected-error @below {{expected a reduction by one operation, such as a sum or a maximum, for Ascend}}
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%a : memref<4xf32>) outs(%b : memref<f32>) {
  ^bb0(%x: f32, %s: f32):
    %0 = arith.mulf %s, %s : f32
    %1 = arith.addf %x, %0 : f32
    linalg.yield %1 : f32
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

// -----

// expected-error @below {{expected hp.refused to be texts but got [1, 2]}}
module attributes {hp.refused = [1, 2]} {}
