// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hp-opt %s --hypermpmd-split-backward --split-input-file --verify-diagnostics

func.func @main(%g: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{expected a function of the module, of one block, but got @elsewhere}}
  %a = call @elsewhere(%g) {hp.path = "h.1", hp.phase = "backward"} : (tensor<4xf32>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}
func.func private @elsewhere(tensor<4xf32>) -> tensor<4xf32>
