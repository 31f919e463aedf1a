// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is not searched is reduced, gathered and sliced, and a remark says so.
// RUN: hp-opt --hypershard-lower-reshards --remarks-filter=hypershard-lower-reshards --remark-format=emitRemark %s 2>&1 | FileCheck %s
// RUN: hp-opt --hypershard-lower-reshards --mlir-pass-statistics %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATS

// STATS: (S) 2 num-not-searched

hypershard.mesh @m = <["a"=6, "b"=2]>

// Parts of 2 and of 3 at the head of an axis of 6 are not made of common parts.
// CHECK: remark: {{.*}}all_gather {"a":(1)2} + slice_local {"a":(1)3}: 24 bytes, {{.*}}; too many layouts to search
func.func @no_common_parts(%x: tensor<12xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a":(1)2}]>}) -> tensor<12xf32> {
  %0 = hypershard.reshard %x <@m, [{"a":(1)3}]> : tensor<12xf32>
  return %0 : tensor<12xf32>
}

// The same with sums, a head that can stay, and another dimension.
// CHECK: remark: {{.*}}all_reduce {"a":(1)2} + slice_local {"a":(1)3}: 96 bytes, {{.*}}; too many layouts to search
func.func @sums(%x: tensor<12x4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"b"}, {}], partial=<sum {"a":(1)2}>>}) -> tensor<12x4xf32> {
  %0 = hypershard.reshard %x <@m, [{"b", "a":(1)3}, {}]> : tensor<12x4xf32>
  return %0 : tensor<12x4xf32>
}

// CHECK-LABEL: func.func @no_common_parts
// CHECK: %[[G:.*]] = hypershard.all_gather %{{.*}} over @m {"a":(1)2} dim 0 {hypershard.sharding = #hypershard.sharding<@m, [{}]>}
// CHECK: hypershard.slice_local %[[G]] over @m {"a":(1)3} dim 0 {hypershard.sharding = #hypershard.sharding<@m, [{"a":(1)3}]>}
// CHECK-LABEL: func.func @sums
// CHECK: %[[R:.*]] = hypershard.all_reduce %{{.*}} over @m {"a":(1)2} <sum> {hypershard.sharding = #hypershard.sharding<@m, [{"b"}, {}]>}
// CHECK: hypershard.slice_local %[[R]] over @m {"a":(1)3} dim 0 {hypershard.sharding = #hypershard.sharding<@m, [{"b", "a":(1)3}, {}]>}
