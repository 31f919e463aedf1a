// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Messages become calls with the blocks of all devices of the group; the peer's ranks become ordinals, by its mesh's order.
// RUN: hp-opt %s --hp-convert-hypermpmd-to-runtime | FileCheck %s

// CHECK-NOT: hypermpmd
// CHECK: llvm.mlir.global private constant @hp_words_{{.*}}(dense<[0, 3, 0, 2, 1, 2, 2, 2]> : tensor<8xi64>)
module attributes {hypermpmd.group = "a", hypermpmd.topology = #hypermpmd.topology<"a" = <["tp"=2]>, "b" = <["tp"=2], device_ids=[1, 0]>>} {
  // CHECK-LABEL: func.func @main(
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    // CHECK: %[[B:.*]] = bufferization.to_buffer %{{.*}} read_only
    // CHECK: call @send(%[[B]]) : (memref<4xf32>) -> ()
    hypermpmd.send %x to "b" tag 5 route [0, 0, 0, 2, 1, 1, 2, 2] : tensor<4xf32>
    // CHECK: %[[R:.*]] = memref.alloc() {alignment = 64 : i64} : memref<4xf32>
    // CHECK: call @recv(%[[R]]) : (memref<4xf32>) -> ()
    // CHECK: %[[T:.*]] = bufferization.to_tensor %[[R]] restrict writable
    %r = hypermpmd.recv from "b" tag 6 route [0, 1, 0, 4] : tensor<4xf32>
    // CHECK: return %[[T]]
    return %r : tensor<4xf32>
  }
  // CHECK: func.func private @send(
  // CHECK: llvm.call @hp_rt_send_blocks(
  // CHECK: func.func private @recv(
  // CHECK: llvm.call @hp_rt_recv_blocks(
}
