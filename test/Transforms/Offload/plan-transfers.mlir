// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What leaves the device, by capacity; decided by the machine's links, safe by op numbers.
// RUN: hp-opt %s --offload-plan-transfers=capacity=4096 2>&1 | FileCheck %s --check-prefix=FITS
// RUN: hp-opt %s --offload-plan-transfers=capacity=2600 --mlir-print-op-on-diagnostic=false 2>&1 | FileCheck %s --check-prefix=TIGHT
// RUN: hp-opt %s --hp-offload | FileCheck %s --check-prefix=MACHINE
// RUN: hp-opt %s --offload-plan-transfers="capacity=2600 report=%t.json" -o /dev/null 2>/dev/null && FileCheck %s --check-prefix=REPORT < %t.json

#machine = #supernode.machine<"box",
  groups = [<"npu" = 1, memory = "hbm", launch = 1.0e-6, vector = 1.0e9, rates = [f32 = 1.0e9]>],
  tiers = [<"hbm" in "device", capacity = 2600, bandwidth = 1.0e9>, <"dram" in "device", capacity = 100000, bandwidth = 1.0e9>],
  links = [<"dram" -> "hbm", latency = 1.0e-6, bandwidth = 1.0e9>, <"hbm" -> "dram", latency = 1.0e-6, bandwidth = 1.0e9>]>

// Input and result are 256 bytes each; two intermediates are alive at a time, and three weights of 1024 bytes are streamed.
// FITS: remark: offload: nothing moves: 4096 B at the peak fit in 4096 B
// FITS-NOT: offload.moves

// TIGHT: remark: offload: w1 (1024 B) is in dram from op {{[0-9]+}} to op {{[0-9]+}} of the next step: dropped, fetched in 2.024 us
// TIGHT: remark: offload: step {{.*}} peak {{[0-9]+}} B of 2600 B, 4096 B if nothing moved
// TIGHT: offload.moves = [#offload.move<

// MACHINE-LABEL: func.func @main(
// MACHINE: offload.prefetch
// MACHINE: offload.detach

// REPORT: "capacity": 2600
// REPORT: "max_live_bytes": 4096
// REPORT: "moves": [
// REPORT: "tensor": "w{{[123]}}"
module attributes {supernode.machine = #machine} {
  func.func @main(%x: tensor<4x16xf32> {hp.name = "x", hp.role = "input"},
                  %w1: tensor<16x16xf32> {hp.name = "w1", hp.role = "parameter"},
                  %w2: tensor<16x16xf32> {hp.name = "w2", hp.role = "parameter"},
                  %w3: tensor<16x16xf32> {hp.name = "w3", hp.role = "parameter"}) -> (tensor<4x16xf32> {hp.name = "y"}) {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4x16xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x16xf32>) -> tensor<4x16xf32>
    %1 = linalg.matmul ins(%x, %w1 : tensor<4x16xf32>, tensor<16x16xf32>) outs(%z : tensor<4x16xf32>) -> tensor<4x16xf32>
    %2 = linalg.matmul ins(%1, %w2 : tensor<4x16xf32>, tensor<16x16xf32>) outs(%z : tensor<4x16xf32>) -> tensor<4x16xf32>
    %3 = linalg.matmul ins(%2, %w3 : tensor<4x16xf32>, tensor<16x16xf32>) outs(%z : tensor<4x16xf32>) -> tensor<4x16xf32>
    return %3 : tensor<4x16xf32>
  }
}
