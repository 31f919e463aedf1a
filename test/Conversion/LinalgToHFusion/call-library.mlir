// What needs whole buffers becomes calls of a vendor's operators; the rest keeps contiguous operands and no loads.
// RUN: hp-opt %s --hp-call-library | FileCheck %s

#map2 = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Rows that are chosen by number: their numbers, which keep the assertion; the rows; what is done with them.
// CHECK-LABEL: func.func @gather(
// CHECK-SAME: %[[NUMBERS:.*]]: memref<5xi64>, %[[TABLE:.*]]: memref<9x4xf32>, %[[OUT:.*]]: memref<5x4xf32>
// CHECK: %[[ROWS:.*]] = memref.alloc() {{.*}} : memref<5xi64>
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[NUMBERS]] : memref<5xi64>) outs(%[[ROWS]] : memref<5xi64>)
// CHECK: cf.assert
// CHECK: %[[GATHERED:.*]] = memref.alloc() {{.*}} : memref<5x4xf32>
// CHECK: call @[[$EMBEDDING:library_embedding[_0-9]*]](%[[TABLE]], %[[ROWS]], %[[GATHERED]])
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[NUMBERS]], %[[GATHERED]] : memref<5xi64>, memref<5x4xf32>)
// CHECK-NOT: memref.load
// CHECK: math.exp
func.func @gather(%numbers: memref<5xi64>, %table: memref<9x4xf32>, %out: memref<5x4xf32>) {
  %c9 = arith.constant 9 : index
  linalg.generic {indexing_maps = [#row, #map2], iterator_types = ["parallel", "parallel"]}
      ins(%numbers : memref<5xi64>) outs(%out : memref<5x4xf32>) {
  ^bb0(%n: i64, %o: f32):
    %i = arith.index_cast %n : i64 to index
    %j = linalg.index 1 : index
    %inside = arith.cmpi slt, %i, %c9 : index
    cf.assert %inside, "out of range"
    %x = memref.load %table[%i, %j] : memref<9x4xf32>
    %y = math.exp %x : f32
    linalg.yield %y : f32
  }
  return
}

// Elements that only move, out of a buffer with gaps, are copied by an operator: by loops, so also transposed.
// CHECK-LABEL: func.func @moved(
// CHECK: call @[[$COPY:library_copy[_0-9]*]](
// CHECK-NOT: linalg
// CHECK: return
func.func @moved(%a: memref<6x8xf32>, %b: memref<4x6xf32>) {
  %part = memref.subview %a[0, 4] [6, 4] [1, 1] : memref<6x8xf32> to memref<6x4xf32, strided<[8, 1], offset: 4>>
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #map2], iterator_types = ["parallel", "parallel"]}
      ins(%part : memref<6x4xf32, strided<[8, 1], offset: 4>>) outs(%b : memref<4x6xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  return
}

// What computes gets a copy without gaps, and what it writes is copied back.
// CHECK-LABEL: func.func @computed(
// CHECK-SAME: %[[A:.*]]: memref<6x8xf32>
// CHECK: %[[PART:.*]] = memref.subview
// CHECK: %[[PACKED:.*]] = memref.alloc() {{.*}} : memref<6x4xf32>
// CHECK: call @[[$IN:library_copy[_0-9]*]](%[[PART]], %[[PACKED]])
// CHECK: linalg.generic
// CHECK-SAME: outs(%[[PACKED]] : memref<6x4xf32>)
// CHECK: call @[[$OUT:library_copy[_0-9]*]](%[[PACKED]], %[[PART]])
func.func @computed(%a: memref<6x8xf32>) {
  %part = memref.subview %a[0, 4] [6, 4] [1, 1] : memref<6x8xf32> to memref<6x4xf32, strided<[8, 1], offset: 4>>
  linalg.generic {indexing_maps = [#map2], iterator_types = ["parallel", "parallel"]}
      outs(%part : memref<6x4xf32, strided<[8, 1], offset: 4>>) {
  ^bb0(%y: f32):
    %0 = math.exp %y : f32
    linalg.yield %0 : f32
  }
  return
}

// So does what is read in another order than that of the loops.
// CHECK-LABEL: func.func @transposed(
// CHECK-SAME: %[[A:.*]]: memref<4x6xf32>, %[[B:.*]]: memref<6x4xf32>
// CHECK: %[[ORDERED:.*]] = memref.alloc() {{.*}} : memref<6x4xf32>
// CHECK: call @[[$TURN:library_copy[_0-9]*]](%[[A]], %[[ORDERED]])
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[ORDERED]] : memref<6x4xf32>) outs(%[[B]] : memref<6x4xf32>)
func.func @transposed(%a: memref<4x6xf32>, %b: memref<6x4xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #map2], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<4x6xf32>) outs(%b : memref<6x4xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.negf %x : f32
    linalg.yield %0 : f32
  }
  return
}

// A constant goes to the device's memory, but one of a single number that only elementwise ops read.
// CHECK-LABEL: func.func @constants(
// CHECK: %[[ONE:.*]] = memref.get_global @ones
// CHECK: %[[MANY:.*]] = memref.get_global @many
// CHECK: %[[PLACE:.*]] = memref.alloc() {{.*}} : memref<3xf32>
// CHECK: call @[[$UPLOAD:library_upload[_0-9]*]](%[[MANY]], %[[PLACE]])
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[ONE]], %[[PLACE]] :
memref.global "private" constant @ones : memref<3xf32> = dense<1.0>
memref.global "private" constant @many : memref<3xf32> = dense<[1.0, 2.0, 3.0]>
func.func @constants(%out: memref<3xf32>) {
  %one = memref.get_global @ones : memref<3xf32>
  %many = memref.get_global @many : memref<3xf32>
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%one, %many : memref<3xf32>, memref<3xf32>) outs(%out : memref<3xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  }
  return
}

// Contiguous operands stay as they are.
// CHECK-LABEL: func.func @nothing_to_do(
// CHECK-NOT: call
// CHECK: linalg.generic
func.func @nothing_to_do(%a: memref<6xf32>, %b: memref<6xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a : memref<6xf32>) outs(%b : memref<6xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  return
}

// A number that is known when the program runs is written to a buffer, once.
// CHECK-LABEL: func.func @number(
// CHECK-SAME: %[[N:.*]]: index, %[[OUT:.*]]: memref<4xi64>
// CHECK: %[[PLACE:.*]] = memref.alloc() {{.*}} : memref<i64>
// CHECK: %[[WORD:.*]] = arith.index_cast %[[N]] : index to i64
// CHECK: call @[[$FILL:library_fill[_0-9]*]](%[[WORD]], %[[PLACE]])
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[PLACE]] : memref<i64>) outs(%[[OUT]] : memref<4xi64>)
func.func @number(%n: index, %out: memref<4xi64>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%out : memref<4xi64>) {
  ^bb0(%y: i64):
    %i = linalg.index 0 : index
    %sum = arith.addi %i, %n : index
    %word = arith.index_cast %sum : index to i64
    linalg.yield %word : i64
  }
  return
}

// So are windows of a buffer, which loops visit by sums of multiples.
// CHECK-LABEL: func.func @windows(
// CHECK-SAME: %[[IMAGE:.*]]: memref<16x16xf32>, %[[PATCHES:.*]]: memref<2x2x8x8xf32>
// CHECK: call @[[$CUT:library_copy[_0-9]*]](%[[IMAGE]], %[[PATCHES]])
// CHECK-NOT: linalg
// CHECK: return
func.func @windows(%image: memref<16x16xf32>, %patches: memref<2x2x8x8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j, k, l) -> (i * 8 + k, j * 8 + l)>, affine_map<(i, j, k, l) -> (i, j, k, l)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%image : memref<16x16xf32>) outs(%patches : memref<2x2x8x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  return
}

// A loop that adds rows at computed places: numbers and updates that are kept, then one operator.
// CHECK-LABEL: func.func @scatter(
// CHECK-SAME: %[[AT:.*]]: memref<5xi64>, %[[UPDATES:.*]]: memref<5x4xf32>, %[[TABLE:.*]]: memref<9x4xf32>
// CHECK: %[[ROWS:.*]] = memref.alloc() {{.*}} : memref<5xi64>
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[AT]], %[[AT]] : memref<5xi64>, memref<5xi64>) outs(%[[ROWS]] :
// CHECK: arith.select
// CHECK: %[[KEPT:.*]] = memref.alloc() {{.*}} : memref<5x4xf32>
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[UPDATES]], %[[AT]] : memref<5x4xf32>, memref<5xi64>) outs(%[[KEPT]] :
// CHECK: call @[[$ADD:library_index_add[_0-9]*]](%[[TABLE]], %[[ROWS]], %[[KEPT]])
// CHECK-NOT: scf.for
// CHECK: return
func.func @scatter(%at: memref<5xi64>, %updates: memref<5x4xf32>, %table: memref<9x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c9 = arith.constant 9 : index
  scf.for %n = %c0 to %c5 step %c1 {
    %word = memref.load %at[%n] : memref<5xi64>
    %row = arith.index_cast %word : i64 to index
    %inside = arith.cmpi ult, %row, %c9 : index
    scf.if %inside {
      %from = memref.subview %updates[%n, 0] [1, 4] [1, 1] : memref<5x4xf32> to memref<4xf32, strided<[1], offset: ?>>
      %to = memref.subview %table[%row, 0] [1, 4] [1, 1] : memref<9x4xf32> to memref<4xf32, strided<[1], offset: ?>>
      linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
          ins(%from : memref<4xf32, strided<[1], offset: ?>>) outs(%to : memref<4xf32, strided<[1], offset: ?>>) {
      ^bb0(%x: f32, %y: f32):
        %sum = arith.addf %y, %x : f32
        linalg.yield %sum : f32
      }
    }
  }
  return
}

// A loop that does anything else stays: here rows beyond the fourth are left out.
// CHECK-LABEL: func.func @other_loop(
// CHECK: scf.for
// CHECK: memref.load
func.func @other_loop(%at: memref<5xi64>, %updates: memref<5xf32>, %table: memref<9xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c4 = arith.constant 4 : index
  scf.for %n = %c0 to %c5 step %c1 {
    %word = memref.load %at[%n] : memref<5xi64>
    %row = arith.index_cast %word : i64 to index
    %inside = arith.cmpi ult, %row, %c4 : index
    scf.if %inside {
      %from = memref.subview %updates[%n] [1] [1] : memref<5xf32> to memref<f32, strided<[], offset: ?>>
      %to = memref.subview %table[%row] [1] [1] : memref<9xf32> to memref<f32, strided<[], offset: ?>>
      linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
          ins(%from : memref<f32, strided<[], offset: ?>>) outs(%to : memref<f32, strided<[], offset: ?>>) {
      ^bb0(%x: f32, %y: f32):
        %sum = arith.addf %y, %x : f32
        linalg.yield %sum : f32
      }
    }
  }
  return
}

// CHECK-DAG: func.func private @[[$EMBEDDING]]({{.*}}) attributes {{.*}}hp.library = "embedding", hp.words = array<i64: 7, 2, 9, 4, 4, 1, 4, 1, 5, 1, 7, 2, 5, 4, 4, 1>
// CHECK-DAG: func.func private @[[$COPY]]({{.*}}) attributes {{.*}}hp.library = "copy", hp.words = array<i64: 7, 2, 4, 6, 1, 8, 7, 2, 4, 6, 6, 1>
