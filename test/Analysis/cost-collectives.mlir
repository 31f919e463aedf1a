// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Seconds of collectives by level and algorithm, countable by hand. "tp" stays in a package (1 us, 1e9 bytes/s, ring);
// "dp" crosses packages (10 us, 1e8 bytes/s; ring or tree, which is what is allowed if nothing is said). The launch, 1 us,
// comes on top of each.
// RUN: hp-opt %s --test-print-costs -o /dev/null | FileCheck %s

module attributes {supernode.machine = #supernode.machine<"round",
    groups = [<"npu" = 8, memory = "hbm", launch = 1.0e-6, vector = 1.0e8, rates = [f32 = 2.0e9]>],
    levels = [<"package" = 2, latency = 1.0e-6, bandwidth = 1.0e9, algorithms = [ring]>,
              <"node" = 4, latency = 1.0e-5, bandwidth = 1.0e8>],
    tiers = [<"hbm" in "device", capacity = 1.0e9, bandwidth = 1.0e9>]>} {

hypershard.mesh @m = <["dp"=4, "tp"=2]>

// CHECK-LABEL: @all_reduce:
func.func @all_reduce(%x: tensor<1000xf32>, %small: tensor<2xf32>) {
  // Ring of 2: 2 steps of (1 us + 2000 bytes at 1e9).
  // CHECK-NEXT: read=4000 written=4000 received=4000 seconds=7e-06 bound=communication by ring
  %0 = hypershard.all_reduce %x over @m {"tp"} <sum> : tensor<1000xf32> -> tensor<1000xf32>
  // Ring of 4: 6 steps of (10 us + 1000 bytes at 1e8). Tree: 4 steps of (10 us + 40 us).
  // CHECK-NEXT: received=6000 seconds=0.000121 bound=communication by ring
  %1 = hypershard.all_reduce %x over @m {"dp"} <sum> : tensor<1000xf32> -> tensor<1000xf32>
  // 8 bytes: a ring takes 6 steps of 10.02 us, a tree 4 of 10.08 us.
  // CHECK-NEXT: received=12 seconds=4.132e-05 bound=communication by tree
  %2 = hypershard.all_reduce %small over @m {"dp"} <sum> : tensor<2xf32> -> tensor<2xf32>
  // Scatter in the package 3 us, reduce 2000 bytes over packages 6 * 15 us, gather in the package 3 us; flat 14 * 15 us.
  // CHECK-NEXT: received=7000 seconds=9.7e-05 bound=communication by hierarchical (ring, ring)
  %3 = hypershard.all_reduce %x over @m {"dp", "tp"} <sum> : tensor<1000xf32> -> tensor<1000xf32>
  return
}

// CHECK-LABEL: @others:
func.func @others(%x: tensor<100xf32>, %y: tensor<20x5xf32>, %h: tensor<4xf32>, %g: tensor<1000xf32>) {
  // One step of 1 us + 400 bytes.
  // CHECK-NEXT: all_gather: {{.*}} read=400 written=800 received=400 seconds=2.4e-06 bound=communication by ring
  %0 = hypershard.all_gather %x over @m {"tp"} dim 0 : tensor<100xf32> -> tensor<200xf32>
  // Over packages first, 3 steps of (10 us + 4 us), then 1600 bytes in the package, 2.6 us; flat 7 * 14 us.
  // CHECK-NEXT: all_gather: {{.*}} read=400 written=3200 received=2800 seconds=4.56e-05 bound=communication by hierarchical (ring, ring)
  %1 = hypershard.all_gather %x over @m {"dp", "tp"} dim 0 : tensor<100xf32> -> tensor<800xf32>
  // 3 steps of (10 us + 1 us).
  // CHECK-NEXT: reduce_scatter: {{.*}} read=400 written=100 received=300 seconds=3.4e-05 bound=communication by ring
  %2 = hypershard.reduce_scatter %x over @m {"dp"} <sum> dim 0 : tensor<100xf32> -> tensor<25xf32>
  // A tree takes 2 steps of (10 us + half of 400 bytes, 2 us), pairs 3 of (10 us + 1 us).
  // CHECK-NEXT: all_to_all: {{.*}} received=300 seconds=2.5e-05 bound=communication by tree
  %3 = hypershard.all_to_all %y over @m {"dp"} split 0 concat 1 : tensor<20x5xf32> -> tensor<5x20xf32>
  // One message.
  // CHECK-NEXT: permute: {{.*}} received=400 seconds=1.5e-05 bound=communication by ring
  %4 = hypershard.permute %x over @m {"dp"} to {"dp"} : tensor<100xf32> -> tensor<100xf32>
  // A device in the middle wants 6 elements and has 4 of them.
  // CHECK-NEXT: halo_exchange: {{.*}} read=16 written=24 received=8 seconds=1.108e-05 bound=communication by ring
  %5 = hypershard.halo_exchange %h over @m {"dp"} dim 0 of 16 window -1 step 4 size 6 : tensor<4xf32> -> tensor<6xf32>
  // No communication: 1000 bytes read, 1000 written.
  // CHECK-NEXT: slice_local: {{.*}} read=1000 written=1000 received=0 seconds=3e-06 bound=memory
  %6 = hypershard.slice_local %g over @m {"dp"} dim 0 : tensor<1000xf32> -> tensor<250xf32>
  // CHECK-NOT: hypershard
  return
}

// Before partition types are global; what counts is a device's part, so that this is the first gather above.
// CHECK-LABEL: @global:
// CHECK-NEXT: all_gather: {{.*}} read=400 written=800 received=400 seconds=2.4e-06
func.func @global(%x: tensor<200xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"tp"}]>}) {
  %0 = hypershard.all_gather %x over @m {"tp"} dim 0 {hypershard.sharding = #hypershard.sharding<@m, [{}]>}
      : tensor<200xf32> -> tensor<200xf32>
  return
}
}
