// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Programs whose messages meet pass as they are.
// RUN: hp-opt %s --hypermpmd-verify-programs | FileCheck %s

#t = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>
// CHECK: module attributes {hypermpmd.topology
module attributes {hypermpmd.topology = #t} {
  // CHECK: module @a
  module @a attributes {hypermpmd.group = "a"} {
    func.func @main(%x: tensor<2xf32>) {
      // CHECK: hypermpmd.send
      hypermpmd.send %x to "b" tag 0 : tensor<2xf32>
      %r = hypermpmd.recv from "b" tag 0 : tensor<2xf32>
      return
    }
  }
  module @b attributes {hypermpmd.group = "b"} {
    func.func @main() {
      %r = hypermpmd.recv from "a" tag 0 : tensor<2xf32>
      hypermpmd.send %r to "a" tag 0 : tensor<2xf32>
      return
    }
  }
}
