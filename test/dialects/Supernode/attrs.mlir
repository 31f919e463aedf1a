// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Machines survive text and bytecode; a preset is known again by its name.
// RUN: hp-opt %s | hp-opt | FileCheck %s
// RUN: hp-opt %s --emit-bytecode | hp-opt | FileCheck %s
// RUN: hp-opt %s --mlir-print-op-generic | hp-opt | FileCheck %s

// Every preset is a valid machine.
// CHECK: @presets() attributes {
// CHECK-SAME: p0 = #supernode.machine<preset = "a3-node">
// CHECK-SAME: p1 = #supernode.machine<preset = "atlas950">
// CHECK-SAME: p2 = #supernode.machine<preset = "cloudmatrix384">
// CHECK-SAME: p3 = #supernode.machine<preset = "cpu-supernode">
// CHECK-SAME: p4 = #supernode.machine<preset = "gb200-nvl72">
// CHECK-SAME: p5 = #supernode.machine<preset = "h200-node">
func.func private @presets() attributes {
  p0 = #supernode.machine<preset = "a3-node">,
  p1 = #supernode.machine<preset = "atlas950">,
  p2 = #supernode.machine<preset = "cloudmatrix384">,
  p3 = #supernode.machine<preset = "cpu-supernode">,
  p4 = #supernode.machine<preset = "gb200-nvl72">,
  p5 = #supernode.machine<preset = "h200-node">
}

// In full: fields in any order, numbers with and without fraction, everything that may be left out.
// CHECK: @full attributes {supernode.machine = #supernode.machine<"two \22racks\22",
// CHECK-SAME: groups = [<"npu" = 6, memory = "hbm", launch = 5.0e-06, vector = 2.2e+13, efficiency = 0.45,
// CHECK-SAME:   rates = [bf16 = 3.538e+14, i8 = 7.0e+14, f8E4M3FN = 1.25]>,
// CHECK-SAME:   <"cpu" = 2, memory = "hbm", launch = 0, vector = 1.0e+12, packing = 3.0e+10, cache = "llc",
// CHECK-SAME:    cores = <4, gain = 0.5, cut = 1.0e-06, wake = 0>, rates = [f32 = 3]>],
// CHECK-SAME: levels = [<"node" = 4, latency = 0, bandwidth = 1.96e+11, algorithms = [direct, memory], shared = ["ub", "far"]>,
// CHECK-SAME:   <"rack" = 2, latency = 0.001, bandwidth = 12345678901>],
// CHECK-SAME: tiers = [<"hbm" in "device", capacity = 6.4e+10, bandwidth = 1.6e+12>,
// CHECK-SAME:   <"pool" in "rack", capacity = 7.2e+13, bandwidth = 1.1>,
// CHECK-SAME:   <"llc" in "rack", capacity = 1.0e+07, bandwidth = 5.0e+10, shared = ["far"]>],
// CHECK-SAME: segments = [<"ub" in "device", bandwidth = 1.96e+11, within = "far">,
// CHECK-SAME:   <"far" in "rack", bandwidth = 1.0e+12>],
// CHECK-SAME: links = [<"pool" -> "hbm", latency = 1.46e-06, bandwidth = 9.8e+10, staging = 4194304, shared = ["ub"]>,
// CHECK-SAME:   <"hbm" -> "hbm", latency = 0, bandwidth = 1>]>
module @full attributes {supernode.machine = #supernode.machine<"two \"racks\"",
  tiers = [<"hbm" in "device", bandwidth = 1.6e12, capacity = 64000000000>,
           <"pool" in "rack", capacity = 7.2e13, bandwidth = 1.1>,
           <"llc" in "rack", shared = ["far"], capacity = 1.0e7, bandwidth = 5.0e10>],
  groups = [<"npu" = 6, rates = [bf16 = 3.538e14, i8 = 7.0e14, f8E4M3FN = 1.25], efficiency = 0.45,
             vector = 22.0e12, launch = 5.0e-6, memory = "hbm">,
            <"cpu" = 2, memory = "hbm", launch = 0, vector = 1.0e12, efficiency = 1.0, rates = [f32 = 3],
             cores = <4, wake = 0, cut = 1.0e-6, gain = 0.5>, packing = 3.0e10, cache = "llc">],
  links = [<"pool" -> "hbm", shared = ["ub"], bandwidth = 9.8e10, staging = 4194304, latency = 1.46e-6>,
           <"hbm" -> "hbm", latency = 0.0, bandwidth = 1>],
  segments = [<"ub" in "device", within = "far", bandwidth = 1.96e11>, <"far" in "rack", bandwidth = 1.0e12>],
  levels = [<"node" = 4, latency = 0, bandwidth = 1.96e11, algorithms = [direct, memory], shared = ["ub", "far"]>,
            <"rack" = 2, latency = 1.0e-3, bandwidth = 12345678901>]>
} {}

// A machine that is called like a preset but differs is spelled in full; one that equals it is not.
// CHECK: @changed attributes {supernode.machine = #supernode.machine<"cpu-supernode", groups
module @changed attributes {supernode.machine = #supernode.machine<"cpu-supernode",
  groups = [<"cpu" = 1, memory = "local", launch = 1.0e-6, vector = 8.0e9, rates = [f32 = 7.8e10]>],
  tiers = [<"local" in "device", capacity = 4.0e9, bandwidth = 1.0e10>]>} {}

// CHECK: @parts() attributes {
// CHECK-SAME: group = #supernode.group<"npu" = 3, memory = "hbm", launch = 1.0e-06, vector = 2, rates = [f16 = 5]>
// CHECK-SAME: level = #supernode.level<"node" = 2, latency = 1.0e-06, bandwidth = 7, algorithms = [halving, tree]>
// CHECK-SAME: link = #supernode.link<"a" -> "b", latency = 0.25, bandwidth = 3>
// CHECK-SAME: rate = #supernode.rate<f32 = 1.5e+09>
// CHECK-SAME: segment = #supernode.segment<"s" in "device", bandwidth = 4, within = "t">
// CHECK-SAME: tier = #supernode.tier<"hbm" in "device", capacity = 5, bandwidth = 6>
func.func private @parts() attributes {
  group = #supernode.group<"npu" = 3, memory = "hbm", launch = 1.0e-6, vector = 2, rates = [f16 = 5]>,
  level = #supernode.level<"node" = 2, latency = 1.0e-6, bandwidth = 7, algorithms = [halving, tree]>,
  link = #supernode.link<"a" -> "b", latency = 0.25, bandwidth = 3>,
  rate = #supernode.rate<f32 = 1.5e9>,
  segment = #supernode.segment<"s" in "device", bandwidth = 4, within = "t">,
  tier = #supernode.tier<"hbm" in "device", capacity = 5, bandwidth = 6>
}
