// Recursion is refused.
// RUN: hp-opt %s -split-input-file -verify-diagnostics -hypershard-specialize-functions

// expected-error @below {{recursive functions are not supported: @f reaches itself}}
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
