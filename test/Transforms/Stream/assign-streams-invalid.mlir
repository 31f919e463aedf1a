// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass refuses nothing: calls of which it cannot tell what they touch, and calls where the order of ops is that of
// no block, stay where they are.
// RUN: hp-opt %s --stream-assign-streams --verify-diagnostics | FileCheck %s

func.func private @send(memref<4xf32> {stream.access = "read"}) attributes {stream.of = #stream.id<send>}
func.func private @work(memref<4xf32>)

// CHECK-LABEL: func.func @unknown_memory(
// CHECK-NOT: stream.on
func.func @unknown_memory(%x: memref<4xf32>, %y: memref<4xf32>, %flag: i1) {
  %either = arith.select %flag, %x, %y : memref<4xf32>
  func.call @send(%either) : (memref<4xf32>) -> ()
  func.call @work(%y) : (memref<4xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @jumps(
// CHECK-NOT: stream.on
func.func @jumps(%x: memref<4xf32>, %y: memref<4xf32>, %flag: i1) {
  cf.cond_br %flag, ^one, ^other
^one:
  func.call @send(%x) : (memref<4xf32>) -> ()
  func.call @work(%y) : (memref<4xf32>) -> ()
  cf.br ^other
^other:
  return
}

// CHECK-LABEL: func.func @parallel(
// CHECK-NOT: stream.on
func.func @parallel(%x: memref<4xf32>, %y: memref<4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    func.call @send(%x) : (memref<4xf32>) -> ()
    func.call @work(%y) : (memref<4xf32>) -> ()
  }
  return
}
