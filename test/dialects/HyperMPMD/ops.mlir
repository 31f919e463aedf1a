// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every op and attribute survives text, generic text and bytecode.
// RUN: hp-opt %s | hp-opt | FileCheck %s
// RUN: hp-opt %s --mlir-print-op-generic | hp-opt | FileCheck %s
// RUN: hp-opt %s --emit-bytecode | hp-opt | FileCheck %s

// CHECK: module attributes {hypermpmd.topology = #hypermpmd.topology<"enc" = <["tp"=1]>, "dec" = <["dp"=1, "tp"=3], device_ids=[2, 0, 1]>>
// CHECK-SAME: t.one = #hypermpmd.group<"enc" = <["tp"=1]>>
module attributes {hypermpmd.topology = #hypermpmd.topology<"enc" = <["tp"=1]>, "dec" = <["dp"=1, "tp"=3], device_ids=[2, 0, 1]>>,
                   t.one = #hypermpmd.group<"enc" = <["tp"=1]>>} {
  // CHECK: func.func @main(%[[X:.*]]: tensor<6xf32> {hypermpmd.groups = ["enc", "dec"]}) -> (tensor<6xf32> {hypermpmd.group = "dec"})
  func.func @main(%x: tensor<6xf32> {hypermpmd.groups = ["enc", "dec"]}) -> (tensor<6xf32> {hypermpmd.group = "dec"}) {
    // CHECK: %[[A:.*]] = hypermpmd.fragment on "enc" stage 0 microbatch 2 forward(%[[X]]) : (tensor<6xf32>) -> tensor<6xf32> {
    // CHECK: ^bb0(%[[IN:.*]]: tensor<6xf32>):
    // CHECK: hypermpmd.yield %[[IN]] : tensor<6xf32>
    %a = hypermpmd.fragment on "enc" stage 0 microbatch 2 forward (%x) : (tensor<6xf32>) -> tensor<6xf32> {
    ^bb0(%in: tensor<6xf32>):
      hypermpmd.yield %in : tensor<6xf32>
    }
    // CHECK: %[[T:.*]] = hypermpmd.transfer %[[A]] from "enc" to "dec" : tensor<6xf32>
    %t = hypermpmd.transfer %a from "enc" to "dec" : tensor<6xf32>
    // CHECK: hypermpmd.fragment on "dec" update() attributes {t.note} : () -> () {
    hypermpmd.fragment on "dec" update () attributes {t.note} : () -> () {
      hypermpmd.yield
    }
    // CHECK: math.exp %{{.*}} {hypermpmd.group = "dec", hypermpmd.microbatch = 1 : i64}
    %e = math.exp %t {hypermpmd.group = "dec", hypermpmd.microbatch = 1 : i64} : tensor<6xf32>
    return %t : tensor<6xf32>
  }
  // CHECK: module @enc attributes {hypermpmd.group = "enc"}
  module @enc attributes {hypermpmd.group = "enc"} {
    func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {
      // CHECK: hypermpmd.send %{{.*}} to "dec" tag 0 : tensor<6xf32>
      hypermpmd.send %x to "dec" tag 0 : tensor<6xf32>
      // CHECK: hypermpmd.recv from "dec" tag 3 route [0, 2, 0, 2, 0, 1, 4, 2] : tensor<6xf32>
      %r = hypermpmd.recv from "dec" tag 3 route [0, 2, 0, 2, 0, 1, 4, 2] : tensor<6xf32>
      return %r : tensor<6xf32>
    }
  }
}
