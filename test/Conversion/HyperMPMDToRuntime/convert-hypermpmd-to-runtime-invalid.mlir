// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hp-opt %s --hp-convert-hypermpmd-to-runtime --split-input-file --verify-diagnostics

module attributes {hypermpmd.group = "a", hypermpmd.topology = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>} {
  func.func @main(%x: tensor<4xf32>) {
    // expected-error @below {{expected a route; run hypermpmd-resolve-transfers first}}
    hypermpmd.send %x to "b" tag 5 : tensor<4xf32>
    return
  }
}

// -----

module attributes {hypermpmd.group = "a", hypermpmd.topology = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>} {
  func.func @main(%x: tensor<?xf32>) {
    // expected-error @below {{expected a tensor of static shape, of elements that the runtime has, but got 'tensor<?xf32>'}}
    hypermpmd.send %x to "b" tag 5 route [0, 0, 0, 1] : tensor<?xf32>
    return
  }
}

// -----

module attributes {hypermpmd.topology = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>} {
  func.func @main(%x: tensor<4xf32>) {
    // expected-error @below {{expected the program of one device group but got hypermpmd.transfer; run hypermpmd-split-programs first}}
    %t = hypermpmd.transfer %x from "a" to "b" : tensor<4xf32>
    return
  }
}
