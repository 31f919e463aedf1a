// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hp-opt %s --hypermpmd-infer-transfers --split-input-file --verify-diagnostics

#t = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>
module attributes {hypermpmd.topology = #t} {
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    // expected-error @below {{expected @main to consist of fragments and transfers but got `arith.negf`}}
    // expected-note @below {{run hypermpmd-form-fragments first}}
    %s = arith.negf %x : tensor<2xf32>
    return %s : tensor<2xf32>
  }
}

// -----

#t = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>
module attributes {hypermpmd.topology = #t} {
  // expected-error @below {{result 0 updates "w", which is no argument}}
  func.func @main(%x: tensor<2xf32> {hp.name = "x"}) -> (tensor<2xf32> {hp.updates = "w"}) {
    return %x : tensor<2xf32>
  }
}

// -----

#t = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>
module attributes {hypermpmd.topology = #t} {
  func.func @main() {
    %i = hypermpmd.fragment on "a" forward () : () -> index {
      %c = arith.constant 1 : index
      hypermpmd.yield %c : index
    }
    // expected-error @below {{expected a tensor to cross from group "a" to group "b" but got 'index'}}
    hypermpmd.fragment on "b" forward (%i) : (index) -> () {
    ^bb0(%in: index):
      %e = tensor.empty(%in) : tensor<?xf32>
      func.call @sink(%e) : (tensor<?xf32>) -> ()
      hypermpmd.yield
    }
    return
  }
  func.func private @sink(tensor<?xf32>)
}
