// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is read elsewhere is moved once, straight from where it was made; arguments say who is handed them.
// RUN: hp-opt %s --hypermpmd-infer-transfers --split-input-file | FileCheck %s

#t = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>, "c" = <["tp"=1]>>
module attributes {hypermpmd.topology = #t} {
  // A skip from a to c goes straight; two reads on c share it. x is handed to a and c.
  // CHECK-LABEL: func.func @main(
  // CHECK-SAME: %[[X:.*]]: tensor<2xf32> {hp.name = "x", hypermpmd.groups = ["a", "c"]}, %[[Y:.*]]: tensor<2xf32> {hp.name = "y", hypermpmd.groups = []}) -> (tensor<2xf32> {hypermpmd.group = "c"}) {
  func.func @main(%x: tensor<2xf32> {hp.name = "x"}, %y: tensor<2xf32> {hp.name = "y"}) -> tensor<2xf32> {
    // CHECK: %[[A:.*]] = hypermpmd.fragment on "a"
    // CHECK: %[[AC:.*]] = hypermpmd.transfer %[[A]] from "a" to "c"
    // CHECK: %[[AB:.*]] = hypermpmd.transfer %[[A]] from "a" to "b"
    %a = hypermpmd.fragment on "a" forward (%x) : (tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%in: tensor<2xf32>):
      %s = arith.negf %in : tensor<2xf32>
      hypermpmd.yield %s : tensor<2xf32>
    }
    // CHECK: %[[B:.*]] = hypermpmd.fragment on "b" forward(%[[AB]])
    // CHECK: %[[BC:.*]] = hypermpmd.transfer %[[B]] from "b" to "c"
    %b = hypermpmd.fragment on "b" forward (%a) : (tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%in: tensor<2xf32>):
      %s = arith.negf %in : tensor<2xf32>
      hypermpmd.yield %s : tensor<2xf32>
    }
    // CHECK: %[[C:.*]] = hypermpmd.fragment on "c" forward(%[[AC]], %[[BC]], %[[X]])
    %c = hypermpmd.fragment on "c" forward (%a, %b, %x) : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%p: tensor<2xf32>, %q: tensor<2xf32>, %r: tensor<2xf32>):
      %s = arith.addf %p, %q : tensor<2xf32>
      %u = arith.addf %s, %r : tensor<2xf32>
      hypermpmd.yield %u : tensor<2xf32>
    }
    // CHECK: hypermpmd.fragment on "c" forward(%[[C]], %[[AC]])
    %d = hypermpmd.fragment on "c" forward (%c, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%p: tensor<2xf32>, %q: tensor<2xf32>):
      %s = arith.addf %p, %q : tensor<2xf32>
      hypermpmd.yield %s : tensor<2xf32>
    }
    return %d : tensor<2xf32>
  }
}

// -----

#t = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>
module attributes {hypermpmd.topology = #t} {
  // A tied weight that a updates: b gets it once a step, for both of its reads; b's gradient goes back once.
  // CHECK-LABEL: func.func @main(
  // CHECK-SAME: %[[W:.*]]: tensor<2xf32> {hp.name = "w", hypermpmd.groups = ["a"]}) -> (tensor<2xf32> {hp.updates = "w", hypermpmd.group = "a"}) {
  func.func @main(%w: tensor<2xf32> {hp.name = "w"}) -> (tensor<2xf32> {hp.updates = "w"}) {
    // CHECK-NEXT: %[[WB:.*]] = hypermpmd.transfer %[[W]] from "a" to "b"
    // CHECK-NEXT: hypermpmd.fragment on "a" forward(%[[W]])
    %a = hypermpmd.fragment on "a" forward (%w) : (tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%in: tensor<2xf32>):
      %s = arith.negf %in : tensor<2xf32>
      hypermpmd.yield %s : tensor<2xf32>
    }
    // CHECK: hypermpmd.fragment on "b" forward(%{{.*}}, %[[WB]])
    %b = hypermpmd.fragment on "b" forward (%a, %w) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%p: tensor<2xf32>, %q: tensor<2xf32>):
      %s = arith.addf %p, %q : tensor<2xf32>
      hypermpmd.yield %s : tensor<2xf32>
    }
    // CHECK: %[[G:.*]] = hypermpmd.fragment on "b" backward(%{{.*}}, %[[WB]])
    // CHECK: %[[GA:.*]] = hypermpmd.transfer %[[G]] from "b" to "a"
    %g = hypermpmd.fragment on "b" backward (%b, %w) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%p: tensor<2xf32>, %q: tensor<2xf32>):
      %s = arith.mulf %p, %q : tensor<2xf32>
      hypermpmd.yield %s : tensor<2xf32>
    }
    // CHECK: hypermpmd.fragment on "a" update(%[[W]], %[[GA]])
    %u = hypermpmd.fragment on "a" update (%w, %g) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%p: tensor<2xf32>, %q: tensor<2xf32>):
      %s = arith.subf %p, %q : tensor<2xf32>
      hypermpmd.yield %s : tensor<2xf32>
    }
    return %u : tensor<2xf32>
  }
}

// -----

#t = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>
module attributes {hypermpmd.topology = #t} {
  // b only hands the value on: it never leaves a. A person's transfer is kept, and shared.
  // CHECK-LABEL: func.func @main(
  // CHECK: %[[A:.*]] = hypermpmd.fragment on "a" forward
  // CHECK: %[[T:.*]] = hypermpmd.transfer %[[A]] from "a" to "b"
  // CHECK-NOT: hypermpmd.transfer
  // CHECK: hypermpmd.fragment on "a" backward(%[[A]])
  // CHECK: hypermpmd.fragment on "b" backward(%[[T]])
  func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %a = hypermpmd.fragment on "a" forward (%x) : (tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%in: tensor<2xf32>):
      %s = arith.negf %in : tensor<2xf32>
      hypermpmd.yield %s : tensor<2xf32>
    }
    %t = hypermpmd.transfer %a from "a" to "b" : tensor<2xf32>
    %b = hypermpmd.fragment on "b" forward (%t) : (tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%in: tensor<2xf32>):
      hypermpmd.yield %in : tensor<2xf32>
    }
    %c = hypermpmd.fragment on "a" backward (%b) : (tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%in: tensor<2xf32>):
      %s = arith.negf %in : tensor<2xf32>
      hypermpmd.yield %s : tensor<2xf32>
    }
    %d = hypermpmd.fragment on "b" backward (%a) : (tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%in: tensor<2xf32>):
      %s = math.exp %in : tensor<2xf32>
      hypermpmd.yield %s : tensor<2xf32>
    }
    return %c, %d : tensor<2xf32>, tensor<2xf32>
  }
}
