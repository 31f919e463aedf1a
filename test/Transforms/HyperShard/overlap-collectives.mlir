// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives start where their operand is ready and are waited for where their result is read.
// RUN: hp-opt --hypershard-overlap-collectives %s | FileCheck %s

hypershard.mesh @m = <["dp"=2, "tp"=4]>

// CHECK-LABEL: func.func @beside_computation
// CHECK-SAME: (%[[X:.*]]: tensor<8x4xf32>, %[[Y:.*]]: tensor<8x4xf32>)
func.func @beside_computation(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // CHECK-NEXT: %[[F:.*]] = hypershard.all_reduce_start %[[X]] over @m {"dp"} <sum>
  // CHECK-NEXT: %[[A:.*]] = arith.negf %[[Y]]
  // CHECK-NEXT: %[[B:.*]] = arith.mulf %[[A]], %[[A]]
  // CHECK-NEXT: %[[D:.*]] = hypershard.done %[[F]] : <tensor<8x4xf32>> -> tensor<8x4xf32>
  // CHECK-NEXT: arith.addf %[[D]], %[[B]]
  %0 = arith.negf %y : tensor<8x4xf32>
  %1 = hypershard.all_reduce %x over @m {"dp"} <sum> : tensor<8x4xf32> -> tensor<8x4xf32>
  %2 = arith.mulf %0, %0 : tensor<8x4xf32>
  %3 = arith.addf %1, %2 : tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}

// All five kinds; they start in the order of the program.
// CHECK-LABEL: func.func @kinds
func.func @kinds(%x: tensor<8x4xf32>) -> (tensor<8x8xf32>, tensor<8x4xf32>, tensor<2x4xf32>, tensor<2x16xf32>, tensor<8x4xf32>) {
  // CHECK-NEXT: hypershard.all_gather_start %{{.*}} over @m {"dp"} dim 1 : tensor<8x4xf32> -> <tensor<8x8xf32>>
  // CHECK-NEXT: hypershard.all_reduce_start %{{.*}} over @m {"tp"} <max>
  // CHECK-NEXT: hypershard.reduce_scatter_start %{{.*}} over @m {"tp"} <sum> dim 0
  // CHECK-NEXT: hypershard.all_to_all_start %{{.*}} over @m {"tp"} split 0 concat 1
  // CHECK-NEXT: hypershard.permute_start %{{.*}} over @m {"dp", "tp"} to {"tp", "dp"}
  // CHECK-COUNT-5: hypershard.done
  // CHECK-NEXT: return
  %0 = hypershard.all_gather %x over @m {"dp"} dim 1 : tensor<8x4xf32> -> tensor<8x8xf32>
  %1 = hypershard.all_reduce %x over @m {"tp"} <max> : tensor<8x4xf32> -> tensor<8x4xf32>
  %2 = hypershard.reduce_scatter %x over @m {"tp"} <sum> dim 0 : tensor<8x4xf32> -> tensor<2x4xf32>
  %3 = hypershard.all_to_all %x over @m {"tp"} split 0 concat 1 : tensor<8x4xf32> -> tensor<2x16xf32>
  %4 = hypershard.permute %x over @m {"dp", "tp"} to {"tp", "dp"} : tensor<8x4xf32> -> tensor<8x4xf32>
  return %0, %1, %2, %3, %4 : tensor<8x8xf32>, tensor<8x4xf32>, tensor<2x4xf32>, tensor<2x16xf32>, tensor<8x4xf32>
}

// The reader may be in a region of a later op.
// CHECK-LABEL: func.func @read_in_a_branch
func.func @read_in_a_branch(%x: tensor<8xf32>, %c: i1) -> tensor<8xf32> {
  // CHECK-NEXT: %[[F:.*]] = hypershard.all_reduce_start
  // CHECK-NEXT: arith.negf
  // CHECK-NEXT: %[[D:.*]] = hypershard.done %[[F]]
  // CHECK-NEXT: scf.if
  %0 = hypershard.all_reduce %x over @m {"dp"} <sum> : tensor<8xf32> -> tensor<8xf32>
  %1 = arith.negf %x : tensor<8xf32>
  %2 = scf.if %c -> tensor<8xf32> {
    // CHECK: scf.yield %[[D]]
    scf.yield %0 : tensor<8xf32>
  } else {
    scf.yield %1 : tensor<8xf32>
  }
  return %2 : tensor<8xf32>
}

// There is nothing between operand, collective and reader.
// CHECK-LABEL: func.func @nothing_to_do
func.func @nothing_to_do(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: arith.negf
  // CHECK-NEXT: hypershard.all_reduce %
  // CHECK-NEXT: return
  %0 = arith.negf %x : tensor<8xf32>
  %1 = hypershard.all_reduce %0 over @m {"dp"} <sum> : tensor<8xf32> -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
