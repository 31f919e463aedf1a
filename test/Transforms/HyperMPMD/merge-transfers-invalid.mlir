// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass refuses nothing: a send that nobody receives is another pass's to refuse, and stays as it is.
// RUN: hp-opt %s --hypermpmd-merge-transfers --verify-diagnostics | FileCheck %s

#t = #hypermpmd.topology<"a" = <["dp"=1]>, "b" = <["dp"=1]>>
module attributes {hypermpmd.topology = #t} {
  module @a attributes {hypermpmd.group = "a", hypermpmd.topology = #t} {
    func.func @main(%x: tensor<4xf32>) {
      // CHECK: hypermpmd.send %arg0 to "b" tag 0 : tensor<4xf32>
      hypermpmd.send %x to "b" tag 0 : tensor<4xf32>
      // CHECK: hypermpmd.send %arg0 to "b" tag 1 : tensor<4xf32>
      hypermpmd.send %x to "b" tag 1 : tensor<4xf32>
      return
    }
  }
}
