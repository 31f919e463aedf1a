// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tasks of no time: copies have nothing to hide behind, no figure is infinite, and waiting for them is what a step takes. (The
// pass is offload-plan-transfers.)
// RUN: hp-opt %s --offload-plan-transfers="capacity=900 report=%t.json" --offload-insert-transfers --offload-verify-tiers --mlir-print-op-on-diagnostic=false 2>&1 | FileCheck %s
// RUN: FileCheck %s --check-prefix=JSON < %t.json

#machine = #supernode.machine<"box",
  groups = [<"npu" = 1, memory = "hbm", launch = 0.0, vector = 1.0e9, rates = [f32 = 1.0e9]>],
  tiers = [<"hbm" in "device", capacity = 900, bandwidth = 1.0e9>, <"dram" in "device", capacity = 100000, bandwidth = 1.0e9>],
  links = [<"dram" -> "hbm", latency = 0.0, bandwidth = 64.0>, <"hbm" -> "dram", latency = 0.0, bandwidth = 64.0>]>

// CHECK: remark: offload: activation (320 B) is in dram {{.*}} 10.000 s without a use, of its copies 0.000 us hidden, 10.000 s waited for
// CHECK: remark: offload: step 10.000 s, compute 0.000 us, no plan is faster than 7.875 s
// CHECK: offload.store
// CHECK: offload.prefetch
// JSON: "step_s": 10,
// JSON-NEXT: "compute_s": 0,
// JSON-NEXT: "lower_bound_s": 7.875,
// JSON: "tensors": [
// JSON: "fate": "moved",
// JSON: "copy_s": 10,
// JSON-NEXT: "gap_s": 10,
// JSON-NEXT: "hidden_s": 0,
// JSON-NEXT: "exposed_s": 10,
// JSON-NEXT: "break_even_bandwidth": 64
module attributes {supernode.machine = #machine} {
  func.func @main(%x: tensor<16xf32> {hp.name = "x", hp.role = "input"}) -> tensor<16xf32> {
    %e0 = tensor.empty() : tensor<80xf32>
    %e2 = tensor.empty() : tensor<176xf32>
    %e3 = tensor.empty() : tensor<16xf32>
    %a = supernode.task "activation" ins(%x : tensor<16xf32>) outs(%e0 : tensor<80xf32>) {seconds = 0.0 : f64, hp.path = "activation"}
    %b = supernode.task "wide" ins(%x : tensor<16xf32>) outs(%e2 : tensor<176xf32>) {seconds = 0.0 : f64, hp.path = "wide"}
    %r = supernode.task "end" ins(%a : tensor<80xf32>) outs(%e3 : tensor<16xf32>) {seconds = 0.0 : f64, hp.path = "end"}
    return %r : tensor<16xf32>
  }
}
