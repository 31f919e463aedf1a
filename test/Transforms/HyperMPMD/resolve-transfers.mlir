// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Routes between two layouts: one device to three, uneven; copies share the work; what two devices hold goes to both.
// RUN: hp-opt %s --hypermpmd-resolve-transfers | FileCheck %s

#t = #hypermpmd.topology<"a" = <["dp"=2]>, "b" = <["tp"=3]>>
module attributes {hypermpmd.topology = #t} {
  module @a attributes {hypermpmd.group = "a"} {
    hypershard.mesh @mesh = <["dp"=2]>
    func.func @main(%x: tensor<7x2xf32> {hypershard.sharding = #hypershard.sharding<@mesh, [{"dp"}, {}]>},
                    %y: tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@mesh, [{}]>}) {
      // Rows 0..3 are on device 0, 4..6 on device 1. The receivers hold 3, 3 and 1.
      // CHECK: hypermpmd.send %{{.*}} to "b" tag 0 route [0, 0, 0, 0, 3, 2, 0, 1, 3, 0, 1, 2, 1, 1, 0, 0, 2, 2, 1, 2, 2, 0, 1, 2]
      hypermpmd.send %x to "b" tag 0 : tensor<7x2xf32>
      // Both have all of it: device 0 sends to two receivers, device 1 to one.
      // CHECK: hypermpmd.send %{{.*}} to "b" tag 1 route [0, 0, 0, 4, 0, 2, 0, 4, 1, 1, 0, 4]
      hypermpmd.send %y to "b" tag 1 : tensor<4xf32>
      return
    }
  }
  module @b attributes {hypermpmd.group = "b"} {
    hypershard.mesh @mesh = <["tp"=3]>
    func.func @main() {
      // CHECK: hypermpmd.recv from "a" tag 0 route [0, 0, 0, 0, 3, 2, 1, 0, 0, 0, 1, 2, 1, 1, 1, 0, 2, 2, 2, 1, 0, 0, 1, 2]
      %r = hypermpmd.recv from "a" tag 0 {hypershard.sharding = #hypershard.sharding<@mesh, [{"tp"}, {}]>} : tensor<7x2xf32>
      // CHECK: hypermpmd.recv from "a" tag 1 route [0, 0, 0, 4, 1, 1, 0, 4, 2, 0, 0, 4]
      %s = hypermpmd.recv from "a" tag 1 {hypershard.sharding = #hypershard.sharding<@mesh, [{}]>} : tensor<4xf32>
      return
    }
  }
}
