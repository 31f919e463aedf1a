// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What cannot be planned is refused: which op, how much it needs, how much there is (case 24).
// RUN: hp-opt %s --split-input-file --offload-plan-transfers=capacity=1000 --verify-diagnostics

#machine = #supernode.machine<"box",
  groups = [<"npu" = 1, memory = "hbm", launch = 1.0e-6, vector = 1.0e9, rates = [f32 = 1.0e9]>],
  tiers = [<"hbm" in "device", capacity = 1.0e6, bandwidth = 1.0e9>, <"dram" in "device", capacity = 1.0e6, bandwidth = 1.0e9>],
  links = [<"dram" -> "hbm", latency = 1.0e-6, bandwidth = 1.0e9>, <"hbm" -> "dram", latency = 1.0e-6, bandwidth = 1.0e9>]>
module attributes {supernode.machine = #machine} {
  func.func @main(%x: tensor<4x16xf32> {hp.role = "input"}, %w: tensor<16x16xf32> {hp.role = "parameter"}) -> tensor<4x16xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4x16xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x16xf32>) -> tensor<4x16xf32>
    // expected-error @below {{expected tier hbm to have at least 1536 B (1536 bytes) for linalg.matmul but got 1000 B (1000 bytes)}}
    // expected-note @below {{no op needs more: 1536 bytes is the smallest capacity that can work; split the tensors over more devices, or make the batch smaller}}
    %1 = linalg.matmul ins(%x, %w : tensor<4x16xf32>, tensor<16x16xf32>) outs(%z : tensor<4x16xf32>) -> tensor<4x16xf32>
    return %1 : tensor<4x16xf32>
  }
}

// -----

// expected-error @below {{expected a function @main with one block to plan}}
module {
}

// -----

module attributes {supernode.machine = #supernode.machine<preset = "cpu-supernode">} {
  // expected-error @below {{expected argument w to be placed in a tier that copies reach from local but got "attic"}}
  // expected-note @below {{cpu-supernode has "pool"}}
  func.func @main(%w: tensor<4xf32> {hp.name = "w", hp.role = "parameter", offload.place = #offload.tier<attic>}) {
    return
  }
}

// -----

// An argument placed below that is returned on the device (case 11).
module attributes {supernode.machine = #supernode.machine<preset = "cpu-supernode">} {
  // expected-error @below {{expected argument w to be placed in "pool" but the function returns it on the device; return a copy, or remove the placement}}
  func.func @main(%w: tensor<4xf32> {hp.name = "w", hp.role = "parameter", offload.place = #offload.tier<pool>}) -> tensor<4xf32> {
    return %w : tensor<4xf32>
  }
}

// -----

// An argument placed below whose next value cannot be made in its place.
module attributes {supernode.machine = #supernode.machine<preset = "cpu-supernode">} {
  // expected-error @below {{expected argument w to be placed in "pool" but its value is used after the step made its next one; update it last, or remove the placement}}
  func.func @main(%w: tensor<4xf32> {hp.name = "w", hp.role = "parameter", offload.place = #offload.tier<pool>})
      -> (tensor<4xf32> {hp.updates = "w"}, tensor<4xf32>) {
    %new = arith.negf %w : tensor<4xf32>
    %a = arith.addf %w, %new : tensor<4xf32>
    return %new, %a : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// The lower tier is full, likewise.
#machine = #supernode.machine<"box",
  groups = [<"npu" = 1, memory = "hbm", launch = 1.0e-6, vector = 1.0e9, rates = [f32 = 1.0e9]>],
  tiers = [<"hbm" in "device", capacity = 1.0e6, bandwidth = 1.0e9>, <"dram" in "device", capacity = 100, bandwidth = 1.0e9>],
  links = [<"dram" -> "hbm", latency = 1.0e-6, bandwidth = 1.0e9>, <"hbm" -> "dram", latency = 1.0e-6, bandwidth = 1.0e9>]>
module attributes {supernode.machine = #machine} {
  // expected-error @below {{expected the tiers below hbm to hold 192 B at the same time but they have 100 B}}
  // expected-note @below {{the device has 1000 B; with all of 1152 B nothing would have to move}}
  func.func @main(%x: tensor<48xf32>, %y: tensor<48xf32>) -> tensor<48xf32> {
    %e = tensor.empty() : tensor<48xf32>
    %a = supernode.task "once" ins(%x : tensor<48xf32>) outs(%e : tensor<48xf32>) {seconds = 1.0e-6 : f64}
    %b = linalg.exp ins(%y : tensor<48xf32>) outs(%e : tensor<48xf32>) -> tensor<48xf32>
    %c = linalg.exp ins(%b : tensor<48xf32>) outs(%e : tensor<48xf32>) -> tensor<48xf32>
    %d = linalg.add ins(%a, %c : tensor<48xf32>, tensor<48xf32>) outs(%e : tensor<48xf32>) -> tensor<48xf32>
    return %d : tensor<48xf32>
  }
}

