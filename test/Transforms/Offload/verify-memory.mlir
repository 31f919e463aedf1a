// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Buffers that share bytes at different times, or live together at different bytes, are accepted as they are.
// RUN: hp-opt %s --offload-verify-memory | FileCheck %s

// CHECK-LABEL: func.func private @apart(
// CHECK-COUNT-3: memref.view
func.func private @apart(%arena: memref<128xi8> {hp.arena}, %x: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %a = memref.view %arena[%c0][] : memref<128xi8> to memref<16xf32>
  memref.copy %x, %a : memref<16xf32> to memref<16xf32>
  %b = memref.view %arena[%c64][] : memref<128xi8> to memref<16xf32>
  memref.copy %a, %b : memref<16xf32> to memref<16xf32>
  %c = memref.view %arena[%c0][] : memref<128xi8> to memref<16xf32>
  memref.copy %b, %c : memref<16xf32> to memref<16xf32>
  return
}

// Branches of one op never run both.
// CHECK-LABEL: func.func private @branches(
func.func private @branches(%arena: memref<64xi8> {hp.arena}, %x: memref<16xf32>, %flag: i1) {
  %c0 = arith.constant 0 : index
  scf.if %flag {
    %a = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
    memref.copy %x, %a : memref<16xf32> to memref<16xf32>
  } else {
    %b = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
    memref.copy %x, %b : memref<16xf32> to memref<16xf32>
  }
  return
}
