// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which levels a group crosses: by device ids, in the mesh's own order, the slowest of the groups. A package has two
// devices and takes 1 us a message, a node three packages at 100 us; no bytes to speak of and no launch.
// RUN: hp-opt %s --test-print-costs -o /dev/null | FileCheck %s

module attributes {supernode.machine = #supernode.machine<"levels",
    groups = [<"npu" = 6, memory = "hbm", launch = 0, vector = 1.0e8, rates = [f32 = 2.0e9]>],
    levels = [<"package" = 2, latency = 1.0e-6, bandwidth = 1.0e30, algorithms = [direct]>,
              <"node" = 3, latency = 1.0e-4, bandwidth = 1.0e30, algorithms = [direct]>],
    tiers = [<"hbm" in "device", capacity = 1.0e9, bandwidth = 1.0e30>]>} {

hypershard.mesh @rows = <["a"=3, "b"=2]>
hypershard.mesh @columns = <["a"=3, "b"=2], device_ids=[0, 3, 1, 4, 2, 5]>
hypershard.mesh @triples = <["a"=2, "b"=3]>
hypershard.mesh @more = <["a"=4, "b"=3]>

// CHECK-LABEL: @groups:
func.func @groups(%x: tensor<6xf32>) {
  // 0 and 1 are a package.
  // CHECK-NEXT: seconds=1e-06
  %0 = hypershard.permute %x over @rows {"b"} to {"b"} : tensor<6xf32> -> tensor<6xf32>
  // Neighbours along "b" are 3 apart.
  // CHECK-NEXT: seconds=0.0001
  %1 = hypershard.permute %x over @columns {"b"} to {"b"} : tensor<6xf32> -> tensor<6xf32>
  // 0, 1 and 2: one pair and one other, no regular tree of levels, so flat on the outermost.
  // CHECK-NEXT: seconds=0.0001 {{.*}} by direct
  %2 = hypershard.all_gather %x over @triples {"b"} dim 0 : tensor<6xf32> -> tensor<18xf32>
  // All six, level by level: 1 us + 100 us; flat is one step of 100 us.
  // CHECK-NEXT: seconds=0.0001 {{.*}} by direct
  %3 = hypershard.all_gather %x over @rows {"a", "b"} dim 0 : tensor<6xf32> -> tensor<36xf32>
  // A mesh of more devices than the machine goes on at the outermost level.
  // CHECK-NEXT: seconds=0.0001
  %4 = hypershard.permute %x over @more {"a"} to {"a"} : tensor<6xf32> -> tensor<6xf32>
  return
}
}
