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

// -----

// An argument on the device gives its memory to a result in a tier (case 11), and the other way round.
// expected-error @below {{expected result 1 to be on the device, as the argument "w" that it updates, but got one in tier "pool"}}
// expected-note @below {{move it there before it is returned, or take the argument from where the result goes}}
func.func @donated(%x: tensor<4xf32>, %w: tensor<4xf32> {hp.name = "w", hp.role = "parameter"})
    -> (tensor<4xf32>, tensor<4xf32, #offload.tier<pool>> {hp.updates = "w"}) {
  %new = linalg.exp ins(%w : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  %f = offload.store %new : tensor<4xf32> -> <tensor<4xf32, #offload.tier<pool>>>
  %below = offload.wait %f : <tensor<4xf32, #offload.tier<pool>>>
  return %x, %below : tensor<4xf32>, tensor<4xf32, #offload.tier<pool>>
}

// -----

// expected-error @below {{expected result 0 to be in tier "pool", as the argument "w" that it updates, but got one on the device}}
// expected-note @below {{move it there before it is returned, or take the argument from where the result goes}}
func.func @fetched(%x: tensor<4xf32>, %w: tensor<4xf32, #offload.tier<pool>> {hp.name = "w", hp.role = "parameter"})
    -> (tensor<4xf32> {hp.updates = "w"}) {
  return %x : tensor<4xf32>
}
