// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Each reshard becomes the collectives in which a device receives the fewest bytes.
// RUN: hp-opt --hypershard-lower-reshards --mlir-print-local-scope %s | FileCheck %s
// RUN: hp-opt --hypershard-lower-reshards --remarks-filter=hypershard-lower-reshards --remark-format=emitRemark %s -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK
// RUN: hp-opt --hypershard-lower-reshards --mlir-pass-statistics %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATS

// STATS: LowerReshards
// STATS-DAG: (S) [[#]] num-bytes
// STATS-DAG: (S) [[#]] num-collectives
// STATS-DAG: (S) 2 num-identities
// STATS-DAG: (S) 0 num-not-searched
// STATS-DAG: (S) 3 num-shared

hypershard.mesh @m = <["dp"=2, "tp"=4]>

// The layout stays, although one dimension is open: nothing to do.
// CHECK-LABEL: func.func @identity
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32>
func.func @identity(%x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"dp", ?}]>}) -> tensor<8xf32> {
  // CHECK-NEXT: return %[[X]]
  %0 = hypershard.reshard %x <@m, [{"dp"}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// A value without a sharding is whole.
// CHECK-LABEL: func.func @unannotated
func.func @unannotated(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: hypershard.slice_local %{{.*}} over @m {"tp"} dim 0 {hypershard.sharding = #hypershard.sharding<@m, [{"tp"}]>}
  // REMARK: reshard{{.*}}slice_local {"tp"}: 0 bytes, 1.00 us
  %0 = hypershard.reshard %x <@m, [{"tp"}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Both axes at once, in one gather: 7 blocks of 4 bytes come in.
// CHECK-LABEL: func.func @gather
func.func @gather(%x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"tp", "dp"}]>}) -> tensor<8xf32> {
  // CHECK-NEXT: %[[Y:.*]] = hypershard.all_gather %{{.*}} over @m {"tp", "dp"} dim 0 {hypershard.sharding = #hypershard.sharding<@m, [{}]>}
  // CHECK-NEXT: return %[[Y]]
  // REMARK: all_gather {"tp", "dp"}: 28 bytes
  %0 = hypershard.reshard %x <@m, [{}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Another order of the same axes is one permute.
// CHECK-LABEL: func.func @swap
func.func @swap(%x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"dp", "tp"}]>}) -> tensor<8xf32> {
  // CHECK-NEXT: hypershard.permute %{{.*}} over @m {"dp", "tp"} to {"tp", "dp"} {hypershard.sharding = #hypershard.sharding<@m, [{"tp", "dp"}]>}
  // REMARK: permute {"dp", "tp"}: 4 bytes, {{.*}}; refused: gather and slice, 28 bytes
  %0 = hypershard.reshard %x <@m, [{"tp", "dp"}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// A minor axis goes to another dimension: one all-to-all over it.
// CHECK-LABEL: func.func @move_an_axis
func.func @move_an_axis(%x: tensor<8x8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}, {"dp", "tp"}]>}) -> tensor<8x8xf32> {
  // CHECK-NEXT: hypershard.all_to_all %{{.*}} over @m {"tp"} split 0 concat 1 {hypershard.sharding = #hypershard.sharding<@m, [{"tp"}, {"dp"}]>}
  // REMARK: all_to_all {"tp"}: 24 bytes
  %0 = hypershard.reshard %x <@m, [{"tp"}, {"dp"}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// From rows over both axes to columns over dp: rows are exchanged for columns over both, then tp is gathered. 28 + 96
// bytes instead of 224.
// CHECK-LABEL: func.func @rows_to_columns
func.func @rows_to_columns(%x: tensor<8x8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"dp", "tp"}, {}]>}) -> tensor<8x8xf32> {
  // CHECK-NEXT: %[[A:.*]] = hypershard.all_to_all %{{.*}} over @m {"dp", "tp"} split 1 concat 0 {hypershard.sharding = #hypershard.sharding<@m, [{}, {"dp", "tp"}]>}
  // CHECK-NEXT: hypershard.all_gather %[[A]] over @m {"tp"} dim 1 {hypershard.sharding = #hypershard.sharding<@m, [{}, {"dp"}]>}
  // REMARK: all_to_all {"dp", "tp"} + all_gather {"tp"}: 124 bytes, {{.*}}; refused: gather and slice, 224 bytes
  %0 = hypershard.reshard %x <@m, [{}, {"dp"}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// A sum that is split afterwards is scattered, not reduced and sliced.
// CHECK-LABEL: func.func @sum_to_rows
func.func @sum_to_rows(%x: tensor<8x2xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}, {}], partial=<sum {"tp"}>>}) -> tensor<8x2xf32> {
  // CHECK-NEXT: hypershard.reduce_scatter %{{.*}} over @m {"tp"} <sum> dim 0 {hypershard.sharding = #hypershard.sharding<@m, [{"tp"}, {}]>}
  // REMARK: reduce_scatter {"tp"}: 48 bytes, {{.*}}; refused: gather and slice, 96 bytes
  %0 = hypershard.reshard %x <@m, [{"tp"}, {}]> : tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}

// Partial over two axes: one reduction, of the value's own kind.
// CHECK-LABEL: func.func @max_over_both
func.func @max_over_both(%x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}], partial=<max {"dp", "tp"}>>}) -> tensor<8xf32> {
  // CHECK-NEXT: hypershard.all_reduce %{{.*}} over @m {"dp", "tp"} <max> {hypershard.sharding = #hypershard.sharding<@m, [{}]>}
  %0 = hypershard.reshard %x <@m, [{}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// One of two partial axes is reduced, the other stays.
// CHECK-LABEL: func.func @some_stay_partial
func.func @some_stay_partial(%x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}], partial=<sum {"dp", "tp"}>>}) -> tensor<8xf32> {
  // CHECK-NEXT: hypershard.all_reduce %{{.*}} over @m {"tp"} <sum> {hypershard.sharding = #hypershard.sharding<@m, [{}], partial=<sum {"dp"}>>}
  %0 = hypershard.reshard %x <@m, [{}], partial=<sum {"dp"}>> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Copies are terms of a maximum: only the name changes, over no devices.
// CHECK-LABEL: func.func @copies_become_terms
func.func @copies_become_terms(%x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"dp"}]>}) -> tensor<8xf32> {
  // CHECK-NEXT: hypershard.all_reduce %{{.*}} over @m {} <max> {hypershard.sharding = #hypershard.sharding<@m, [{"dp"}], partial=<max {"tp"}>>}
  %0 = hypershard.reshard %x <@m, [{"dp"}], partial=<max {"tp"}>> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// 6 rows over 8 devices are blocks of 1 and two empty ones; over dp, blocks of 3. The fine blocks do not tile the
// coarse ones, so all are gathered, then sliced.
// CHECK-LABEL: func.func @blocks_do_not_nest
func.func @blocks_do_not_nest(%x: tensor<6xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"dp", "tp"}]>}) -> tensor<6xf32> {
  // CHECK-NEXT: %[[A:.*]] = hypershard.all_gather %{{.*}} over @m {"dp", "tp"} dim 0 {hypershard.sharding = #hypershard.sharding<@m, [{}]>}
  // CHECK-NEXT: hypershard.slice_local %[[A]] over @m {"dp"} dim 0 {hypershard.sharding = #hypershard.sharding<@m, [{"dp"}]>}
  %0 = hypershard.reshard %x <@m, [{"dp"}]> : tensor<6xf32>
  return %0 : tensor<6xf32>
}

// 7 rows: blocks of 1 tile blocks of 4 (the last is padding).
// CHECK-LABEL: func.func @blocks_nest
func.func @blocks_nest(%x: tensor<7xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"dp", "tp"}]>}) -> tensor<7xf32> {
  // CHECK-NEXT: hypershard.all_gather %{{.*}} over @m {"tp"} dim 0 {hypershard.sharding = #hypershard.sharding<@m, [{"dp"}]>}
  %0 = hypershard.reshard %x <@m, [{"dp"}]> : tensor<7xf32>
  return %0 : tensor<7xf32>
}

// A part of an axis.
// CHECK-LABEL: func.func @sub_axis
func.func @sub_axis(%x: tensor<8x8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"tp"}, {}]>}) -> tensor<8x8xf32> {
  // CHECK-NEXT: hypershard.all_to_all %{{.*}} over @m {"tp":(2)2} split 1 concat 0 {hypershard.sharding = #hypershard.sharding<@m, [{"tp":(1)2}, {"tp":(2)2}]>}
  %0 = hypershard.reshard %x <@m, [{"tp":(1)2}, {"tp":(2)2}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// Two reshards of a value: the reduction is made once; two equal ones are one.
// CHECK-LABEL: func.func @shared_steps
func.func @shared_steps(%x: tensor<8x8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}, {}], partial=<sum {"tp"}>>})
    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  // CHECK-NEXT: %[[A:.*]] = hypershard.all_reduce %{{.*}} over @m {"tp"} <sum>
  // CHECK-NEXT: return %[[A]], %[[A]], %[[A]]
  %0 = hypershard.reshard %x <@m, [{}, {}]> : tensor<8x8xf32>
  %1 = hypershard.reshard %x <@m, [{}, {}], replicated={"dp"}> : tensor<8x8xf32>
  %2 = hypershard.reshard %0 <@m, [{}, {?}]> : tensor<8x8xf32>
  return %0, %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

// What is in one branch cannot serve the other; what comes before both can.
// CHECK-LABEL: func.func @branches
func.func @branches(%x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"tp"}]>}, %c: i1, %before: i1) -> tensor<8xf32> {
  // CHECK: scf.if
  // CHECK: hypershard.all_gather
  // CHECK: } else {
  // CHECK: hypershard.all_gather
  // CHECK: }
  %0 = scf.if %c -> tensor<8xf32> {
    %1 = hypershard.reshard %x <@m, [{}]> : tensor<8xf32>
    scf.yield %1 : tensor<8xf32>
  } else {
    %1 = hypershard.reshard %x <@m, [{}]> : tensor<8xf32>
    %2 = hypershard.reshard %x <@m, [{}]> : tensor<8xf32>
    %3 = arith.addf %1, %2 : tensor<8xf32>
    scf.yield %3 : tensor<8xf32>
  } {hypershard.sharding = #hypershard.sharding<@m, [{}]>}
  // CHECK: %[[G:.*]] = hypershard.all_gather
  %4 = hypershard.reshard %x <@m, [{}]> : tensor<8xf32>
  // CHECK: scf.if
  // CHECK-NEXT: scf.yield %[[G]]
  %5 = scf.if %before -> tensor<8xf32> {
    %6 = hypershard.reshard %x <@m, [{}]> : tensor<8xf32>
    scf.yield %6 : tensor<8xf32>
  } else {
    scf.yield %4 : tensor<8xf32>
  } {hypershard.sharding = #hypershard.sharding<@m, [{}]>}
  return %5 : tensor<8xf32>
}

// A loop-carried value has the sharding of the loop's result.
// CHECK-LABEL: func.func @loop
func.func @loop(%x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"tp"}]>}, %n: index) -> tensor<8xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // CHECK: scf.for {{.*}} iter_args(%[[C:.*]] =
  %0 = scf.for %i = %zero to %n step %one iter_args(%carried = %x) -> tensor<8xf32> {
    // CHECK-NEXT: %[[A:.*]] = hypershard.all_gather %[[C]] over @m {"tp"} dim 0
    %1 = hypershard.reshard %carried <@m, [{}]> : tensor<8xf32>
    %2 = arith.negf %1 {hypershard.sharding = #hypershard.sharding<@m, [{}]>} : tensor<8xf32>
    // CHECK: hypershard.slice_local %{{.*}} over @m {"tp"} dim 0
    %3 = hypershard.reshard %2 <@m, [{"tp"}]> : tensor<8xf32>
    scf.yield %3 : tensor<8xf32>
  } {hypershard.sharding = #hypershard.sharding<@m, [{"tp"}]>}
  return %0 : tensor<8xf32>
}
