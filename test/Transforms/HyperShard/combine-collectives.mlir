// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small collectives of one moment become one.
// RUN: hp-opt --hypershard-combine-collectives %s | FileCheck %s
// RUN: hp-opt --hypershard-combine-collectives --mlir-pass-statistics %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATS

// STATS: CombineCollectives
// STATS-DAG: (S) 4 num-buckets
// STATS-DAG: (S) 9 num-combined
// STATS-DAG: (S) 2 num-declined-inner
// STATS-DAG: (S) 3 num-declined-dear

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

// To copy 128 MiB four times takes longer than a reduction without data.
// CHECK-LABEL: func.func @large
func.func @large(%x: tensor<33554432xf32>) -> (tensor<33554432xf32>, tensor<33554432xf32>) {
  // CHECK-COUNT-2: hypershard.all_reduce %{{.*}} : tensor<33554432xf32>
  %0 = hypershard.all_reduce %x over @m {"dp"} <sum> : tensor<33554432xf32> -> tensor<33554432xf32>
  %1 = hypershard.all_reduce %0 over @m {"dp"} <sum> : tensor<33554432xf32> -> tensor<33554432xf32>
  return %0, %1 : tensor<33554432xf32>, tensor<33554432xf32>
}

// The parameters of a layer: by columns of the row that comes from all devices. What is large, or split along an inner
// dimension, is gathered by itself, and does not stand in the way of the others.
// CHECK-LABEL: func.func @gathers
// CHECK-SAME: (%[[X:.*]]: tensor<3xf32>, %[[Y:.*]]: tensor<1x2x5xf32>, %[[L:.*]]: tensor<33554432xf32>, %[[I:.*]]: tensor<2x3xf32>)
func.func @gathers(%x: tensor<3xf32>, %y: tensor<1x2x5xf32>, %large: tensor<33554432xf32>, %inner: tensor<2x3xf32>)
    -> (tensor<6xf32>, tensor<1x4x5xf32>, tensor<67108864xf32>, tensor<2x6xf32>) {
  // CHECK-DAG: hypershard.all_gather %[[L]]
  // CHECK-DAG: hypershard.all_gather %[[I]]
  // CHECK: %[[A:.*]] = tensor.insert_slice %[[X]] into %{{.*}}[0] [3] [1]
  // CHECK: %[[FY:.*]] = tensor.collapse_shape %[[Y]] {{\[}}[0, 1, 2]] : tensor<1x2x5xf32> into tensor<10xf32>
  // CHECK: %[[B:.*]] = tensor.insert_slice %[[FY]] into %[[A]][3] [10] [1]
  // CHECK: %[[G:.*]] = hypershard.all_gather %[[B]] over @m {"dp"} dim 0 {hp.path = "h.0"} : tensor<13xf32> -> tensor<26xf32>
  %0 = hypershard.all_gather %x over @m {"dp"} dim 0 {hp.path = "h.0", hp.phase = "forward"} : tensor<3xf32> -> tensor<6xf32>
  %1 = hypershard.all_gather %large over @m {"dp"} dim 0 : tensor<33554432xf32> -> tensor<67108864xf32>
  %2 = hypershard.all_gather %inner over @m {"dp"} dim 1 : tensor<2x3xf32> -> tensor<2x6xf32>
  %3 = hypershard.all_gather %y over @m {"dp"} dim 1 {hp.path = "h.0"} : tensor<1x2x5xf32> -> tensor<1x4x5xf32>
  // CHECK: %[[E:.*]] = tensor.expand_shape %[[G]] {{\[}}[0, 1]] output_shape [2, 13]
  // CHECK: %[[PX:.*]] = tensor.extract_slice %[[E]][0, 0] [2, 3] [1, 1]
  // CHECK: tensor.collapse_shape %[[PX]] {{\[}}[0, 1]] : tensor<2x3xf32> into tensor<6xf32>
  // CHECK: %[[PY:.*]] = tensor.extract_slice %{{.*}}[0, 3] [2, 10] [1, 1]
  // CHECK: tensor.expand_shape %{{.*}} {{\[}}[0, 1, 2]] output_shape [1, 4, 5]
  return %0, %3, %1, %2 : tensor<6xf32>, tensor<1x4x5xf32>, tensor<67108864xf32>, tensor<2x6xf32>
}

// Their gradients, the other way.
// CHECK-LABEL: func.func @scatters
// CHECK-SAME: (%[[X:.*]]: tensor<6xf32>, %[[Y:.*]]: tensor<4x5xf32>, %[[I:.*]]: tensor<2x4xf32>)
func.func @scatters(%x: tensor<6xf32>, %y: tensor<4x5xf32>, %inner: tensor<2x4xf32>) -> (tensor<3xf32>, tensor<2x5xf32>, tensor<2x2xf32>) {
  // CHECK: hypershard.reduce_scatter %[[I]]
  // CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[0, 0] [2, 3] [1, 1]
  // CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[0, 3] [2, 10] [1, 1]
  // CHECK: %[[S:.*]] = hypershard.reduce_scatter %{{.*}} over @m {"dp"} <sum> dim 0 : tensor<26xf32> -> tensor<13xf32>
  %0 = hypershard.reduce_scatter %x over @m {"dp"} <sum> dim 0 : tensor<6xf32> -> tensor<3xf32>
  %1 = hypershard.reduce_scatter %inner over @m {"dp"} <sum> dim 1 : tensor<2x4xf32> -> tensor<2x2xf32>
  %2 = hypershard.reduce_scatter %y over @m {"dp"} <sum> dim 0 : tensor<4x5xf32> -> tensor<2x5xf32>
  // CHECK: tensor.extract_slice %[[S]][0] [3] [1]
  // CHECK: tensor.extract_slice %[[S]][3] [10] [1]
  return %0, %2, %1 : tensor<3xf32>, tensor<2x5xf32>, tensor<2x2xf32>
}

// What computes in between is what the first runs beside.
// CHECK-LABEL: func.func @computes_in_between
func.func @computes_in_between(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>) {
  // CHECK-COUNT-2: hypershard.all_gather %{{.*}} : tensor<4xf32> -> tensor<8xf32>
  %0 = hypershard.all_gather %x over @m {"dp"} dim 0 : tensor<4xf32> -> tensor<8xf32>
  %1 = arith.negf %x : tensor<4xf32>
  %2 = hypershard.all_gather %y over @m {"dp"} dim 0 : tensor<4xf32> -> tensor<8xf32>
  return %0, %2, %1 : tensor<8xf32>, tensor<8xf32>, tensor<4xf32>
}
