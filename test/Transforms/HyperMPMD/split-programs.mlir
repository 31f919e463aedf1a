// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Each group gets a module with what it runs, is handed and calls; send and receive stand where the transfer does.
// RUN: hp-opt %s --hypermpmd-split-programs --hypermpmd-verify-programs | FileCheck %s

#t = #hypermpmd.topology<"a" = <["tp"=2]>, "b" = <["tp"=1]>>
module attributes {hypermpmd.topology = #t} {
  // CHECK-NOT: func.func
  // CHECK: module @a attributes {hypermpmd.group = "a", hypermpmd.topology = #hypermpmd.topology<
  // CHECK: func.func @main(%[[W:.*]]: tensor<2xf32> {hp.name = "w"}, %[[X:.*]]: tensor<2xf32> {hp.name = "x"}) -> (tensor<2xf32> {hp.name = "y"}) {
  // CHECK-NEXT: hypermpmd.send %[[W]] to "b" tag 0 : tensor<2xf32>
  // CHECK-NEXT: %[[F:.*]] = call @shared(%[[X]])
  // CHECK-NEXT: hypermpmd.send %[[F]] to "b" tag 1
  // CHECK-NEXT: %[[G:.*]] = hypermpmd.recv from "b" tag 0
  // CHECK-NEXT: %[[H:.*]] = arith.addf %[[G]], %[[W]]
  // CHECK-NEXT: return %[[H]]
  // CHECK: func.func private @shared(
  // CHECK: func.func private @inner(
  // CHECK-NOT: func.func private @only_b(
  // CHECK: module @b attributes {hypermpmd.group = "b"
  // CHECK: func.func @main() -> (tensor<2xf32> {hp.name = "z"}) {
  // CHECK-NEXT: %[[W:.*]] = hypermpmd.recv from "a" tag 0
  // CHECK-NEXT: %[[F:.*]] = hypermpmd.recv from "a" tag 1
  // CHECK-NEXT: %[[P:.*]] = call @only_b(%[[F]], %[[W]])
  // CHECK-NEXT: %[[Q:.*]] = call @inner(%[[P]])
  // CHECK-NEXT: hypermpmd.send %[[Q]] to "a" tag 0
  // CHECK-NEXT: return %[[P]]
  // CHECK: func.func private @only_b(
  // CHECK: func.func private @inner(
  // CHECK-NOT: func.func private @shared(
  func.func @main(%w: tensor<2xf32> {hp.name = "w", hypermpmd.groups = ["a"]},
                  %x: tensor<2xf32> {hp.name = "x", hypermpmd.groups = ["a"]})
      -> (tensor<2xf32> {hp.name = "z", hypermpmd.group = "b"}, tensor<2xf32> {hp.name = "y", hypermpmd.group = "a"}) {
    %wb = hypermpmd.transfer %w from "a" to "b" : tensor<2xf32>
    %f = hypermpmd.fragment on "a" stage 0 forward (%x) : (tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%p: tensor<2xf32>):
      %s = func.call @shared(%p) : (tensor<2xf32>) -> tensor<2xf32>
      hypermpmd.yield %s : tensor<2xf32>
    }
    %t = hypermpmd.transfer %f from "a" to "b" : tensor<2xf32>
    %g:2 = hypermpmd.fragment on "b" stage 1 forward (%t, %wb) : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    ^bb0(%p: tensor<2xf32>, %q: tensor<2xf32>):
      %s = func.call @only_b(%p, %q) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %u = func.call @inner(%s) : (tensor<2xf32>) -> tensor<2xf32>
      hypermpmd.yield %s, %u : tensor<2xf32>, tensor<2xf32>
    }
    %back = hypermpmd.transfer %g#1 from "b" to "a" : tensor<2xf32>
    %h = hypermpmd.fragment on "a" stage 0 update (%back, %w) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%p: tensor<2xf32>, %q: tensor<2xf32>):
      %s = arith.addf %p, %q : tensor<2xf32>
      hypermpmd.yield %s : tensor<2xf32>
    }
    return %g#0, %h : tensor<2xf32>, tensor<2xf32>
  }
  func.func private @shared(%x: tensor<2xf32>) -> tensor<2xf32> {
    %y = call @inner(%x) : (tensor<2xf32>) -> tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func private @only_b(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
    %z = arith.addf %x, %y : tensor<2xf32>
    return %z : tensor<2xf32>
  }
  func.func private @inner(%x: tensor<2xf32>) -> tensor<2xf32> {
    return %x : tensor<2xf32>
  }
}
