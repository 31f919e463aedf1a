// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies go through a buffer in chunks, and the buffers are charged to their tier. (The pass is offload-plan-transfers.)
// RUN: hp-opt %s --offload-plan-transfers=capacity=900 --mlir-print-op-on-diagnostic=false -o /dev/null 2>&1 | FileCheck %s
// RUN: sed 's/capacity = 544/capacity = 543/' %s | not hp-opt --offload-plan-transfers=capacity=900 2>&1 | FileCheck %s --check-prefix=FULL

// 64 bytes take a second. `activation` (320 bytes) leaves through a buffer of 64 bytes in five chunks, each of which waits
// another second: 10 seconds. It comes back through one of 160 bytes in two chunks: 7 seconds.
#machine = #supernode.machine<"box",
  groups = [<"npu" = 1, memory = "hbm", launch = 0.0, vector = 1.0e9, rates = [f32 = 1.0e9]>],
  tiers = [<"hbm" in "device", capacity = 900, bandwidth = 1.0e9>, <"dram" in "device", capacity = 544, bandwidth = 1.0e9>],
  links = [<"dram" -> "hbm", latency = 1.0, bandwidth = 64.0, staging = 160>,
           <"hbm" -> "dram", latency = 1.0, bandwidth = 64.0, staging = 64>]>

// It is made by second 5 and leaves until second 15, of which `small` hides 3; `wide` waits for 7, and ends at second 35. Then it
// is fetched, and waited for. In 37 seconds without its latencies, 640 bytes are 21.3 a second.
// CHECK: remark: offload: activation (320 B) is in dram from op 6 to op 7: stored, fetched in 7.000 s; 37.000 s without a use, of its copies 3.000 s hidden, 14.000 s waited for; hidden alone from 21 B/s on
// CHECK: remark: offload: step 47.000 s

// FULL: error: expected the tiers below hbm to hold 320 B at the same time but they have 319 B
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
