// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every message about a machine.
// RUN: hp-opt %s --split-input-file --verify-diagnostics

// Fields: unknown, twice, missing, not a number.
// expected-error@+1 {{expected one of `capacity`, `bandwidth`, `shared` but got `size`}}
module attributes {a = #supernode.tier<"hbm" in "device", size = 5>} {}

// -----

// expected-error@+1 {{expected `capacity` once but got it twice}}
module attributes {a = #supernode.tier<"hbm" in "device", capacity = 5, capacity = 5>} {}

// -----

// expected-error@+1 {{expected `bandwidth` before the end}}
module attributes {a = #supernode.tier<"hbm" in "device", capacity = 5>} {}

// -----

// expected-error@+1 {{expected `memory`, `launch`, `vector`, `rates` before the end}}
module attributes {a = #supernode.group<"npu" = 2>} {}

// -----

// expected-error@+1 {{expected `groups`, `tiers` before the end}}
module attributes {a = #supernode.machine<"m">} {}

// -----

// expected-error@+1 {{expected a number but got "5"}}
module attributes {a = #supernode.tier<"hbm" in "device", capacity = "5", bandwidth = 6>} {}

// -----

// Rates.
// expected-error@+1 {{expected a rate for a float or integer type but got 'index'}}
module attributes {a = #supernode.rate<index = 3>} {}

// -----

// expected-error@+1 {{expected the rate for f32 to be positive but got 0}}
module attributes {a = #supernode.rate<f32 = 0>} {}

// -----

// expected-error@+1 {{expected the rate for bf16 to be positive but got -3.5e+14}}
module attributes {a = #supernode.rate<bf16 = -3.5e14>} {}

// -----

// Groups.
// expected-error@+1 {{expected group "npu" to have at least 1 device but got 0}}
module attributes {a = #supernode.group<"npu" = 0, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>} {}

// -----

// expected-error@+1 {{expected the launch time of group "npu" to be at least 0 but got -1.0e-06}}
module attributes {a = #supernode.group<"npu" = 2, memory = "hbm", launch = -1.0e-6, vector = 2, rates = [f32 = 3]>} {}

// -----

// expected-error@+1 {{expected the vector rate of group "npu" to be positive but got 0}}
module attributes {a = #supernode.group<"npu" = 2, memory = "hbm", launch = 0, vector = 0, rates = [f32 = 3]>} {}

// -----

// expected-error@+1 {{expected the efficiency of group "npu" to be in (0, 1] but got 1.5}}
module attributes {a = #supernode.group<"npu" = 2, memory = "hbm", launch = 0, vector = 2, efficiency = 1.5, rates = [f32 = 3]>} {}

// -----

// expected-error@+1 {{expected group "npu" to have at least one rate}}
module attributes {a = #supernode.group<"npu" = 2, memory = "hbm", launch = 0, vector = 2, rates = []>} {}

// -----

// expected-error@+1 {{expected group "npu" to have one rate for 'f32' but got two}}
module attributes {a = #supernode.group<"npu" = 2, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3, f32 = 4]>} {}

// -----

// Levels.
// expected-error@+1 {{expected level "node" to have a size of at least 1 but got -2}}
module attributes {a = #supernode.level<"node" = -2, latency = 0, bandwidth = 3>} {}

// -----

// expected-error@+1 {{expected the latency of level "node" to be at least 0 but got -0.5}}
module attributes {a = #supernode.level<"node" = 2, latency = -0.5, bandwidth = 3>} {}

// -----

// expected-error@+1 {{expected the bandwidth of level "node" to be positive but got 0}}
module attributes {a = #supernode.level<"node" = 2, latency = 0, bandwidth = 0>} {}

// -----

// expected-error@+1 {{expected an algorithm (ring, tree, halving, direct, memory) but got `star`}}
module attributes {a = #supernode.level<"node" = 2, latency = 0, bandwidth = 3, algorithms = [star]>} {}

// -----

// expected-error@+1 {{expected level "node" to name algorithm `ring` once but got it twice}}
module attributes {a = #supernode.level<"node" = 2, latency = 0, bandwidth = 3, algorithms = [ring, tree, ring]>} {}

// -----

// expected-error@+1 {{expected level "node" to name segment "s" once but got it twice}}
module attributes {a = #supernode.level<"node" = 2, latency = 0, bandwidth = 3, shared = ["s", "s"]>} {}

// -----

// Tiers, segments, links.
// expected-error@+1 {{expected the capacity of tier "hbm" to be positive but got -5}}
module attributes {a = #supernode.tier<"hbm" in "device", capacity = -5, bandwidth = 6>} {}

// -----

// expected-error@+1 {{expected the bandwidth of tier "hbm" to be positive but got 0}}
module attributes {a = #supernode.tier<"hbm" in "device", capacity = 5, bandwidth = 0>} {}

// -----

// expected-error@+1 {{expected the bandwidth of segment "s" to be positive but got 0}}
module attributes {a = #supernode.segment<"s" in "device", bandwidth = 0>} {}

// -----

// expected-error@+1 {{expected the latency of link "a" -> "b" to be at least 0 but got -1}}
module attributes {a = #supernode.link<"a" -> "b", latency = -1, bandwidth = 3>} {}

// -----

// expected-error@+1 {{expected the bandwidth of link "a" -> "b" to be positive but got -3}}
module attributes {a = #supernode.link<"a" -> "b", latency = 1, bandwidth = -3>} {}

// -----

// expected-error@+1 {{expected link "a" -> "b" to name segment "s" once but got it twice}}
module attributes {a = #supernode.link<"a" -> "b", latency = 1, bandwidth = 3, shared = ["s", "s"]>} {}

// -----

// expected-error@+1 {{expected '->'}}
module attributes {a = #supernode.link<"a", latency = 1, bandwidth = 3>} {}

// -----

// C1: names.
// expected-error@+1 {{expected a preset (a3-node, atlas950, cloudmatrix384, cpu-supernode, gb200-nvl72, h200-node) but got "a4-node"}}
module attributes {a = #supernode.machine<preset = "a4-node">} {}

// -----

// expected-error@+1 {{expected the machine to have a name}}
module attributes {a = #supernode.machine<"", groups = [<"npu" = 2, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>], levels = [<"node" = 2, latency = 0, bandwidth = 3>], tiers = [<"hbm" in "device", capacity = 5, bandwidth = 6>]>} {}

// -----

// expected-error@+1 {{expected machine "m" to have at least one group of devices}}
module attributes {a = #supernode.machine<"m", groups = [], levels = [<"node" = 2, latency = 0, bandwidth = 3>], tiers = [<"hbm" in "device", capacity = 5, bandwidth = 6>]>} {}

// -----

// expected-error@+1 {{expected every group to have a name}}
module attributes {a = #supernode.machine<"m", groups = [<"" = 2, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>], levels = [<"node" = 2, latency = 0, bandwidth = 3>], tiers = [<"hbm" in "device", capacity = 5, bandwidth = 6>]>} {}

// -----

// expected-error@+1 {{expected groups of different names but got "npu" twice}}
module attributes {a = #supernode.machine<"m", groups = [<"npu" = 2, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>, <"npu" = 2, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>], levels = [<"node" = 2, latency = 0, bandwidth = 3>], tiers = [<"hbm" in "device", capacity = 5, bandwidth = 6>]>} {}

// -----

// expected-error@+1 {{expected levels of different names but got "node" twice}}
module attributes {a = #supernode.machine<"m", groups = [<"npu" = 2, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>], levels = [<"node" = 2, latency = 0, bandwidth = 3>, <"node" = 2, latency = 0, bandwidth = 3>], tiers = [<"hbm" in "device", capacity = 5, bandwidth = 6>]>} {}

// -----

// expected-error@+1 {{expected tiers of different names but got "hbm" twice}}
module attributes {a = #supernode.machine<"m", groups = [<"npu" = 2, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>], levels = [<"node" = 2, latency = 0, bandwidth = 3>], tiers = [<"hbm" in "device", capacity = 5, bandwidth = 6>, <"hbm" in "device", capacity = 5, bandwidth = 6>]>} {}

// -----

// expected-error@+1 {{expected segments of different names but got "s" twice}}
module attributes {a = #supernode.machine<"m", groups = [<"npu" = 2, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>], levels = [<"node" = 2, latency = 0, bandwidth = 3>], tiers = [<"hbm" in "device", capacity = 5, bandwidth = 6>], segments = [<"s" in "device", bandwidth = 1>, <"s" in "node", bandwidth = 1>]>} {}

// -----

// expected-error@+1 {{expected no level to be called "device", which is the scope of one device}}
module attributes {a = #supernode.machine<"m", groups = [<"npu" = 2, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>], levels = [<"device" = 2, latency = 0, bandwidth = 3>], tiers = [<"hbm" in "device", capacity = 5, bandwidth = 6>]>} {}

// -----

// C2: the number of devices.
// expected-error@+1 {{expected the sizes of the levels to multiply to the 2 devices of the groups but got 6}}
module attributes {a = #supernode.machine<"m", groups = [<"npu" = 2, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>], levels = [<"node" = 2, latency = 0, bandwidth = 3>, <"rack" = 3, latency = 0, bandwidth = 1>], tiers = [<"hbm" in "device", capacity = 5, bandwidth = 6>]>} {}

// -----

// expected-error@+1 {{expected the sizes of the levels to multiply to the 2 devices of the groups but got 1}}
module attributes {a = #supernode.machine<"m", groups = [<"npu" = 2, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>], levels = [], tiers = [<"hbm" in "device", capacity = 5, bandwidth = 6>]>} {}

// -----

// expected-error@+1 {{expected a machine of at most 2^32 devices}}
module attributes {a = #supernode.machine<"m", groups = [<"npu" = 2, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>], levels = [<"a" = 4294967296, latency = 0, bandwidth = 1>, <"b" = 4294967296, latency = 0, bandwidth = 1>], tiers = [<"hbm" in "device", capacity = 5, bandwidth = 6>]>} {}

// -----

// expected-error@+1 {{expected a machine of at most 2^32 devices}}
module attributes {a = #supernode.machine<"m", groups = [<"npu" = 9223372036854775807, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>], levels = [<"node" = 2, latency = 0, bandwidth = 3>], tiers = [<"hbm" in "device", capacity = 5, bandwidth = 6>]>} {}

// -----

// C3: scopes.
// expected-error@+1 {{expected tier "hbm" to be in "device" or a level ["node"] but got "rack"}}
module attributes {a = #supernode.machine<"m", groups = [<"npu" = 2, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>], levels = [<"node" = 2, latency = 0, bandwidth = 3>], tiers = [<"hbm" in "rack", capacity = 5, bandwidth = 6>]>} {}

// -----

// expected-error@+1 {{expected segment "s" to be in "device" or a level ["node"] but got "rack"}}
module attributes {a = #supernode.machine<"m", groups = [<"npu" = 2, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>], levels = [<"node" = 2, latency = 0, bandwidth = 3>], tiers = [<"hbm" in "device", capacity = 5, bandwidth = 6>], segments = [<"s" in "rack", bandwidth = 1>]>} {}

// -----

// C4: a group's memory.
// expected-error@+1 {{expected the memory of group "npu" to be a tier in "device" but got "ram"}}
module attributes {a = #supernode.machine<"m", groups = [<"npu" = 2, memory = "ram", launch = 0, vector = 2, rates = [f32 = 3]>], levels = [<"node" = 2, latency = 0, bandwidth = 3>], tiers = [<"hbm" in "device", capacity = 5, bandwidth = 6>]>} {}

// -----

// expected-error@+1 {{expected the memory of group "npu" to be a tier in "device" but got "hbm"}}
module attributes {a = #supernode.machine<"m", groups = [<"npu" = 2, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>], levels = [<"node" = 2, latency = 0, bandwidth = 3>], tiers = [<"hbm" in "node", capacity = 5, bandwidth = 6>]>} {}

// -----

// C5: links.
// expected-error@+1 {{expected link "pool" -> "hbm" to join tiers of ["hbm"] but got "pool"}}
module attributes {a = #supernode.machine<"m", groups = [<"npu" = 2, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>], levels = [<"node" = 2, latency = 0, bandwidth = 3>], tiers = [<"hbm" in "device", capacity = 5, bandwidth = 6>], links = [<"pool" -> "hbm", latency = 0, bandwidth = 1>]>} {}

// -----

// expected-error@+1 {{expected link "hbm" -> "pool" to join tiers of ["hbm"] but got "pool"}}
module attributes {a = #supernode.machine<"m", groups = [<"npu" = 2, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>], levels = [<"node" = 2, latency = 0, bandwidth = 3>], tiers = [<"hbm" in "device", capacity = 5, bandwidth = 6>], links = [<"hbm" -> "pool", latency = 0, bandwidth = 1>]>} {}

// -----

// expected-error@+1 {{expected the staging of link "hbm" -> "hbm" to be at least 0 but got -1}}
module attributes {a = #supernode.machine<"m", groups = [<"npu" = 2, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>], levels = [<"node" = 2, latency = 0, bandwidth = 3>], tiers = [<"hbm" in "device", capacity = 5, bandwidth = 6>], links = [<"hbm" -> "hbm", latency = 0, bandwidth = 1, staging = -1>]>} {}

// -----

// expected-error@+1 {{expected link "hbm" -> "hbm" once but got it twice}}
module attributes {a = #supernode.machine<"m", groups = [<"npu" = 2, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>], levels = [<"node" = 2, latency = 0, bandwidth = 3>], tiers = [<"hbm" in "device", capacity = 5, bandwidth = 6>], links = [<"hbm" -> "hbm", latency = 0, bandwidth = 1>, <"hbm" -> "hbm", latency = 1, bandwidth = 1>]>} {}

// -----

// C6: segments.
// expected-error@+1 {{expected link "hbm" -> "hbm" to share one of ["s"] but got "t"}}
module attributes {a = #supernode.machine<"m", groups = [<"npu" = 2, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>], levels = [<"node" = 2, latency = 0, bandwidth = 3>], tiers = [<"hbm" in "device", capacity = 5, bandwidth = 6>], segments = [<"s" in "node", bandwidth = 1>], links = [<"hbm" -> "hbm", latency = 0, bandwidth = 1, shared = ["t"]>]>} {}

// -----

// expected-error@+1 {{expected level "node" to share one of [] but got "t"}}
module attributes {a = #supernode.machine<"m", groups = [<"npu" = 2, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>], levels = [<"node" = 2, latency = 0, bandwidth = 3, shared = ["t"]>], tiers = [<"hbm" in "device", capacity = 5, bandwidth = 6>]>} {}

// -----

// expected-error@+1 {{expected segment "s" to lie within one of ["s"] but got "t"}}
module attributes {a = #supernode.machine<"m", groups = [<"npu" = 2, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>], levels = [<"node" = 2, latency = 0, bandwidth = 3>], tiers = [<"hbm" in "device", capacity = 5, bandwidth = 6>], segments = [<"s" in "node", bandwidth = 1, within = "t">]>} {}

// -----

// expected-error@+1 {{expected segment "s" not to lie within itself}}
module attributes {a = #supernode.machine<"m", groups = [<"npu" = 2, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>], levels = [<"node" = 2, latency = 0, bandwidth = 3>], tiers = [<"hbm" in "device", capacity = 5, bandwidth = 6>], segments = [<"s" in "node", bandwidth = 1, within = "s">]>} {}

// -----

// expected-error@+1 {{expected segment "a" not to lie within itself}}
module attributes {a = #supernode.machine<"m", groups = [<"npu" = 2, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>], levels = [<"node" = 2, latency = 0, bandwidth = 3>], tiers = [<"hbm" in "device", capacity = 5, bandwidth = 6>], segments = [<"a" in "node", bandwidth = 1, within = "b">, <"b" in "node", bandwidth = 1, within = "c">, <"c" in "node", bandwidth = 1, within = "b">]>} {}

// -----

// expected-error@+1 {{expected at least 1 core but got 0}}
module attributes {a = #supernode.group<"npu" = 2, memory = "hbm", launch = 0, vector = 2, cores = <0, gain = 1, cut = 0, wake = 0>, rates = [f32 = 3]>} {}

// -----

// expected-error@+1 {{expected the gain of a core to be in (0, 1] but got 2}}
module attributes {a = #supernode.group<"npu" = 2, memory = "hbm", launch = 0, vector = 2, cores = <2, gain = 2, cut = 0, wake = 0>, rates = [f32 = 3]>} {}

// -----

// expected-error@+1 {{expected the time of a cut to be at least 0 but got -1}}
module attributes {a = #supernode.group<"npu" = 2, memory = "hbm", launch = 0, vector = 2, cores = <2, gain = 1, cut = -1, wake = 0>, rates = [f32 = 3]>} {}

// -----

// expected-error@+1 {{expected the time to wake up to be at least 0 but got -1}}
module attributes {a = #supernode.group<"npu" = 2, memory = "hbm", launch = 0, vector = 2, cores = <2, gain = 1, cut = 0, wake = -1>, rates = [f32 = 3]>} {}

// -----

// expected-error@+1 {{expected `wake` before the end}}
module attributes {a = #supernode.group<"npu" = 2, memory = "hbm", launch = 0, vector = 2, cores = <2, gain = 1, cut = 0>, rates = [f32 = 3]>} {}

// -----

// expected-error@+1 {{expected the packing of group "npu" to be at least 0 but got -1}}
module attributes {a = #supernode.group<"npu" = 2, memory = "hbm", launch = 0, vector = 2, packing = -1, rates = [f32 = 3]>} {}

// -----

// expected-error@+1 {{expected the cache of group "npu" to be a tier of ["hbm"] but got "llc"}}
module attributes {a = #supernode.machine<"m", groups = [<"npu" = 2, memory = "hbm", launch = 0, vector = 2, cache = "llc", rates = [f32 = 3]>], levels = [<"node" = 2, latency = 0, bandwidth = 3>], tiers = [<"hbm" in "device", capacity = 5, bandwidth = 6>]>} {}

// -----

// expected-error@+1 {{expected tier "hbm" to share one of [] but got "bus"}}
module attributes {a = #supernode.machine<"m", groups = [<"npu" = 2, memory = "hbm", launch = 0, vector = 2, rates = [f32 = 3]>], levels = [<"node" = 2, latency = 0, bandwidth = 3>], tiers = [<"hbm" in "device", capacity = 5, bandwidth = 6, shared = ["bus"]>]>} {}

// -----

// expected-error@+1 {{expected tier "hbm" to name segment "s" once but got it twice}}
module attributes {a = #supernode.tier<"hbm" in "device", capacity = 5, bandwidth = 6, shared = ["s", "s"]>} {}

// -----

// The attribute of the module.
// expected-error@+1 {{expected `supernode.machine` to be a #supernode.machine but got "a3-node"}}
module attributes {supernode.machine = "a3-node"} {}

// -----

// expected-error@+1 {{expected `supernode.machine` on a module but got it on `func.func`}}
func.func private @f() attributes {supernode.machine = #supernode.machine<preset = "a3-node">}

// -----

// expected-error@+1 {{unknown attribute `supernode.device` of the supernode dialect}}
module attributes {supernode.device = 3} {}
