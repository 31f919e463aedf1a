// What is read at a place that data says is asserted to be there.
// RUN: hp-opt %s --indexing-assert-reads | FileCheck %s
// RUN: hp-opt %s --indexing-assert-reads --indexing-assert-reads | FileCheck %s

#row = affine_map<(i, j) -> (i)>
#map = affine_map<(i, j) -> (i, j)>

// One of the two indices comes from data.
// CHECK-LABEL: func.func @rows(
// CHECK-DAG: %[[SIX:.*]] = arith.constant 6 : index
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK: ^bb0(%[[I:.*]]: i64,
// CHECK: %[[PLACE:.*]] = arith.index_cast %[[I]]
// CHECK: %[[BELOW:.*]] = arith.cmpi slt, %[[PLACE]], %[[SIX]] : index
// CHECK-NEXT: cf.assert %[[BELOW]], "index must be smaller than dim size"
// CHECK-NEXT: %[[LEAST:.*]] = arith.cmpi sge, %[[PLACE]], %[[ZERO]] : index
// CHECK-NEXT: cf.assert %[[LEAST]], "index must be larger or equal to 0"
// CHECK-NEXT: tensor.extract
// CHECK-NOT: cf.assert
// CHECK: return
func.func @rows(%table: tensor<6x8xf32>, %indices: tensor<3xi64>) -> tensor<3x8xf32> {
  %empty = tensor.empty() : tensor<3x8xf32>
  %0 = linalg.generic {indexing_maps = [#row, #map], iterator_types = ["parallel", "parallel"]}
      ins(%indices : tensor<3xi64>) outs(%empty : tensor<3x8xf32>) {
  ^bb0(%i: i64, %out: f32):
    %place = arith.index_cast %i : i64 to index
    %column = linalg.index 1 : index
    %element = tensor.extract %table[%place, %column] : tensor<6x8xf32>
    linalg.yield %element : f32
  } -> tensor<3x8xf32>
  return %0 : tensor<3x8xf32>
}

// Both bounds are asserted already, of the index and of what it was cast from.
// CHECK-LABEL: func.func @asserted(
// CHECK-COUNT-2: cf.assert
// CHECK-NOT: cf.assert
// CHECK: return
func.func @asserted(%table: tensor<6xf32>, %indices: tensor<3xi64>) -> tensor<3xf32> {
  %zero = arith.constant 0 : i64
  %six = arith.constant 6 : index
  %empty = tensor.empty() : tensor<3xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%indices : tensor<3xi64>) outs(%empty : tensor<3xf32>) {
  ^bb0(%i: i64, %out: f32):
    %place = arith.index_cast %i : i64 to index
    %below = arith.cmpi slt, %place, %six : index
    cf.assert %below, "too large"
    %least = arith.cmpi sge, %i, %zero : i64
    cf.assert %least, "negative"
    %element = tensor.extract %table[%place] : tensor<6xf32>
    linalg.yield %element : f32
  } -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// A bound that is too wide is none.
// CHECK-LABEL: func.func @wider(
// CHECK-COUNT-4: cf.assert
// CHECK: return
func.func @wider(%table: tensor<6xf32>, %indices: tensor<3xi64>) -> tensor<3xf32> {
  %zero = arith.constant 0 : i64
  %seven = arith.constant 7 : index
  %empty = tensor.empty() : tensor<3xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%indices : tensor<3xi64>) outs(%empty : tensor<3xf32>) {
  ^bb0(%i: i64, %out: f32):
    %place = arith.index_cast %i : i64 to index
    %below = arith.cmpi slt, %place, %seven : index
    cf.assert %below, "too large"
    %least = arith.cmpi sge, %i, %zero : i64
    cf.assert %least, "negative"
    %element = tensor.extract %table[%place] : tensor<6xf32>
    linalg.yield %element : f32
  } -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// Loops and constants are as the op was written.
// CHECK-LABEL: func.func @reversed(
// CHECK-NOT: cf.assert
// CHECK: return
func.func @reversed(%a: tensor<6xf32>) -> tensor<6xf32> {
  %five = arith.constant 5 : index
  %empty = tensor.empty() : tensor<6xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%empty : tensor<6xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %place = arith.subi %five, %i : index
    %element = tensor.extract %a[%place] : tensor<6xf32>
    linalg.yield %element : f32
  } -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// So is a range that another op writes, through views.
// CHECK-LABEL: func.func @counted(
// CHECK-NOT: cf.assert
// CHECK: return
func.func @counted(%a: tensor<6xf32>) -> tensor<1x6xf32> {
  %line = tensor.empty() : tensor<6xi64>
  %range = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%line : tensor<6xi64>) {
  ^bb0(%out: i64):
    %i = linalg.index 0 : index
    %number = arith.index_cast %i : index to i64
    linalg.yield %number : i64
  } -> tensor<6xi64>
  %row = tensor.expand_shape %range [[0, 1]] output_shape [1, 6] : tensor<6xi64> into tensor<1x6xi64>
  %empty = tensor.empty() : tensor<1x6xf32>
  %0 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%row : tensor<1x6xi64>) outs(%empty : tensor<1x6xf32>) {
  ^bb0(%i: i64, %out: f32):
    %place = arith.index_cast %i : i64 to index
    %element = tensor.extract %a[%place] : tensor<6xf32>
    linalg.yield %element : f32
  } -> tensor<1x6xf32>
  return %0 : tensor<1x6xf32>
}

// An extent that is not known is asked for.
// CHECK-LABEL: func.func @dynamic(
// CHECK: %[[SIZE:.*]] = tensor.dim
// CHECK: arith.cmpi slt, %{{.*}}, %[[SIZE]] : index
// CHECK-NEXT: cf.assert
func.func @dynamic(%table: tensor<?xf32>, %indices: tensor<3xi64>) -> tensor<3xf32> {
  %empty = tensor.empty() : tensor<3xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%indices : tensor<3xi64>) outs(%empty : tensor<3xf32>) {
  ^bb0(%i: i64, %out: f32):
    %place = arith.index_cast %i : i64 to index
    %element = tensor.extract %table[%place] : tensor<?xf32>
    linalg.yield %element : f32
  } -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
