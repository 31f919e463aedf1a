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

// Names in PTX have no dots.
// CHECK-LABEL: func.func @policy.block(
// CHECK: call @policy_block_kernel(
func.func @policy.block(%a: memref<3xf32>, %b: memref<3xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a : memref<3xf32>) outs(%b : memref<3xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = math.absf %x : f32
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

// What a row's members write for others, and read again, is read from shared memory, and written at the end.
// CHECK-LABEL: func.func @kept(
// CHECK: call @[[$KEPT:[a-z_0-9]+]](
func.func @kept(%a: memref<16x128xf32>, %b: memref<16x128xf32>, %sum: memref<16xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<16x128xf32>) outs(%b : memref<16x128xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.negf %x : f32
    linalg.yield %0 : f32
  }
  linalg.fill ins(%zero : f32) outs(%sum : memref<16xf32>)
  linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
      ins(%b : memref<16x128xf32>) outs(%sum : memref<16xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  }
  return
}

// What was there before is read: nothing is kept.
// CHECK-LABEL: func.func @added_to(
// CHECK: call @[[$ADDED:[a-z_0-9]+]](
func.func @added_to(%a: memref<16x128xf32>, %b: memref<16x128xf32>, %sum: memref<16xf32>) {
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<16x128xf32>) outs(%b : memref<16x128xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
      ins(%b : memref<16x128xf32>) outs(%sum : memref<16xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.addf %x, %y : f32
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

// What is read across the result goes through a square of shared memory, whose rows are a word longer: 4 squares of 32 for
// each of 3 matrices. Both accesses of the device's memory are vectors.
// CHECK-LABEL: func.func @transposed(
// CHECK: call @[[$TILES:[a-z_0-9]+]](
func.func @transposed(%a: memref<3x64x64xf32>, %b: memref<64xf32>, %c: memref<3x64x64xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k, j)>, affine_map<(i, j, k) -> (k)>,
                                   affine_map<(i, j, k) -> (i, j, k)>],
                  iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a, %b : memref<3x64x64xf32>, memref<64xf32>) outs(%c : memref<3x64x64xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  }
  return
}

// A row of seven is not a square: threads take neighbouring results.
// CHECK-LABEL: func.func @short_rows(
// CHECK: call @[[$SHORT:[a-z_0-9]+]](
func.func @short_rows(%a: memref<64x7xf32>, %c: memref<7x64xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #map], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<64x7xf32>) outs(%c : memref<7x64xf32>) {
  ^bb0(%x: f32, %z: f32):
    linalg.yield %x : f32
  }
  return
}

// A table of rows is added to each of 4: it is a kernel of its own, so that no thread does the 4 one after the other.
// CHECK-LABEL: func.func @over_rows(
// CHECK: call @[[$ROW:[a-z_0-9]+]](
// CHECK-NEXT: call @[[$ALL:[a-z_0-9]+]](
func.func @over_rows(%a: memref<16x8xf32>, %b: memref<4x16x8xf32>) {
  %t = memref.alloc() : memref<16x8xf32>
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<16x8xf32>) outs(%t : memref<16x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = math.absf %x : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j, k)>],
                  iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%t : memref<16x8xf32>) outs(%b : memref<4x16x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
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

// A loop that looks up where it adds is one kernel: a thread does an element of all iterations, in their order. Rows are
// dealt out to 64 threads for each of 8 elements.
// CHECK-LABEL: func.func @scatter(
// CHECK-SAME: %[[U:.*]]: memref<6x8xf32>, %[[AT:.*]]: memref<6xi64>, %[[T:.*]]: memref<10x8xf32>
// CHECK: call @[[$SCATTER:[a-z_0-9]+]](
// CHECK-NEXT: return
func.func @scatter(%updates: memref<6x8xf32>, %at: memref<6xi64>, %table: memref<10x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %c10 = arith.constant 10 : index
  scf.for %n = %c0 to %c6 step %c1 {
    %word = memref.load %at[%n] : memref<6xi64>
    %row = arith.index_cast %word : i64 to index
    %inside = arith.cmpi ult, %row, %c10 : index
    scf.if %inside {
      %from = memref.subview %updates[%n, 0] [1, 8] [1, 1] : memref<6x8xf32> to memref<8xf32, strided<[1], offset: ?>>
      %to = memref.subview %table[%row, 0] [1, 8] [1, 1] : memref<10x8xf32> to memref<8xf32, strided<[1], offset: ?>>
      linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> (j)>], iterator_types = ["parallel"]}
          ins(%from : memref<8xf32, strided<[1], offset: ?>>) outs(%to : memref<8xf32, strided<[1], offset: ?>>) {
      ^bb0(%x: f32, %sum: f32):
        %0 = arith.addf %sum, %x : f32
        linalg.yield %0 : f32
      }
    }
  }
  return
}

// What the loop looks up in is what it writes: that stays a loop of the host.
// CHECK-LABEL: func.func @chase(
// CHECK: scf.for
func.func @chase(%table: memref<10x8xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  scf.for %n = %c0 to %c6 step %c1 {
    %word = memref.load %table[%n, %c0] : memref<10x8xi64>
    %row = arith.index_cast %word : i64 to index
    %to = memref.subview %table[%row, 0] [1, 8] [1, 1] : memref<10x8xi64> to memref<8xi64, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(j) -> (j)>], iterator_types = ["parallel"]}
        outs(%to : memref<8xi64, strided<[1], offset: ?>>) {
    ^bb0(%x: i64):
      %0 = arith.addi %x, %x : i64
      linalg.yield %0 : i64
    }
  }
  return
}

// CHECK: func.func private @[[$ELEMENTS]]({{.*}}) attributes {hp.geometry = array<i64: 1, 32>, hp.kernel}
// CHECK: call @hp_device_block()
// All lanes of a vector are loaded before they are stored; the first says where it begins.
// CHECK: %[[X:.*]] = memref.load %{{.*}} {alignment = 16 : i64}
// CHECK-COUNT-3: memref.load
// CHECK: memref.store %{{.*}} {alignment = 16 : i64}
// CHECK-COUNT-3: memref.store

// CHECK: func.func private @[[$ROWS]]({{.*}}) attributes {hp.geometry = array<i64: 16, 128>, hp.kernel}
// CHECK: memref.get_global @{{.*}} : memref<f32, 3>
// CHECK: call @hp_device_barrier()
// CHECK: call @hp_device_exchange(

// CHECK: func.func private @[[$KEPT]](%[[B:[a-z0-9]+]]: memref<16x128xf32>, %{{[a-z0-9]+}}: memref<16x128xf32> {llvm.noalias}, %{{.*}}: memref<16xf32>)
// CHECK: %[[HELD:[0-9]+]] = memref.get_global @{{.*}} : memref<128xf32, 3>
// CHECK-NOT: %[[B]][
// CHECK: memref.store %{{.*}}, %[[HELD]][
// CHECK: arith.addf
// CHECK: call @hp_device_barrier
// CHECK: memref.load %[[HELD]][
// CHECK: memref.store %{{.*}}, %[[B]][%{{.*}}, %{{.*}}] {alignment = 16 : i64}
// CHECK: func.func private @[[$ADDED]](%[[B2:[a-z0-9]+]]: memref<16x128xf32>
// CHECK-NOT: memref.get_global
// CHECK: memref.load %[[B2]][
// CHECK: func.func private @[[$COLUMNS]]({{.*}}) attributes {hp.geometry = array<i64: 4, 128>, hp.kernel}
// CHECK-NOT: hp_device_exchange
// CHECK: scf.for

// CHECK: func.func private @[[$SERIAL]]({{.*}}) attributes {hp.geometry = array<i64: 1, 64>, hp.kernel}

// CHECK: func.func private @[[$TILES]]({{.*}}) attributes {hp.geometry = array<i64: 12, 256>, hp.kernel}
// CHECK: memref.get_global @{{.*}} : memref<32x33xf32, 3>
// CHECK: memref.load %{{.*}} {alignment = 16 : i64} : memref<3x64x64xf32>
// CHECK: memref.store {{.*}} : memref<32x33xf32, 3>
// CHECK: call @hp_device_barrier()
// CHECK: memref.load {{.*}} : memref<32x33xf32, 3>
// CHECK: memref.store %{{.*}} {alignment = 16 : i64} : memref<3x64x64xf32>

// CHECK: func.func private @[[$SHORT]]({{.*}}) attributes {hp.geometry = array<i64: 1, 128>, hp.kernel}
// CHECK-NOT: hp_device_barrier

// CHECK: func.func private @[[$ROW]]({{.*}}) attributes {hp.geometry = array<i64: 1, 32>, hp.kernel}
// CHECK: func.func private @[[$ALL]]({{.*}}) attributes {hp.geometry = array<i64: 1, 128>, hp.kernel}

// CHECK: func.func private @[[$SCATTER]]({{.*}}) attributes {hp.geometry = array<i64: 4, 128>, hp.kernel}
// CHECK: scf.for
// CHECK: memref.load
// CHECK: scf.if
// CHECK: arith.remui
// CHECK: scf.if
// CHECK: arith.addf
