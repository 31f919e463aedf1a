// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Programs whose messages meet pass as they are; what travels together is sent with the last and received with the first.
// RUN: hp-opt %s --hypermpmd-verify-programs --split-input-file | FileCheck %s

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

// -----

#t = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>, "c" = <["tp"=1]>>
module attributes {hypermpmd.topology = #t} {
  // CHECK: module @a attributes
  module @a attributes {hypermpmd.group = "a"} {
    func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) {
      // CHECK: hypermpmd.send %{{.*}} {hp.packet = array<i64: 0, 0>}
      hypermpmd.send %x to "b" tag 0 {hp.packet = array<i64: 0, 0>} : tensor<2xf32>
      hypermpmd.send %x to "c" tag 0 : tensor<2xf32>
      hypermpmd.send %y to "b" tag 1 {hp.packet = array<i64: 0, 1>} : tensor<2xf32>
      return
    }
  }
  module @b attributes {hypermpmd.group = "b"} {
    func.func @main() {
      %z = hypermpmd.recv from "c" tag 0 : tensor<2xf32>
      %x = hypermpmd.recv from "a" tag 0 {hp.packet = array<i64: 0, 0>} : tensor<2xf32>
      %y = hypermpmd.recv from "a" tag 1 {hp.packet = array<i64: 0, 1>} : tensor<2xf32>
      return
    }
  }
  module @c attributes {hypermpmd.group = "c"} {
    func.func @main() {
      %x = hypermpmd.recv from "a" tag 0 : tensor<2xf32>
      hypermpmd.send %x to "b" tag 0 : tensor<2xf32>
      return
    }
  }
}
