// Structured ops on buffers become kernels of a device. How a group runs follows from its loops.
// RUN: hp-opt %s --hp-form-device-kernels | FileCheck %s

#map = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>

// A thread does four neighbours of 4 bytes: 16 * 8 / 4 = 32 threads.
// CHECK-LABEL: func.func @elements(
// CHECK-SAME: %[[A:.*]]: memref<16x8xf32>, %[[B:.*]]: memref<16x8xf32>
// CHECK-NEXT: call @[[$ELEMENTS:[a-z_0-9]+]](%[[A]], %[[B]])
func.func @elements(%a: memref<16x8xf32>, %b: memref<16x8xf32>) {
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<16x8xf32>) outs(%b : memref<16x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.negf %x : f32
    linalg.yield %0 : f32
  }
  return
}

// Equal kernels are written once.
// CHECK-LABEL: func.func @the_same_again
// CHECK: call @[[$ELEMENTS]](
func.func @the_same_again(%a: memref<16x8xf32>, %b: memref<16x8xf32>) {
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<16x8xf32>) outs(%b : memref<16x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.negf %x : f32
    linalg.yield %0 : f32
  }
  return
}

// A block does a row; its threads share the row and combine their sums. What only the row needs is shared memory.
// CHECK-LABEL: func.func @rows(
// CHECK-NOT: memref.alloc
// CHECK: call @[[$ROWS:[a-z_0-9]+]](
func.func @rows(%a: memref<16x512xf32>, %b: memref<16x512xf32>) {
  %zero = arith.constant 0.0 : f32
  %sum = memref.alloc() : memref<16xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<16xf32>)
  linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : memref<16x512xf32>) outs(%sum : memref<16xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
      ins(%a, %sum : memref<16x512xf32>, memref<16xf32>) outs(%b : memref<16x512xf32>) {
  ^bb0(%x: f32, %s: f32, %y: f32):
    %0 = arith.divf %x, %s : f32
    linalg.yield %0 : f32
  }
  return
}

// A thread does a column: neighbours read neighbours.
// CHECK-LABEL: func.func @columns(
// CHECK: call @[[$COLUMNS:[a-z_0-9]+]](
func.func @columns(%a: memref<16x512xf32>, %b: memref<512xf32>) {
  linalg.generic {indexing_maps = [#map, #column], iterator_types = ["reduction", "parallel"]}
      ins(%a : memref<16x512xf32>) outs(%b : memref<512xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  }
  return
}

// Two results that are decided together have no single combiner: a thread does a row.
// CHECK-LABEL: func.func @argmax(
// CHECK: call @[[$SERIAL:[a-z_0-9]+]](
func.func @argmax(%a: memref<64x512xf32>, %m: memref<64xf32>, %n: memref<64xindex>) {
  linalg.generic {indexing_maps = [#map, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : memref<64x512xf32>) outs(%m, %n : memref<64xf32>, memref<64xindex>) {
  ^bb0(%x: f32, %best: f32, %at: index):
    %j = linalg.index 1 : index
    %greater = arith.cmpf ogt, %x, %best : f32
    %0 = arith.select %greater, %x, %best : f32
    %1 = arith.select %greater, %j, %at : index
    linalg.yield %0, %1 : f32, index
  }
  return
}

// A contraction is left to the library, and so is its operand that is a constant: a copy in the device's memory.
memref.global "private" constant @weights : memref<4x4xf32> = dense<2.0>
// CHECK-LABEL: func.func @constant(
// CHECK: %[[COPY:.*]] = memref.alloc()
// CHECK: call @{{.*}}(%[[COPY]])
// CHECK: linalg.matmul ins(%{{.*}}, %[[COPY]]
func.func @constant(%a: memref<4x4xf32>, %c: memref<4x4xf32>) {
  %w = memref.get_global @weights : memref<4x4xf32>
  linalg.matmul ins(%a, %w : memref<4x4xf32>, memref<4x4xf32>) outs(%c : memref<4x4xf32>)
  return
}

// CHECK: func.func private @[[$ELEMENTS]]({{.*}}) attributes {hp.geometry = array<i64: 1, 32>, hp.kernel}
// CHECK: call @hp_device_block()
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}}4

// CHECK: func.func private @[[$ROWS]]({{.*}}) attributes {hp.geometry = array<i64: 16, 128>, hp.kernel}
// CHECK: memref.get_global @{{.*}} : memref<f32, 3>
// CHECK: call @hp_device_barrier()
// CHECK: call @hp_device_exchange(

// CHECK: func.func private @[[$COLUMNS]]({{.*}}) attributes {hp.geometry = array<i64: 4, 128>, hp.kernel}
// CHECK-NOT: hp_device_exchange
// CHECK: scf.for

// CHECK: func.func private @[[$SERIAL]]({{.*}}) attributes {hp.geometry = array<i64: 1, 64>, hp.kernel}
