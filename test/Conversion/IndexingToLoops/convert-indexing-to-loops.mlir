// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Updates are added one after the other, each to its row, in place.
// RUN: hp-opt %s -convert-indexing-to-loops | FileCheck %s
// RUN: hp-opt %s -convert-indexing-to-loops -one-shot-bufferize="bufferize-function-boundaries=1" -cse -canonicalize | FileCheck %s --check-prefix=BUFFER

// CHECK-LABEL: func.func @scatter_add(
// CHECK-SAME: %[[U:.*]]: tensor<6x4xf32>, %[[I:.*]]: tensor<6xi64>, %[[T:.*]]: tensor<8x4xf32>
// CHECK-DAG: %[[COUNT:.*]] = arith.constant 6 : index
// CHECK-DAG: %[[ROWS:.*]] = arith.constant 8 : index
// CHECK: scf.for %[[N:.*]] = %{{.*}} to %[[COUNT]] step %{{.*}} iter_args(%[[SUM:.*]] = %[[T]])
// CHECK: %[[PLACE:.*]] = tensor.extract %[[I]][%[[N]]]
// CHECK: %[[ROW:.*]] = arith.index_cast %[[PLACE]] : i64 to index
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %[[ROW]], %[[ROWS]]
// CHECK: scf.if %[[INSIDE]]
// CHECK: tensor.extract_slice %[[U]][%[[N]], 0] [1, 4] [1, 1] : tensor<6x4xf32> to tensor<4xf32>
// CHECK: tensor.extract_slice %[[SUM]][%[[ROW]], 0]
// CHECK: arith.addf
// CHECK: tensor.insert_slice %{{.*}} into %[[SUM]][%[[ROW]], 0]
// CHECK: else
// CHECK-NEXT: scf.yield %[[SUM]]

// BUFFER-LABEL: func.func @scatter_add(
// BUFFER-NOT: memref.alloc
// BUFFER-NOT: memref.copy
func.func @scatter_add(%u: tensor<6x4xf32>, %i: tensor<6xi64>, %t: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = indexing.scatter_add %u at %i into %t : tensor<6x4xf32>, tensor<6xi64> into tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
