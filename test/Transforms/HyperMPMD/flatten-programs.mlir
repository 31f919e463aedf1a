// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The programs of all groups in one module, each with the devices that run it.
// RUN: hp-opt %s --hypermpmd-flatten-programs | FileCheck %s

#t = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=3]>>
// CHECK: module attributes {hypermpmd.topology = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=3]>>}
module attributes {hypermpmd.topology = #t} {
  // CHECK-NOT: module
  // CHECK: func.func @a(%{{.*}}: tensor<2xf32>) attributes {hypermpmd.group = "a", supernode.devices = [0, 1], supernode.program = "a"} {
  module @a attributes {hypermpmd.group = "a"} {
    func.func @main(%x: tensor<2xf32>) {
      // CHECK: %[[Y:.*]] = call @a.f(
      %y = call @f(%x) : (tensor<2xf32>) -> tensor<2xf32>
      // CHECK: hypermpmd.send %[[Y]] to "b" tag 0
      hypermpmd.send %y to "b" tag 0 : tensor<2xf32>
      return
    }
    // CHECK: func.func private @a.f(
    func.func private @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      return %x : tensor<2xf32>
    }
  }
  // CHECK: hypershard.mesh @b.mesh
  // CHECK: func.func @b() attributes {hypermpmd.group = "b", supernode.devices = [1, 3], supernode.program = "b"} {
  module @b attributes {hypermpmd.group = "b"} {
    hypershard.mesh @mesh = <["tp"=3]>
    func.func @main() {
      %r = hypermpmd.recv from "a" tag 0 : tensor<2xf32>
      // CHECK: hypershard.all_reduce %{{.*}} over @b.mesh {"tp"}
      %s = hypershard.all_reduce %r over @mesh {"tp"} <sum> : tensor<2xf32> -> tensor<2xf32>
      %t = call @f(%s) : (tensor<2xf32>) -> tensor<2xf32>
      return
    }
    // CHECK: func.func private @b.f(
    func.func private @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      return %x : tensor<2xf32>
    }
  }
}
