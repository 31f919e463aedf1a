// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Without an entry, or without anything that the plan speaks of, there are no fragments.
// RUN: hp-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(hypermpmd-form-fragments{plan={{"groups":[{"name":"a","axes":[["tp",1]]}],"stages":[{"group":"a","blocks":[]}]}}})'

// expected-error @below {{expected a function @main of one block}}
module {}

// -----

// expected-error @below {{plan: expected at least 1 blocks to cut into as many stages but the program calls 0}}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
