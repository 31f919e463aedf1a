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

#t = #hypermpmd.topology<"actor" = <["tp"=1]>, "learner" = <["tp"=1]>>
module attributes {hypermpmd.topology = #t} {
  // Weights that the actor alone reads live with the actor; the learner sends it the next ones.
  // CHECK-LABEL: func.func @main(
  // CHECK-SAME: {hp.name = "actor.w", hypermpmd.groups = ["actor"]}
  // CHECK-SAME: {hp.name = "learner.w", hypermpmd.groups = ["learner"]}
  // CHECK-SAME: -> (tensor<2xf32> {hp.updates = "actor.w", hypermpmd.group = "actor"}, tensor<2xf32> {hp.updates = "learner.w", hypermpmd.group = "learner"}) {
  func.func @main(%v: tensor<2xf32> {hp.name = "actor.w"}, %w: tensor<2xf32> {hp.name = "learner.w"})
      -> (tensor<2xf32> {hp.updates = "actor.w"}, tensor<2xf32> {hp.updates = "learner.w"}) {
    // CHECK-NEXT: %[[A:.*]] = hypermpmd.fragment on "actor" forward
    // CHECK: %[[AL:.*]] = hypermpmd.transfer %[[A]] from "actor" to "learner"
    %a = hypermpmd.fragment on "actor" forward (%v) : (tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%in: tensor<2xf32>):
      %s = arith.negf %in : tensor<2xf32>
      hypermpmd.yield %s : tensor<2xf32>
    }
    // CHECK: %[[NEXT:.*]] = hypermpmd.fragment on "learner" update
    // CHECK: %[[SENT:.*]] = hypermpmd.transfer %[[NEXT]] from "learner" to "actor"
    // CHECK: return %[[SENT]], %[[NEXT]]
    %u = hypermpmd.fragment on "learner" update (%w, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%p: tensor<2xf32>, %q: tensor<2xf32>):
      %s = arith.subf %p, %q : tensor<2xf32>
      hypermpmd.yield %s : tensor<2xf32>
    }
    return %u, %u : tensor<2xf32>, tensor<2xf32>
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

// -----

// What a makes is read on b two steps later: the value on its way lives with a, and what moves is a step old. Two arguments
// that only change places live on the first group.
module attributes {hypermpmd.topology = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>} {
  // CHECK-LABEL: func.func @main(
  // CHECK-SAME: %[[C1:[^:]*]]: tensor<2xf32> {hp.name = "c.1", hypermpmd.groups = ["a"]}
  // CHECK-SAME: hp.name = "c", hypermpmd.groups = ["b"]
  // CHECK-SAME: hp.name = "p", hypermpmd.groups = ["a"]
  // CHECK-SAME: hp.name = "q", hypermpmd.groups = ["a"]
  // CHECK: %[[OLD:.*]] = hypermpmd.transfer %[[C1]] from "a" to "b"
  // CHECK-NOT: hypermpmd.transfer
  // CHECK: return %{{.*}}, %{{.*}}, %[[OLD]],
  func.func @main(%c1: tensor<2xf32> {hp.name = "c.1"}, %c: tensor<2xf32> {hp.name = "c"}, %p: tensor<2xf32> {hp.name = "p"},
                  %q: tensor<2xf32> {hp.name = "q"})
      -> (tensor<2xf32>, tensor<2xf32> {hp.updates = "c.1"}, tensor<2xf32> {hp.updates = "c"}, tensor<2xf32> {hp.updates = "p"},
          tensor<2xf32> {hp.updates = "q"}) {
    %a = hypermpmd.fragment on "a" forward () : () -> tensor<2xf32> {
      %s = arith.constant dense<1.0> : tensor<2xf32>
      %t = math.exp %s : tensor<2xf32>
      hypermpmd.yield %t : tensor<2xf32>
    }
    %b = hypermpmd.fragment on "b" forward (%c) : (tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%in: tensor<2xf32>):
      %s = math.exp %in : tensor<2xf32>
      hypermpmd.yield %s : tensor<2xf32>
    }
    return %b, %a, %c1, %q, %p : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  }
}
