// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a step updates may live below between steps: fetched, and stored after the update, once per step. (The pass is
// offload-plan-transfers.)
// RUN: hp-opt %s --offload-plan-transfers=capacity=2300 --offload-insert-transfers --offload-verify-tiers --mlir-print-op-on-diagnostic=false 2>&1 | FileCheck %s
// RUN: hp-opt %s --offload-plan-transfers=capacity=4096 --mlir-print-op-on-diagnostic=false 2>&1 | FileCheck %s --check-prefix=FITS

#machine = #supernode.machine<"box",
  groups = [<"npu" = 1, memory = "hbm", launch = 1.0e-6, vector = 1.0e9, rates = [f32 = 1.0e9]>],
  tiers = [<"hbm" in "device", capacity = 2600, bandwidth = 1.0e9>, <"dram" in "device", capacity = 100000, bandwidth = 1.0e9>],
  links = [<"dram" -> "hbm", latency = 1.0e-6, bandwidth = 1.0e9>, <"hbm" -> "dram", latency = 1.0e-6, bandwidth = 1.0e9>]>

// Two weights of 1024 bytes, each updated in its own place by a gradient of 1024 bytes: no copy of it is counted.
// FITS: remark: offload: nothing moves: 3072 B at the peak fit in 4096 B

// CHECK: remark: offload: w{{[12]}} (1024 B) is in dram from op {{[0-9]+}} to op {{[0-9]+}} of the next step: stored, fetched in 2.024 us
// CHECK: func.func @main(
// CHECK: offload.prefetch
// CHECK: offload.store
module attributes {supernode.machine = #machine} {
  func.func @main(%w1: tensor<256xf32> {hp.name = "w1", hp.role = "parameter"},
                  %w2: tensor<256xf32> {hp.name = "w2", hp.role = "parameter"})
      -> (tensor<256xf32> {hp.updates = "w1"}, tensor<256xf32> {hp.updates = "w2"}) {
    %e = tensor.empty() : tensor<256xf32>
    %g1 = linalg.exp ins(%w1 : tensor<256xf32>) outs(%e : tensor<256xf32>) -> tensor<256xf32>
    %n1 = linalg.sub ins(%w1, %g1 : tensor<256xf32>, tensor<256xf32>) outs(%e : tensor<256xf32>) -> tensor<256xf32>
    %g2 = linalg.exp ins(%w2 : tensor<256xf32>) outs(%e : tensor<256xf32>) -> tensor<256xf32>
    %n2 = linalg.sub ins(%w2, %g2 : tensor<256xf32>, tensor<256xf32>) outs(%e : tensor<256xf32>) -> tensor<256xf32>
    return %n1, %n2 : tensor<256xf32>, tensor<256xf32>
  }
}
