// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What travels together is one call, with the pointers on the stack and everything else in one table: the number of
// tensors, then of each its rank, bytes of an element, number of blocks, shape and blocks.
// RUN: hp-opt %s --hp-convert-hypermpmd-to-runtime | FileCheck %s

// CHECK: llvm.mlir.global private constant @hp_words_{{.*}}(dense<[2, 1, 4, 1, 4, 0, 1, 0, 4, 2, 8, 1, 2, 2, 0, 1, 0, 0, 2, 2]> : tensor<20xi64>)
module attributes {hypermpmd.group = "a", hypermpmd.topology = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>} {
  // CHECK-LABEL: func.func @main(
  func.func @main(%x: tensor<4xf32>, %y: tensor<2x2xf64>) -> (tensor<4xf32>, tensor<4xf32>) {
    // CHECK: call @send(%{{.*}}, %{{.*}}) : (memref<4xf32>, memref<2x2xf64>) -> ()
    hypermpmd.send %x to "b" tag 5 route [0, 0, 0, 4] {hp.packet = array<i64: 0, 0>} : tensor<4xf32>
    hypermpmd.send %y to "b" tag 6 route [0, 0, 0, 0, 2, 2] {hp.packet = array<i64: 0, 1>} : tensor<2x2xf64>
    // CHECK: call @recv(%{{.*}}, %{{.*}}) : (memref<4xf32>, memref<4xf32>) -> ()
    %0 = hypermpmd.recv from "b" tag 7 route [0, 0, 0, 4] {hp.packet = array<i64: 1, 0>} : tensor<4xf32>
    %1 = hypermpmd.recv from "b" tag 8 route [0, 0, 0, 4] {hp.packet = array<i64: 1, 1>} : tensor<4xf32>
    return %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
  // CHECK: func.func private @send(%{{.*}}: memref<4xf32> {stream.access = "read"}, %{{.*}}: memref<2x2xf64> {stream.access = "read"}) attributes {stream.of = #stream.id<send>}
  // CHECK: llvm.call @hp_rt_send_packet(
  // CHECK: func.func private @recv(
  // CHECK-SAME: attributes {stream.of = #stream.id<recv>}
  // CHECK: llvm.call @hp_rt_recv_packet(
}
