// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// With a machine, the least time counts: a small tensor takes the way of the fewest rounds, a large one that of the
// fewest bytes.
// RUN: hp-opt --hypershard-lower-reshards %s | FileCheck %s

module attributes {supernode.machine = #supernode.machine<preset = "a3-node">} {
hypershard.mesh @m = <["dp"=2, "tp"=4]>

// CHECK-LABEL: func.func @small
func.func @small(%x: tensor<8x8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"dp", "tp"}, {}]>}) -> tensor<8x8xf32> {
  // CHECK-NEXT: hypershard.all_gather %{{.*}} over @m {"tp"} dim 0
  // CHECK-NEXT: hypershard.all_to_all %{{.*}} over @m {"dp"} split 1 concat 0
  %0 = hypershard.reshard %x <@m, [{}, {"dp"}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @large
func.func @large(%x: tensor<8192x8192xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"dp", "tp"}, {}]>}) -> tensor<8192x8192xf32> {
  // CHECK-NEXT: hypershard.all_to_all %{{.*}} over @m {"dp", "tp"} split 1 concat 0
  // CHECK-NEXT: hypershard.all_gather %{{.*}} over @m {"tp"} dim 1
  %0 = hypershard.reshard %x <@m, [{}, {"dp"}]> : tensor<8192x8192xf32>
  return %0 : tensor<8192x8192xf32>
}
}
