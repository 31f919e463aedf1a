// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small reductions that are ready together become one.
// RUN: hp-opt --hypershard-combine-all-reduces %s | FileCheck %s
// RUN: hp-opt --hypershard-combine-all-reduces --mlir-pass-statistics %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATS

// STATS: CombineAllReduces
// STATS-DAG: (S) 2 num-buckets
// STATS-DAG: (S) 5 num-combined
// STATS-DAG: (S) 2 num-declined-large

hypershard.mesh @m = <["dp"=2, "tp"=4]>

// Of any rank and shape; the one reduction is where the last was.
// CHECK-LABEL: func.func @three
// CHECK-SAME: (%[[X:.*]]: tensor<4x2xf32>, %[[Y:.*]]: tensor<3xf32>, %[[Z:.*]]: tensor<f32>)
func.func @three(%x: tensor<4x2xf32>, %y: tensor<3xf32>, %z: tensor<f32>) -> (tensor<4x2xf32>, tensor<3xf32>, tensor<f32>) {
  // CHECK: %[[E:.*]] = tensor.empty() : tensor<12xf32>
  // CHECK: %[[FX:.*]] = tensor.collapse_shape %[[X]] {{\[}}[0, 1]] : tensor<4x2xf32> into tensor<8xf32>
  // CHECK: %[[A:.*]] = tensor.insert_slice %[[FX]] into %[[E]][0] [8] [1]
  // CHECK: %[[B:.*]] = tensor.insert_slice %[[Y]] into %[[A]][8] [3] [1]
  // CHECK: %[[FZ:.*]] = tensor.expand_shape %[[Z]] [] output_shape [1] : tensor<f32> into tensor<1xf32>
  // CHECK: %[[C:.*]] = tensor.insert_slice %[[FZ]] into %[[B]][11] [1] [1]
  // CHECK: %[[R:.*]] = hypershard.all_reduce %[[C]] over @m {"dp"} <sum> : tensor<12xf32>
  // CHECK-NOT: hypershard.all_reduce
  %0 = hypershard.all_reduce %x over @m {"dp"} <sum> : tensor<4x2xf32> -> tensor<4x2xf32>
  %1 = hypershard.all_reduce %y over @m {"dp"} <sum> : tensor<3xf32> -> tensor<3xf32>
  %2 = hypershard.all_reduce %z over @m {"dp"} <sum> : tensor<f32> -> tensor<f32>
  // CHECK: %[[RX:.*]] = tensor.extract_slice %[[R]][0] [8] [1]
  // CHECK: %[[GX:.*]] = tensor.expand_shape %[[RX]] {{\[}}[0, 1]] output_shape [4, 2]
  // CHECK: %[[RY:.*]] = tensor.extract_slice %[[R]][8] [3] [1]
  // CHECK: %[[RZ:.*]] = tensor.extract_slice %[[R]][11] [1] [1]
  // CHECK: %[[GZ:.*]] = tensor.collapse_shape %[[RZ]] [] : tensor<1xf32> into tensor<f32>
  // CHECK: return %[[GX]], %[[RY]], %[[GZ]]
  return %0, %1, %2 : tensor<4x2xf32>, tensor<3xf32>, tensor<f32>
}

// Another group, kind or element type is another reduction.
// CHECK-LABEL: func.func @apart
func.func @apart(%x: tensor<4xf32>, %y: tensor<4xf64>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf64>) {
  // CHECK-COUNT-4: hypershard.all_reduce
  %0 = hypershard.all_reduce %x over @m {"dp"} <sum> : tensor<4xf32> -> tensor<4xf32>
  %1 = hypershard.all_reduce %x over @m {"dp"} <max> : tensor<4xf32> -> tensor<4xf32>
  %2 = hypershard.all_reduce %x over @m {"tp"} <sum> : tensor<4xf32> -> tensor<4xf32>
  %3 = hypershard.all_reduce %y over @m {"dp"} <sum> : tensor<4xf64> -> tensor<4xf64>
  return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf64>
}

// The second needs the first; the third and the fourth are ready together, and the loop reads them.
// CHECK-LABEL: func.func @reader_in_between
func.func @reader_in_between(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  // CHECK: hypershard.all_reduce %{{.*}} : tensor<4xf32>
  %0 = hypershard.all_reduce %x over @m {"dp"} <sum> : tensor<4xf32> -> tensor<4xf32>
  %1 = arith.negf %0 : tensor<4xf32>
  %2 = arith.mulf %x, %x : tensor<4xf32>
  // CHECK: hypershard.all_reduce %{{.*}} : tensor<8xf32>
  %3 = hypershard.all_reduce %1 over @m {"dp"} <sum> : tensor<4xf32> -> tensor<4xf32>
  %4 = hypershard.all_reduce %2 over @m {"dp"} <sum> : tensor<4xf32> -> tensor<4xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // CHECK: scf.for
  %5 = scf.for %i = %zero to %n step %one iter_args(%c = %x) -> tensor<4xf32> {
    %6 = arith.addf %3, %4 : tensor<4xf32>
    // CHECK: hypershard.all_reduce %{{.*}} : tensor<4xf32>
    %7 = hypershard.all_reduce %6 over @m {"dp"} <sum> : tensor<4xf32> -> tensor<4xf32>
    scf.yield %7 : tensor<4xf32>
  }
  return %5 : tensor<4xf32>
}

// 8 MiB are copied four times in 34 us; a reduction without data takes 11.
// CHECK-LABEL: func.func @large
func.func @large(%x: tensor<2097152xf32>) -> (tensor<2097152xf32>, tensor<2097152xf32>) {
  // CHECK-COUNT-2: hypershard.all_reduce %{{.*}} : tensor<2097152xf32>
  %0 = hypershard.all_reduce %x over @m {"dp"} <sum> : tensor<2097152xf32> -> tensor<2097152xf32>
  %1 = hypershard.all_reduce %0 over @m {"dp"} <sum> : tensor<2097152xf32> -> tensor<2097152xf32>
  return %0, %1 : tensor<2097152xf32>, tensor<2097152xf32>
}
