// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small transfers of one moment are one packet on both sides; a large one, one behind a computation, and one that is
// received at another moment are not in it.
// RUN: hp-opt %s --hypermpmd-merge-transfers | FileCheck %s

#t = #hypermpmd.topology<"a" = <["dp"=1]>, "b" = <["dp"=1]>>
module attributes {hypermpmd.topology = #t} {
  module @a attributes {hypermpmd.group = "a", hypermpmd.topology = #t} {
    func.func @main(%x: tensor<4xf32>, %y: tensor<2x2xf32>, %large: tensor<4194304xf32>) -> tensor<4xf32> {
      // CHECK: hypermpmd.send %arg0 to "b" tag 0 route [0, 0, 0, 4] {hp.packet = array<i64: 0, 0>}
      hypermpmd.send %x to "b" tag 0 route [0, 0, 0, 4] : tensor<4xf32>
      // CHECK-NEXT: hypermpmd.send %arg2 to "b" tag 1 route [0, 0, 0, 4194304] : tensor<4194304xf32>
      hypermpmd.send %large to "b" tag 1 route [0, 0, 0, 4194304] : tensor<4194304xf32>
      // CHECK-NEXT: tensor.collapse_shape
      %v = tensor.collapse_shape %y [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
      // CHECK-NEXT: hypermpmd.send %{{.*}} to "b" tag 2 route [0, 0, 0, 4] {hp.packet = array<i64: 0, 1>}
      hypermpmd.send %v to "b" tag 2 route [0, 0, 0, 4] : tensor<4xf32>
      // CHECK-NEXT: hypermpmd.send %{{.*}} to "b" tag 3 route [0, 0, 0, 4] : tensor<4xf32>
      hypermpmd.send %v to "b" tag 3 route [0, 0, 0, 4] : tensor<4xf32>
      %z = math.exp %x : tensor<4xf32>
      // CHECK: hypermpmd.send %{{.*}} to "b" tag 4 route [0, 0, 0, 4] : tensor<4xf32>
      hypermpmd.send %z to "b" tag 4 route [0, 0, 0, 4] : tensor<4xf32>
      return %z : tensor<4xf32>
    }
  }
  module @b attributes {hypermpmd.group = "b", hypermpmd.topology = #t} {
    func.func @main() -> (tensor<4xf32>, tensor<4194304xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
      // CHECK: hypermpmd.recv from "a" tag 0 route [0, 0, 0, 4] {hp.packet = array<i64: 0, 0>}
      %0 = hypermpmd.recv from "a" tag 0 route [0, 0, 0, 4] : tensor<4xf32>
      // CHECK-NEXT: hypermpmd.recv from "a" tag 1 route [0, 0, 0, 4194304] : tensor<4194304xf32>
      %1 = hypermpmd.recv from "a" tag 1 route [0, 0, 0, 4194304] : tensor<4194304xf32>
      // CHECK-NEXT: hypermpmd.recv from "a" tag 2 route [0, 0, 0, 4] {hp.packet = array<i64: 0, 1>}
      %2 = hypermpmd.recv from "a" tag 2 route [0, 0, 0, 4] : tensor<4xf32>
      %e = math.exp %0 : tensor<4xf32>
      // CHECK: hypermpmd.recv from "a" tag 3 route [0, 0, 0, 4] : tensor<4xf32>
      %3 = hypermpmd.recv from "a" tag 3 route [0, 0, 0, 4] : tensor<4xf32>
      // CHECK-NEXT: hypermpmd.recv from "a" tag 4 route [0, 0, 0, 4] : tensor<4xf32>
      %4 = hypermpmd.recv from "a" tag 4 route [0, 0, 0, 4] : tensor<4xf32>
      return %e, %1, %2, %3, %4 : tensor<4xf32>, tensor<4194304xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    }
  }
}
