// Groups of structured ops become functions in HFusion's text, op by op.
// RUN: hp-opt %s --hp-form-fragments | FileCheck %s
// RUN: hp-opt %s --hp-form-fragments --mlir-print-op-generic | FileCheck %s --check-prefix=TEXT

#map = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#swapped = affine_map<(i, j) -> (j, i)>

// CHECK: hp.assertions = ["no negative numbers"]

// Operands are broadcast where they meet others; a scalar is an operand.
// CHECK-LABEL: func.func @elements(
// CHECK-SAME: %[[A:.*]]: memref<4x8xf32>, %[[B:.*]]: memref<8xf32>, %[[C:.*]]: memref<4x8xf32>
// CHECK: call @fragment{{[0-9]+}}_of_elements(%[[A]], %[[B]], %[[C]])
// TEXT-LABEL: sym_name = "elements"
// TEXT: hp.fragment = "func.func @fragment(%arg0: tensor<4x8xf32>, %arg1: tensor<8xf32>) -> (tensor<4x8xf32>)
// TEXT-SAME: linalg.broadcast ins(%arg1 : tensor<8xf32>)
// TEXT-SAME: dimensions = [0]
// TEXT-SAME: linalg.elemwise_binary {fun = #linalg.binary_fn<add>}
// TEXT-SAME: linalg.elemwise_binary {fun = #linalg.binary_fn<mul>}
func.func @elements(%a: memref<4x8xf32>, %b: memref<8xf32>, %c: memref<4x8xf32>) {
  %two = arith.constant 2.0 : f32
  linalg.generic {indexing_maps = [#map, #column, #map], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : memref<4x8xf32>, memref<8xf32>) outs(%c : memref<4x8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.addf %x, %y : f32
    %1 = arith.mulf %0, %two : f32
    linalg.yield %1 : f32
  }
  return
}

// Without sign: at least zero, and less.
// CHECK-LABEL: func.func @rows_that_a_device_has(
// CHECK: call @fragment{{[0-9]+}}_of_rows_that_a_device_has(
// TEXT: hp.fragment = "func.func @fragment(%arg0: tensor<4xi64>
// TEXT-SAME: hfusion.compare {compare_fn = #hfusion.compare_fn<vge>}
// TEXT-SAME: hfusion.compare {compare_fn = #hfusion.compare_fn<vlt>}
// TEXT-SAME: hfusion.elemwise_binary {fun = #hfusion.binary_fn<vand>}
// TEXT-SAME: hfusion.select
func.func @rows_that_a_device_has(%a: memref<4xi64>, %b: memref<4xi64>) {
  %zero = arith.constant 0 : i64
  %rows = arith.constant 19 : i64
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a : memref<4xi64>) outs(%b : memref<4xi64>) {
  ^bb0(%x: i64, %y: i64):
    %0 = arith.subi %x, %rows : i64
    %1 = arith.cmpi ult, %0, %rows : i64
    %2 = arith.select %1, %0, %zero : i64
    linalg.yield %2 : i64
  }
  return
}

// A sum and what divides by it are one fragment; the sums are its own.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME: %[[A:.*]]: memref<16x512xf32>, %[[B:.*]]: memref<16x512xf32>
// CHECK-NOT: memref.alloc
// CHECK: call @fragment{{[0-9]+}}_of_rows(%[[A]], %[[B]])
func.func @rows(%a: memref<16x512xf32>, %b: memref<16x512xf32>) {
  %zero = arith.constant 0.0 : f32
  %sum = memref.alloc() : memref<16xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<16xf32>)
  linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : memref<16x512xf32>) outs(%sum : memref<16xf32>) {
  ^bb0(%x: f32, %s: f32):
    %0 = arith.addf %x, %s : f32
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

// What is read in another order than it is written goes to a buffer of its own first.
// CHECK-LABEL: func.func @in_place_transposed(
// CHECK-SAME: %[[A:.*]]: memref<4x4xf32>
// CHECK: %[[OWN:.*]] = memref.alloc() {{.*}} : memref<4x4xf32>
// CHECK: call @fragment{{[0-9]+}}_of_in_place_transposed(%[[A]], %[[OWN]])
// CHECK: call @library_copy(%[[OWN]], %[[A]])
func.func @in_place_transposed(%a: memref<4x4xf32>) {
  linalg.generic {indexing_maps = [#swapped, #map], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<4x4xf32>) outs(%a : memref<4x4xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.negf %x : f32
    linalg.yield %0 : f32
  }
  return
}

// In the same order, one after the other, it may be written where it was.
// CHECK-LABEL: func.func @in_place(
// CHECK-SAME: %[[A:.*]]: memref<4x4xf32>
// CHECK-NEXT: call @fragment{{[0-9]+}}_of_in_place(%[[A]], %[[A]])
func.func @in_place(%a: memref<4x4xf32>) {
  linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel"]} outs(%a : memref<4x4xf32>) {
  ^bb0(%y: f32):
    %0 = math.exp %y : f32
    linalg.yield %0 : f32
  }
  return
}

// The number of an assertion that fails is a result, and the operator `check` looks at it.
// CHECK-LABEL: func.func @assertions(
// CHECK: %[[NUMBER:.*]] = memref.alloc() {{.*}} : memref<1xi32>
// CHECK: call @fragment{{[0-9]+}}_of_assertions(%{{.*}}, %{{.*}}, %[[NUMBER]])
// CHECK: call @library_check(%[[NUMBER]])
func.func @assertions(%a: memref<4xi64>, %b: memref<4xi64>) {
  %zero = arith.constant 0 : i64
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a : memref<4xi64>) outs(%b : memref<4xi64>) {
  ^bb0(%x: i64, %y: i64):
    %0 = arith.cmpi sge, %x, %zero : i64
    cf.assert %0, "no negative numbers"
    linalg.yield %x : i64
  }
  return
}

// What a buffer gets unchanged is copied by an operator: arguments are no results of fragments.
// CHECK-LABEL: func.func @unchanged(
// CHECK-SAME: %[[A:.*]]: memref<4x8xf32>, %[[B:.*]]: memref<4x8xf32>, %[[C:.*]]: memref<4x8xf32>
// CHECK: call @library_copy{{[_0-9]*}}(%[[A]], %[[B]])
// CHECK: call @fragment{{[0-9]+}}_of_unchanged(%[[A]], %[[C]])
func.func @unchanged(%a: memref<4x8xf32>, %b: memref<4x8xf32>, %c: memref<4x8xf32>) {
  linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<4x8xf32>) outs(%b, %c : memref<4x8xf32>, memref<4x8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = math.exp %x : f32
    linalg.yield %x, %0 : f32, f32
  }
  return
}

// Ascend's compiler fails at ops on tensors of no dimensions: they have one element.
// CHECK-LABEL: func.func @number(
// TEXT: hp.fragment = "func.func @fragment(%arg0: tensor<1xf32>) -> (tensor<1xf32>)
// TEXT-SAME: ins(%arg0, %arg0 : tensor<1xf32>, tensor<1xf32>)
func.func @number(%a: memref<f32>, %b: memref<f32>) {
  linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
      ins(%a : memref<f32>) outs(%b : memref<f32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.mulf %x, %x : f32
    linalg.yield %0 : f32
  }
  return
}

// Products are the library's.
// CHECK-LABEL: func.func @product(
// CHECK: linalg.matmul
func.func @product(%a: memref<4x8xf32>, %b: memref<8x4xf32>, %c: memref<4x4xf32>) {
  linalg.matmul ins(%a, %b : memref<4x8xf32>, memref<8x4xf32>) outs(%c : memref<4x4xf32>)
  return
}
