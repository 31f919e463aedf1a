// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives that others make needless or smaller. Devices: dp=2, tp=4.
// RUN: hp-opt --hypershard-optimize-collectives %s | FileCheck %s
// RUN: hp-opt --hypershard-optimize-collectives --mlir-pass-statistics %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATS

// STATS: OptimizeCollectives
// STATS-DAG: (S) 1 num-declined-halos
// STATS-DAG: (S) 2 num-declined-shared
// STATS-DAG: (S) 7 num-dropped
// STATS-DAG: (S) 1 num-halos-composed
// STATS-DAG: (S) 6 num-joined
// STATS-DAG: (S) 2 num-merged
// STATS-DAG: (S) 3 num-scattered
// STATS-DAG: (S) 3 num-sliced

hypershard.mesh @m = <["dp"=2, "tp"=4, "one"=1]>

// Rule 1.
// CHECK-LABEL: func.func @groups_of_one
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32>, %[[Y:.*]]: tensor<4x8xf32>)
func.func @groups_of_one(%x: tensor<8xf32>, %y: tensor<4x8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<4x8xf32>, tensor<8xf32>) {
  // CHECK-NEXT: return %[[X]], %[[X]], %[[Y]], %[[X]]
  %0 = hypershard.all_gather %x over @m {} dim 0 : tensor<8xf32> -> tensor<8xf32>
  %1 = hypershard.all_reduce %x over @m {"one"} <avg> : tensor<8xf32> -> tensor<8xf32>
  %2 = hypershard.all_to_all %y over @m {"one"} split 0 concat 1 : tensor<4x8xf32> -> tensor<4x8xf32>
  %3 = hypershard.halo_exchange %x over @m {"tp"} dim 0 of 32 window 0 step 8 size 8 : tensor<8xf32> -> tensor<8xf32>
  return %0, %1, %2, %3 : tensor<8xf32>, tensor<8xf32>, tensor<4x8xf32>, tensor<8xf32>
}

// The last block has padding, which the exchange sets to zero: it stays.
// CHECK-LABEL: func.func @padding_is_cleared
func.func @padding_is_cleared(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: hypershard.halo_exchange
  %0 = hypershard.halo_exchange %x over @m {"tp"} dim 0 of 31 window 0 step 8 size 8 : tensor<8xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Rule 2.
// CHECK-LABEL: func.func @gathers
func.func @gathers(%x: tensor<2x3xf32>) -> tensor<16x3xf32> {
  // CHECK-NEXT: hypershard.all_gather %{{.*}} over @m {"dp", "tp"} dim 0 : tensor<2x3xf32> -> tensor<16x3xf32>
  %0 = hypershard.all_gather %x over @m {"tp"} dim 0 : tensor<2x3xf32> -> tensor<8x3xf32>
  %1 = hypershard.all_gather %0 over @m {"dp"} dim 0 : tensor<8x3xf32> -> tensor<16x3xf32>
  return %1 : tensor<16x3xf32>
}

// Other dimensions, or a second reader of what is in between: two gathers.
// CHECK-LABEL: func.func @gathers_apart
func.func @gathers_apart(%x: tensor<2x3xf32>) -> (tensor<8x6xf32>, tensor<16x3xf32>) {
  // CHECK-COUNT-3: hypershard.all_gather
  %0 = hypershard.all_gather %x over @m {"tp"} dim 0 : tensor<2x3xf32> -> tensor<8x3xf32>
  %1 = hypershard.all_gather %0 over @m {"dp"} dim 1 : tensor<8x3xf32> -> tensor<8x6xf32>
  %2 = hypershard.all_gather %0 over @m {"dp"} dim 0 : tensor<8x3xf32> -> tensor<16x3xf32>
  return %1, %2 : tensor<8x6xf32>, tensor<16x3xf32>
}

// CHECK-LABEL: func.func @reductions
func.func @reductions(%x: tensor<16xf32>) -> (tensor<16xf32>, tensor<2xf32>) {
  // CHECK-DAG: hypershard.all_reduce %{{.*}} over @m {"dp", "tp"} <max> : tensor<16xf32>
  %0 = hypershard.all_reduce %x over @m {"tp"} <max> : tensor<16xf32> -> tensor<16xf32>
  %1 = hypershard.all_reduce %0 over @m {"dp"} <max> : tensor<16xf32> -> tensor<16xf32>
  // CHECK-DAG: hypershard.reduce_scatter %{{.*}} over @m {"tp", "dp"} <sum> dim 0 : tensor<16xf32> -> tensor<2xf32>
  %2 = hypershard.reduce_scatter %x over @m {"tp"} <sum> dim 0 : tensor<16xf32> -> tensor<4xf32>
  %3 = hypershard.reduce_scatter %2 over @m {"dp"} <sum> dim 0 : tensor<4xf32> -> tensor<2xf32>
  return %1, %3 : tensor<16xf32>, tensor<2xf32>
}

// CHECK-LABEL: func.func @reductions_of_two_kinds
func.func @reductions_of_two_kinds(%x: tensor<16xf32>) -> tensor<16xf32> {
  // CHECK-NEXT: hypershard.all_reduce %{{.*}} over @m {"tp"} <max>
  // CHECK-NEXT: hypershard.all_reduce %{{.*}} over @m {"dp"} <min>
  %0 = hypershard.all_reduce %x over @m {"tp"} <max> : tensor<16xf32> -> tensor<16xf32>
  %1 = hypershard.all_reduce %0 over @m {"dp"} <min> : tensor<16xf32> -> tensor<16xf32>
  return %1 : tensor<16xf32>
}

// CHECK-LABEL: func.func @slices
func.func @slices(%x: tensor<16xf32>) -> tensor<2xf32> {
  // CHECK-NEXT: hypershard.slice_local %{{.*}} over @m {"dp", "tp"} dim 0 : tensor<16xf32> -> tensor<2xf32>
  %0 = hypershard.slice_local %x over @m {"dp"} dim 0 : tensor<16xf32> -> tensor<8xf32>
  %1 = hypershard.slice_local %0 over @m {"tp"} dim 0 : tensor<8xf32> -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// Blocks of 3 cut into blocks of 1 are four places, the last of them padding; 6 cut at once into 8 is another thing.
// CHECK-LABEL: func.func @slices_apart
func.func @slices_apart(%x: tensor<6xf32>) -> tensor<1xf32> {
  // CHECK-COUNT-2: hypershard.slice_local
  %0 = hypershard.slice_local %x over @m {"dp"} dim 0 : tensor<6xf32> -> tensor<3xf32>
  %1 = hypershard.slice_local %0 over @m {"tp"} dim 0 : tensor<3xf32> -> tensor<1xf32>
  return %1 : tensor<1xf32>
}

// Rule 3.
// CHECK-LABEL: func.func @gather_of_scatter
func.func @gather_of_scatter(%x: tensor<16xf32>) -> tensor<16xf32> {
  // CHECK-NEXT: hypershard.all_reduce %{{.*}} over @m {"tp"} <sum> : tensor<16xf32>
  %0 = hypershard.reduce_scatter %x over @m {"tp"} <sum> dim 0 : tensor<16xf32> -> tensor<4xf32>
  %1 = hypershard.all_gather %0 over @m {"tp"} dim 0 : tensor<4xf32> -> tensor<16xf32>
  return %1 : tensor<16xf32>
}

// Rule 4: the slice by tp keeps the head of the gather.
// CHECK-LABEL: func.func @slice_of_gather
// CHECK-SAME: (%[[X:.*]]: tensor<2xf32>)
func.func @slice_of_gather(%x: tensor<2xf32>) -> (tensor<4xf32>, tensor<2xf32>) {
  // CHECK-NEXT: %[[Y:.*]] = hypershard.all_gather %[[X]] over @m {"dp"} dim 0 : tensor<2xf32> -> tensor<4xf32>
  %0 = hypershard.all_gather %x over @m {"tp", "dp"} dim 0 : tensor<2xf32> -> tensor<16xf32>
  %1 = hypershard.slice_local %0 over @m {"tp"} dim 0 : tensor<16xf32> -> tensor<4xf32>
  %2 = hypershard.all_gather %x over @m {"tp"} dim 0 : tensor<2xf32> -> tensor<8xf32>
  %3 = hypershard.slice_local %2 over @m {"tp"} dim 0 : tensor<8xf32> -> tensor<2xf32>
  // CHECK-NEXT: return %[[Y]], %[[X]]
  return %1, %3 : tensor<4xf32>, tensor<2xf32>
}

// The slice is by the tail of the gather: not a block of it.
// CHECK-LABEL: func.func @slice_of_gather_apart
func.func @slice_of_gather_apart(%x: tensor<2xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: hypershard.all_gather
  // CHECK-NEXT: hypershard.slice_local
  %0 = hypershard.all_gather %x over @m {"tp", "dp"} dim 0 : tensor<2xf32> -> tensor<16xf32>
  %1 = hypershard.slice_local %0 over @m {"dp"} dim 0 : tensor<16xf32> -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// Rule 5: the whole group is sliced, ...
// CHECK-LABEL: func.func @slice_of_reduce
func.func @slice_of_reduce(%x: tensor<8x4xf32>) -> tensor<2x4xf32> {
  // CHECK-NEXT: hypershard.reduce_scatter %{{.*}} over @m {"tp"} <sum> dim 0 : tensor<8x4xf32> -> tensor<2x4xf32>
  %0 = hypershard.all_reduce %x over @m {"tp"} <sum> : tensor<8x4xf32> -> tensor<8x4xf32>
  %1 = hypershard.slice_local %0 over @m {"tp"} dim 0 : tensor<8x4xf32> -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// ... a part of the group, with a dimension that does not divide, ...
// CHECK-LABEL: func.func @slice_of_reduce_by_a_part
func.func @slice_of_reduce_by_a_part(%x: tensor<7xf32>) -> tensor<2xf32> {
  // CHECK: %[[P:.*]] = tensor.pad %{{.*}} low[0] high[1]
  // CHECK: tensor<7xf32> to tensor<8xf32>
  // CHECK-NEXT: %[[S:.*]] = hypershard.reduce_scatter %[[P]] over @m {"tp"} <max> dim 0 : tensor<8xf32> -> tensor<2xf32>
  // CHECK-NEXT: hypershard.all_reduce %[[S]] over @m {"dp"} <max> : tensor<2xf32>
  %0 = hypershard.all_reduce %x over @m {"dp", "tp"} <max> : tensor<7xf32> -> tensor<7xf32>
  %1 = hypershard.slice_local %0 over @m {"tp"} dim 0 : tensor<7xf32> -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// ... and by other axes than the group's: sliced first.
// CHECK-LABEL: func.func @slice_before_reduce
func.func @slice_before_reduce(%x: tensor<8xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: %[[S:.*]] = hypershard.slice_local %{{.*}} over @m {"dp"} dim 0 : tensor<8xf32> -> tensor<4xf32>
  // CHECK-NEXT: hypershard.all_reduce %[[S]] over @m {"tp"} <sum> : tensor<4xf32>
  %0 = hypershard.all_reduce %x over @m {"tp"} <sum> : tensor<8xf32> -> tensor<8xf32>
  %1 = hypershard.slice_local %0 over @m {"dp"} dim 0 : tensor<8xf32> -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// The whole sum is wanted too: it is not computed twice.
// CHECK-LABEL: func.func @sum_is_read_twice
func.func @sum_is_read_twice(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<2xf32>) {
  // CHECK-NEXT: hypershard.all_reduce
  // CHECK-NEXT: hypershard.slice_local
  %0 = hypershard.all_reduce %x over @m {"tp"} <sum> : tensor<8xf32> -> tensor<8xf32>
  %1 = hypershard.slice_local %0 over @m {"tp"} dim 0 : tensor<8xf32> -> tensor<2xf32>
  return %0, %1 : tensor<8xf32>, tensor<2xf32>
}

// Equal slices of an equal sum are merged first, so that the sum has one reader.
// CHECK-LABEL: func.func @equal_chains
func.func @equal_chains(%x: tensor<8xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  // CHECK-NEXT: %[[S:.*]] = hypershard.reduce_scatter
  // CHECK-NEXT: return %[[S]], %[[S]]
  %0 = hypershard.all_reduce %x over @m {"tp"} <sum> : tensor<8xf32> -> tensor<8xf32>
  %1 = hypershard.all_reduce %x over @m {"tp"} <sum> : tensor<8xf32> -> tensor<8xf32>
  %2 = hypershard.slice_local %0 over @m {"tp"} dim 0 : tensor<8xf32> -> tensor<2xf32>
  %3 = hypershard.slice_local %1 over @m {"tp"} dim 0 : tensor<8xf32> -> tensor<2xf32>
  return %2, %3 : tensor<2xf32>, tensor<2xf32>
}

// Rules 6 and 7.
// CHECK-LABEL: func.func @there_and_back
// CHECK-SAME: (%[[X:.*]]: tensor<8x4xf32>)
func.func @there_and_back(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  // CHECK-NEXT: return %[[X]], %[[X]]
  %0 = hypershard.all_to_all %x over @m {"tp"} split 0 concat 1 : tensor<8x4xf32> -> tensor<2x16xf32>
  %1 = hypershard.all_to_all %0 over @m {"tp"} split 1 concat 0 : tensor<2x16xf32> -> tensor<8x4xf32>
  %2 = hypershard.permute %x over @m {"dp", "tp"} to {"tp", "dp"} : tensor<8x4xf32> -> tensor<8x4xf32>
  %3 = hypershard.permute %2 over @m {"tp", "dp"} to {"dp", "tp"} : tensor<8x4xf32> -> tensor<8x4xf32>
  return %1, %3 : tensor<8x4xf32>, tensor<8x4xf32>
}

// Rule 8. Columns 3..30 of 32 are blocks of 7; of those, windows that begin one before: columns 2..., of which the first
// was cut off and must read as zero. The exchanges cannot be one.
// CHECK-LABEL: func.func @windows_apart
func.func @windows_apart(%x: tensor<8xf32>) -> tensor<9xf32> {
  // CHECK-COUNT-2: hypershard.halo_exchange
  %0 = hypershard.halo_exchange %x over @m {"tp"} dim 0 of 32 window 3 step 7 size 7 : tensor<8xf32> -> tensor<7xf32>
  %1 = hypershard.halo_exchange %0 over @m {"tp"} dim 0 of 28 window -1 step 7 size 9 : tensor<7xf32> -> tensor<9xf32>
  return %1 : tensor<9xf32>
}

// Two zeros are put on either side of 32 columns, then windows of 11 are taken with step 9: exact in one exchange.
// CHECK-LABEL: func.func @windows
func.func @windows(%x: tensor<8xf32>) -> tensor<11xf32> {
  // CHECK-NEXT: hypershard.halo_exchange %{{.*}} over @m {"tp"} dim 0 of 32 window -2 step 9 size 11 : tensor<8xf32> -> tensor<11xf32>
  // CHECK-NEXT: return
  %0 = hypershard.halo_exchange %x over @m {"tp"} dim 0 of 32 window -2 step 9 size 9 : tensor<8xf32> -> tensor<9xf32>
  %1 = hypershard.halo_exchange %0 over @m {"tp"} dim 0 of 36 window 0 step 9 size 11 : tensor<9xf32> -> tensor<11xf32>
  return %1 : tensor<11xf32>
}

// Global form is not touched: a layout hangs on every value.
// CHECK-LABEL: func.func @global_form
func.func @global_form(%x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"dp", "tp"}]>}) -> tensor<8xf32> {
  // CHECK-COUNT-2: hypershard.all_gather
  %0 = hypershard.all_gather %x over @m {"tp"} dim 0 {hypershard.sharding = #hypershard.sharding<@m, [{"dp"}]>} : tensor<8xf32> -> tensor<8xf32>
  %1 = hypershard.all_gather %0 over @m {"dp"} dim 0 {hypershard.sharding = #hypershard.sharding<@m, [{}]>} : tensor<8xf32> -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
