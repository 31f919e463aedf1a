// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every message of the dialect.
// RUN: hp-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{expected at least one device group}}
func.func private @none() attributes {t.t = #hypermpmd.topology<>}

// -----

// expected-error @below {{expected a device group to have a name}}
func.func private @unnamed() attributes {t.t = #hypermpmd.topology<"" = <["tp"=1]>>}

// -----

// expected-error @below {{expected device groups of different names but got "a" twice}}
func.func private @twice() attributes {t.t = #hypermpmd.topology<"a" = <["tp"=1]>, "a" = <["tp"=2]>>}

// -----

// expected-error @below {{expected `hypermpmd.topology` to be a #hypermpmd.topology on a module}}
module attributes {hypermpmd.topology = 1} {}

// -----

// expected-error @below {{unknown attribute `hypermpmd.nonsense` of the hypermpmd dialect}}
module attributes {hypermpmd.nonsense} {}

// -----

// expected-error @below {{`hypermpmd.group`: expected the name of a device group but got 1}}
module attributes {hypermpmd.group = 1} {}

// -----

// expected-error @below {{`hypermpmd.group`: expected a module with `hypermpmd.topology` around it, which names the device groups}}
module attributes {hypermpmd.group = "a"} {}

// -----

// expected-error @below {{`hypermpmd.group`: expected a device group of #hypermpmd.topology<"a" = <["tp"=1]>> but got "b"}}
module attributes {hypermpmd.group = "b", hypermpmd.topology = #hypermpmd.topology<"a" = <["tp"=1]>>} {}

// -----

// expected-error @below {{expected `hypermpmd.microbatch` to be an i64 of at least 0 but got -1 : i64}}
module attributes {hypermpmd.microbatch = -1 : i64} {}

// -----

// expected-error @below {{unknown attribute `hypermpmd.where` of the hypermpmd dialect}}
func.func private @argument(tensor<2xf32> {hypermpmd.where = "a"})

// -----

// expected-error @below {{argument 0: expected `hypermpmd.groups` to be an array of names but got "a"}}
func.func private @argument(tensor<2xf32> {hypermpmd.groups = "a"})

// -----

// expected-error @below {{unknown attribute `hypermpmd.where` of the hypermpmd dialect}}
func.func private @result() -> (tensor<2xf32> {hypermpmd.where = "a"})

// -----

func.func @no_topology(%x: tensor<2xf32>) {
  // expected-error @below {{expected a module with `hypermpmd.topology` around it, which names the device groups}}
  %t = hypermpmd.transfer %x from "a" to "b" : tensor<2xf32>
  return
}

// -----

module attributes {hypermpmd.topology = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>} {
  func.func @unknown(%x: tensor<2xf32>) {
    // expected-error @below {{expected a device group of #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>> but got "c"}}
    %t = hypermpmd.transfer %x from "a" to "c" : tensor<2xf32>
    return
  }
}

// -----

module attributes {hypermpmd.topology = #hypermpmd.topology<"a" = <["tp"=1]>>} {
  func.func @same(%x: tensor<2xf32>) {
    // expected-error @below {{expected two device groups but got "a" twice}}
    %t = hypermpmd.transfer %x from "a" to "a" : tensor<2xf32>
    return
  }
}

// -----

module attributes {hypermpmd.topology = #hypermpmd.topology<"a" = <["tp"=1]>>} {
  func.func @negative() {
    // expected-error @below {{expected stage and microbatch to be at least 0}}
    hypermpmd.fragment on "a" stage -1 forward () : () -> () {
      hypermpmd.yield
    }
    return
  }
}

// -----

module attributes {hypermpmd.topology = #hypermpmd.topology<"a" = <["tp"=1]>>} {
  func.func @arguments(%x: tensor<2xf32>) {
    // expected-error @below {{expected the body's arguments to have the types of the operands, ('tensor<2xf32>'), but got ('tensor<3xf32>')}}
    hypermpmd.fragment on "a" forward (%x) : (tensor<2xf32>) -> () {
    ^bb0(%in: tensor<3xf32>):
      hypermpmd.yield
    }
    return
  }
}

// -----

module attributes {hypermpmd.topology = #hypermpmd.topology<"a" = <["tp"=1]>>} {
  func.func @yields(%x: tensor<2xf32>) {
    // expected-error @below {{expected the body to yield the types of the results, ('tensor<3xf32>'), but got ('tensor<2xf32>')}}
    %y = hypermpmd.fragment on "a" forward (%x) : (tensor<2xf32>) -> tensor<3xf32> {
    ^bb0(%in: tensor<2xf32>):
      hypermpmd.yield %in : tensor<2xf32>
    }
    return
  }
}

// -----

module attributes {hypermpmd.topology = #hypermpmd.topology<"a" = <["tp"=1]>>} {
  func.func @outside(%x: tensor<2xf32>) {
    // expected-error @below {{expected the program of one device group: a module with `hypermpmd.group`}}
    hypermpmd.send %x to "a" tag 0 : tensor<2xf32>
    return
  }
}

// -----

module attributes {hypermpmd.group = "a", hypermpmd.topology = #hypermpmd.topology<"a" = <["tp"=1]>>} {
  func.func @itself() {
    // expected-error @below {{expected another device group than its own, "a"}}
    %r = hypermpmd.recv from "a" tag 0 : tensor<2xf32>
    return
  }
}

// -----

module attributes {hypermpmd.group = "a", hypermpmd.topology = #hypermpmd.topology<"a" = <["tp"=2]>, "b" = <["tp"=3]>>} {
  func.func @words(%x: tensor<2xf32>) {
    // expected-error @below {{expected a route of 4 numbers for each block but got 3}}
    hypermpmd.send %x to "b" tag 0 route [0, 0, 0] : tensor<2xf32>
    return
  }
}

// -----

module attributes {hypermpmd.group = "a", hypermpmd.topology = #hypermpmd.topology<"a" = <["tp"=2]>, "b" = <["tp"=3]>>} {
  func.func @order(%x: tensor<2xf32>) {
    // expected-error @below {{expected the blocks' devices in its group to ascend below 2 but got 0}}
    hypermpmd.send %x to "b" tag 0 route [1, 0, 0, 1, 0, 0, 0, 1] : tensor<2xf32>
    return
  }
}

// -----

module attributes {hypermpmd.group = "a", hypermpmd.topology = #hypermpmd.topology<"a" = <["tp"=2]>, "b" = <["tp"=3]>>} {
  func.func @peer(%x: tensor<2xf32>) {
    // expected-error @below {{expected a device of the peer, below 3, but got 3}}
    hypermpmd.send %x to "b" tag 0 route [1, 3, 0, 1] : tensor<2xf32>
    return
  }
}

// -----

module attributes {hypermpmd.group = "a", hypermpmd.topology = #hypermpmd.topology<"a" = <["tp"=2]>, "b" = <["tp"=3]>>} {
  func.func @empty(%x: tensor<2xf32>) {
    // expected-error @below {{expected blocks to begin at 0 or later and to have at least one element but got 1 and 0}}
    hypermpmd.send %x to "b" tag 0 route [1, 2, 1, 0] : tensor<2xf32>
    return
  }
}

// -----

module attributes {hypermpmd.topology = #hypermpmd.topology<"a" = <["tp"=1]>>} {
  func.func @endless(%x: tensor<2xf32>) {
    %0 = "hypermpmd.fragment"(%x) <{group = "a", kind = #hypermpmd<fragment_kind forward>}> ({
    ^bb0(%y: tensor<2xf32>):
      // expected-error @below {{block with no terminator}}
      %1 = arith.negf %y : tensor<2xf32>
    }) : (tensor<2xf32>) -> tensor<2xf32>
    return
  }
}
