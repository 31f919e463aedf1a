// A fragment whose text was refused before, as its digest says, is cut in parts that hand tensors on.
// RUN: hp-opt %s --hp-form-fragments | FileCheck %s

#map = affine_map<(i, j) -> (i, j)>

module attributes {hp.refused = ["9534843e770f12be42905348c1443995"]} {

// A comparison is handed on as bytes.
// CHECK-NOT: hp.refused
// CHECK-LABEL: func.func @chain(
// CHECK-SAME: %[[A:.*]]: memref<4x8xf32>, %[[B:.*]]: memref<4x8xf32>
// CHECK: %[[BYTES:.*]] = memref.alloc() {{.*}} : memref<4x8xi8>
// CHECK: call @fragment0_of_chain(%[[A]], %[[BYTES]])
// CHECK: call @fragment1_of_chain(%[[A]], %[[BYTES]], %[[B]])
func.func @chain(%a: memref<4x8xf32>, %b: memref<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<4x8xf32>) outs(%b : memref<4x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.cmpf ogt, %x, %zero : f32
    %1 = arith.select %0, %x, %zero : f32
    linalg.yield %1 : f32
  }
  return
}

// Others stay whole.
// CHECK-LABEL: func.func @whole(
// CHECK-COUNT-1: call @fragment
// CHECK-NOT: call @fragment
// CHECK: func.func private @fragment0_of_chain
// CHECK-SAME: hp.fragment = "func.func @fragment(%arg0: tensor<4x8xf32>) -> (tensor<4x8xi8>)
// CHECK: func.func private @fragment1_of_chain
// CHECK-SAME: hp.fragment = "func.func @fragment(%arg0: tensor<4x8xf32>, %[[NAME:[a-z0-9]+]]: tensor<4x8xi8>) -> (tensor<4x8xf32>)
// CHECK-SAME: hfusion.compare {compare_fn = #hfusion.compare_fn<vne>} ins(%[[NAME]]
func.func @whole(%a: memref<4x8xf32>, %b: memref<4x8xf32>) {
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<4x8xf32>) outs(%b : memref<4x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = math.exp %x : f32
    %1 = arith.negf %0 : f32
    linalg.yield %1 : f32
  }
  return
}
}
