// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hp-opt %s --hypermpmd-split-programs --split-input-file --verify-diagnostics

// expected-error @below {{expected the module to have a `hypermpmd.topology`; run hypermpmd-form-fragments first}}
module {
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    return %x : tensor<2xf32>
  }
}

// -----

module attributes {hypermpmd.topology = #hypermpmd.topology<"a" = <["tp"=1]>>} {
  func.func @main() {
    return
  }
  // expected-error @below {{expected the name of the device group "a" to be free but this has it; rename the group}}
  func.func private @a()
}

// -----

module attributes {hypermpmd.topology = #hypermpmd.topology<"a" = <["tp"=1]>>} {
  // expected-error @below {{expected result 0 to be on a device group; run hypermpmd-infer-transfers first}}
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    return %x : tensor<2xf32>
  }
}

// -----

module attributes {hypermpmd.topology = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>} {
  func.func @main(%x: tensor<2xf32> {hypermpmd.groups = ["b"]}) {
    // expected-error @below {{expected its operands to be on the group that reads them; run hypermpmd-infer-transfers first}}
    hypermpmd.fragment on "a" forward (%x) : (tensor<2xf32>) -> () {
    ^bb0(%p: tensor<2xf32>):
      hypermpmd.yield
    }
    return
  }
}

// -----

module attributes {hypermpmd.topology = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>} {
  // expected-error @below {{expected the argument "x" to be on the group "b", where its next value is; run hypermpmd-infer-transfers first}}
  func.func @main(%x: tensor<2xf32> {hp.name = "x", hypermpmd.groups = ["a"]}, %y: tensor<2xf32> {hypermpmd.groups = ["b"]})
      -> (tensor<2xf32> {hp.updates = "x", hypermpmd.group = "b"}) {
    return %y : tensor<2xf32>
  }
}
