// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A value that is faster to compute again than to copy is computed again; where the link is fast it is copied. (The pass is
// offload-plan-transfers.)
// RUN: sed s/BANDWIDTH/1.0e8/g %s | hp-opt --offload-plan-transfers=capacity=4200 --offload-insert-transfers --offload-verify-tiers --mlir-print-op-on-diagnostic=false 2>&1 | FileCheck %s --check-prefix=AGAIN
// RUN: sed s/BANDWIDTH/1.0e8/g %s | hp-opt --offload-plan-transfers="capacity=4200 report=%t.json" -o /dev/null 2>/dev/null && FileCheck %s --check-prefix=REPORT < %t.json
// RUN: sed s/BANDWIDTH/1.0e12/g %s | hp-opt --offload-plan-transfers=capacity=4200 --offload-insert-transfers --offload-verify-tiers --mlir-print-op-on-diagnostic=false 2>&1 | FileCheck %s --check-prefix=COPY

#machine = #supernode.machine<"box",
  groups = [<"npu" = 1, memory = "hbm", launch = 1.0e-6, vector = 1.0e9, rates = [f32 = 1.0e9]>],
  tiers = [<"hbm" in "device", capacity = 2600, bandwidth = 1.0e9>, <"dram" in "device", capacity = 100000, bandwidth = 1.0e12>],
  links = [<"dram" -> "hbm", latency = 0.0, bandwidth = BANDWIDTH>, <"hbm" -> "dram", latency = 0.0, bandwidth = BANDWIDTH>]>

// AGAIN: remark: offload: linalg.negf (1024 B) is dropped before op {{[0-9]+}} and computed again before op {{[0-9]+}} in {{.*}}: a copy would take longer
// AGAIN-LABEL: func.func @main(
// AGAIN-NOT: offload.store
// AGAIN: linalg.negf {hp.again}

// REPORT: "tensor": "linalg.negf",
// REPORT: "recomputed": true,
// REPORT: "tensors": [
// REPORT: "tensor": "linalg.negf",
// REPORT-NEXT: "fate": "recomputed",
// REPORT-NEXT: "bytes": 1024,
// REPORT-NEXT: "after":
// REPORT-NEXT: "use":
// REPORT-NEXT: "copy_s": 0,
// REPORT: "hidden_s": 0,
// REPORT-NEXT: "exposed_s": 0,

// COPY: remark: offload: linalg.negf (1024 B) is in dram
// COPY-LABEL: func.func @main(
// COPY: offload.store
module attributes {supernode.machine = #machine} {
  func.func @main(%x: tensor<256xf32> {hp.name = "x", hp.role = "input"}) -> tensor<256xf32> {
    %e = tensor.empty() : tensor<256xf32>
    %a = linalg.negf ins(%x : tensor<256xf32>) outs(%e : tensor<256xf32>) -> tensor<256xf32>
    %b = linalg.exp ins(%x : tensor<256xf32>) outs(%e : tensor<256xf32>) -> tensor<256xf32>
    %c = linalg.exp ins(%b : tensor<256xf32>) outs(%e : tensor<256xf32>) -> tensor<256xf32>
    %d = linalg.exp ins(%c : tensor<256xf32>) outs(%e : tensor<256xf32>) -> tensor<256xf32>
    %r = linalg.add ins(%a, %d : tensor<256xf32>, tensor<256xf32>) outs(%e : tensor<256xf32>) -> tensor<256xf32>
    return %r : tensor<256xf32>
  }
}
