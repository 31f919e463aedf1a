// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Programs whose streams touch no byte at the same time, one of them writing, are accepted as they are.
// RUN: hp-opt %s --stream-verify-streams | FileCheck %s

func.func private @all_reduce(memref<4xf32> {stream.access = "read"}, memref<4xf32> {stream.access = "write"})
  attributes {stream.of = #stream.id<comm>}

// Both read.
// CHECK-LABEL: func.func @readers(
// CHECK: stream.on
func.func @readers(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>) {
  %begin = stream.record <compute>
  stream.wait <comm> for %begin
  stream.on <comm> {
    func.call @all_reduce(%x, %y) : (memref<4xf32>, memref<4xf32>) -> ()
  }
  memref.copy %x, %z : memref<4xf32> to memref<4xf32>
  %done = stream.record <comm>
  stream.wait <compute> for %done
  return
}

// Other bytes of one arena.
// CHECK-LABEL: func.func private @apart(
// CHECK: stream.on
func.func private @apart(%arena: memref<192xi8> {hp.arena}, %x: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %a = memref.view %arena[%c0][] : memref<192xi8> to memref<4xf32>
  %b = memref.view %arena[%c64][] : memref<192xi8> to memref<4xf32>
  %c = memref.view %arena[%c128][] : memref<192xi8> to memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  %made = stream.record <compute>
  stream.wait <comm> for %made
  stream.on <comm> {
    func.call @all_reduce(%a, %b) : (memref<4xf32>, memref<4xf32>) -> ()
  }
  memref.copy %x, %c : memref<4xf32> to memref<4xf32>
  %done = stream.record <comm>
  stream.wait <compute> for %done
  memref.copy %b, %a : memref<4xf32> to memref<4xf32>
  return
}
