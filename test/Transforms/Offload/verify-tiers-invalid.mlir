// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A compute op on a value in a tier is refused where it stands (case 16).
// RUN: hp-opt %s --split-input-file --offload-verify-tiers --verify-diagnostics

func.func @operand(%w: tensor<4xf32, #offload.tier<pool>>, %e: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{expected operand 0 to be on the device but got one in tier "pool"; use the value of an offload.prefetch and offload.wait}}
  %y = linalg.exp ins(%w : tensor<4xf32, #offload.tier<pool>>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @result() -> tensor<4xf32, #offload.tier<pool>> {
  // expected-error @below {{expected result 0 to be on the device but got one in tier "pool"; compute it there and move it by an offload.store}}
  %e = tensor.empty() : tensor<4xf32, #offload.tier<pool>>
  return %e : tensor<4xf32, #offload.tier<pool>>
}

// -----

// expected-error @below {{expected the moves of the plan to be written; run offload-insert-transfers}}
func.func @planned(%x: tensor<4xf32>) attributes {offload.moves = []} {
  return
}
