// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Streams become calls of the runtime around the calls that are on them; nothing of the dialect is left.
// RUN: hp-opt %s --convert-stream-to-runtime | FileCheck %s --implicit-check-not=stream.

// CHECK: llvm.func @hp_rt_stream_wait(i32, i64)
// CHECK: func.func private @send(memref<4xf32>)
func.func private @send(memref<4xf32> {stream.access = "read"}) attributes {stream.of = #stream.id<send>}
func.func private @all_reduce(memref<4xf32>) attributes {stream.of = #stream.id<comm, 2>}

// CHECK-LABEL: func.func @main(
func.func @main(%x: memref<4xf32>) {
  // CHECK-NEXT: %[[COMPUTE:.*]] = llvm.mlir.constant(0 : i32)
  // CHECK-NEXT: %[[BEGIN:.*]] = llvm.call @hp_rt_stream_mark(%[[COMPUTE]]) : (i32) -> i64
  %begin = stream.record <compute>
  // CHECK-NEXT: %[[SEND:.*]] = llvm.mlir.constant(4 : i32)
  // CHECK-NEXT: llvm.call @hp_rt_stream_wait(%[[SEND]], %[[BEGIN]])
  stream.wait <send> for %begin
  // CHECK: llvm.call @hp_rt_stream_begin(
  // CHECK-NEXT: call @send(
  // CHECK-NEXT: llvm.call @hp_rt_stream_end()
  stream.on <send> {
    func.call @send(%x) : (memref<4xf32>) -> ()
  }
  // CHECK-NEXT: %[[COMM:.*]] = llvm.mlir.constant(19 : i32)
  // CHECK-NEXT: llvm.call @hp_rt_stream_begin(%[[COMM]])
  stream.on <comm, 2> {
    func.call @all_reduce(%x) : (memref<4xf32>) -> ()
  }
  // Nobody waits for it.
  %unused = stream.record <comm, 2>
  // CHECK: return
  return
}
