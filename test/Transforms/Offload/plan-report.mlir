// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is said of a plan, in remarks and as JSON; every figure is computed by hand. (The pass is offload-plan-transfers.)
// RUN: hp-opt %s --offload-plan-transfers="capacity=900 report=%t.json" --mlir-print-op-on-diagnostic=false -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: FileCheck %s --check-prefix=JSON < %t.json

// Copies of 64 bytes take a second, `activation` (320 bytes) five each way. It is made by second 5 and leaves until second
// 10: behind `small` for 3 seconds, then `wide` waits for 2. `wide` ends at second 30, where it is fetched, and waited for
// until 35. No plan can do with less than 252 bytes over both links, 3.9375 seconds: 0.9375 more than `small` hides, and
// 3.9375 after `wide`.
#machine = #supernode.machine<"box",
  groups = [<"npu" = 1, memory = "hbm", launch = 0.0, vector = 1.0e9, rates = [f32 = 1.0e9]>],
  tiers = [<"hbm" in "device", capacity = 900, bandwidth = 1.0e9>, <"dram" in "device", capacity = 100000, bandwidth = 1.0e9>],
  links = [<"dram" -> "hbm", latency = 0.0, bandwidth = 64.0>, <"hbm" -> "dram", latency = 0.0, bandwidth = 64.0>]>

// REMARK: remark: offload: activation (320 B) is in dram from op 6 to op 7: stored, fetched in 5.000 s; 30.000 s without a use, of its copies 3.000 s hidden, 7.000 s waited for; hidden alone from 21 B/s on
// REMARK: remark: offload: step 40.000 s, compute 33.000 s, no plan is faster than 37.875 s; waits for copies in 5.000 s, out 2.000 s; peak 832 B of 900 B, 1152 B if nothing moved

// JSON: "capacity": 900,
// JSON-NEXT: "peak_bytes": 832,
// JSON-NEXT: "max_live_bytes": 1152,
// JSON-NEXT: "step_s": 40,
// JSON-NEXT: "compute_s": 33,
// JSON-NEXT: "lower_bound_s": 37.875,
// JSON-NEXT: "over_bound": 0.0561
// JSON-NEXT: "wait_in_s": 5,
// JSON-NEXT: "wait_out_s": 2,
// JSON-NEXT: "slowed_down_s": 0,
// JSON-NEXT: "bytes_in": 320,
// JSON-NEXT: "bytes_out": 320,
// The input, the result, and what `wide` makes.
// JSON-NEXT: "tightest_op": 6,
// JSON-NEXT: "tightest_op_name": "wide",
// JSON-NEXT: "tightest_bytes": 768,
// JSON: "moves": [
// JSON-NEXT: {
// JSON-NEXT: "tensor": "activation",
// JSON-NEXT: "bytes": 320,
// JSON-NEXT: "tier": "dram",
// JSON-NEXT: "evict_after": 4,
// JSON-NEXT: "free_before": 6,
// JSON-NEXT: "prefetch_before": 7,
// JSON-NEXT: "use": 7,
// JSON-NEXT: "clean": false,
// JSON-NEXT: "recomputed": false,
// JSON-NEXT: "store_s": 5,
// JSON-NEXT: "fetch_s": 5,
// JSON-NEXT: "gap_s": 30,
// JSON-NEXT: "hidden_s": 3,
// JSON-NEXT: "exposed_s": 7,
// JSON-NEXT: "break_even_bandwidth": 21.333333333333332
// JSON: "tensors": [
// JSON-NEXT: {
// JSON-NEXT: "tensor": "activation",
// JSON-NEXT: "fate": "moved",
// JSON-NEXT: "bytes": 320,
// JSON-NEXT: "tier": "dram",
// JSON-NEXT: "after": 4,
// JSON-NEXT: "use": 7,
// JSON-NEXT: "copy_s": 10,
// JSON-NEXT: "gap_s": 30,
// JSON-NEXT: "hidden_s": 3,
// JSON-NEXT: "exposed_s": 7,
// JSON-NEXT: "break_even_bandwidth": 21.333333333333332
// JSON-NEXT: },
// What is kept: 64 bytes, 32 seconds would do for both copies at 4 bytes a second.
// JSON-NEXT: {
// JSON-NEXT: "tensor": "small",
// JSON-NEXT: "fate": "kept",
// JSON-NEXT: "bytes": 64,
// JSON-NEXT: "after": 5,
// JSON-NEXT: "use": 7,
// JSON-NEXT: "copy_s": 0,
// JSON-NEXT: "gap_s": 27,
// JSON-NEXT: "hidden_s": 0,
// JSON-NEXT: "exposed_s": 0,
// JSON-NEXT: "break_even_bandwidth": 4.7407407407407405
// JSON-NEXT: }
// JSON-NEXT: ]
module attributes {supernode.machine = #machine} {
  func.func @main(%x: tensor<16xf32> {hp.name = "x", hp.role = "input"}) -> tensor<16xf32> {
    %e0 = tensor.empty() : tensor<80xf32>
    %e1 = tensor.empty() : tensor<16xf32>
    %e2 = tensor.empty() : tensor<160xf32>
    %e3 = tensor.empty() : tensor<16xf32>
    %a = supernode.task "activation" ins(%x : tensor<16xf32>) outs(%e0 : tensor<80xf32>) {seconds = 5.0 : f64, hp.path = "activation"}
    %s = supernode.task "small" ins(%x : tensor<16xf32>) outs(%e1 : tensor<16xf32>) {seconds = 3.0 : f64, hp.path = "small"}
    %b = supernode.task "wide" ins(%x : tensor<16xf32>) outs(%e2 : tensor<160xf32>) {seconds = 20.0 : f64, hp.path = "wide"}
    %r = supernode.task "end" ins(%a, %s : tensor<80xf32>, tensor<16xf32>) outs(%e3 : tensor<16xf32>) {seconds = 5.0 : f64, hp.path = "end"}
    return %r : tensor<16xf32>
  }
}
