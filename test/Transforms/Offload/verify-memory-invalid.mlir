// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bytes that two buffers hold at the same time, however the later use comes about.
// RUN: hp-opt %s --offload-verify-memory --split-input-file --verify-diagnostics

func.func private @overlap(%arena: memref<128xi8> {hp.arena}, %x: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  // expected-note@+1 {{and this one, which is still used, has bytes 0 to 128}}
  %a = memref.view %arena[%c0][] : memref<128xi8> to memref<32xf32>
  // expected-error@+1 {{expected buffers that live at the same time to share no byte but this one has bytes 64 to 128 of the arena}}
  %b = memref.view %arena[%c64][] : memref<128xi8> to memref<16xf32>
  memref.copy %x, %b : memref<16xf32> to memref<16xf32>
  %s = memref.subview %a[0] [16] [1] : memref<32xf32> to memref<16xf32, strided<[1]>>
  memref.copy %b, %s : memref<16xf32> to memref<16xf32, strided<[1]>>
  return
}

// -----

// A copy that is under way: its source may not be written before it has ended (case 2), nor its target be something that
// still lives (case 5).
func.func private @in_flight(%arena: memref<64xi8> {hp.arena}, %below: memref<16xf32, #offload.tier<pool>>, %x: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  // expected-note@+1 {{still used}}
  %a = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
  memref.copy %x, %a : memref<16xf32> to memref<16xf32>
  %future = func.call @store(%a, %below) : (memref<16xf32>, memref<16xf32, #offload.tier<pool>>) -> !llvm.ptr
  // expected-error@+1 {{share no byte}}
  %b = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
  memref.copy %x, %b : memref<16xf32> to memref<16xf32>
  func.call @wait_for_copy(%future, %a, %below) : (!llvm.ptr, memref<16xf32>, memref<16xf32, #offload.tier<pool>>) -> ()
  return
}
func.func private @store(memref<16xf32>, memref<16xf32, #offload.tier<pool>>) -> !llvm.ptr
func.func private @wait_for_copy(!llvm.ptr, memref<16xf32>, memref<16xf32, #offload.tier<pool>>)

// -----

// What lives around a loop lives for all of it.
func.func private @around_a_loop(%arena: memref<64xi8> {hp.arena}, %x: memref<16xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note@+1 {{still used}}
  %a = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
  scf.for %i = %c0 to %n step %c1 {
    memref.copy %x, %a : memref<16xf32> to memref<16xf32>
    // expected-error@+1 {{share no byte}}
    %b = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
    memref.copy %x, %b : memref<16xf32> to memref<16xf32>
  }
  return
}

// -----

// A value that a branch hands on is still the buffer (case 17).
func.func private @through_a_branch(%arena: memref<64xi8> {hp.arena}, %x: memref<16xf32>, %flag: i1) {
  %c0 = arith.constant 0 : index
  // expected-note@+1 {{still used}}
  %a = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
  memref.copy %x, %a : memref<16xf32> to memref<16xf32>
  %y = scf.if %flag -> memref<16xf32> {
    scf.yield %a : memref<16xf32>
  } else {
    scf.yield %x : memref<16xf32>
  }
  // expected-error@+1 {{share no byte}}
  %b = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
  memref.copy %x, %b : memref<16xf32> to memref<16xf32>
  memref.copy %y, %x : memref<16xf32> to memref<16xf32>
  return
}

// -----

// The arena of a call is in use while the call is.
func.func private @call(%arena: memref<64xi8> {hp.arena}, %x: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  // expected-note@+1 {{still used}}
  %a = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
  memref.copy %x, %a : memref<16xf32> to memref<16xf32>
  // expected-error@+1 {{share no byte}}
  %inner = memref.view %arena[%c0][] : memref<64xi8> to memref<64xi8>
  func.call @callee(%a, %inner) : (memref<16xf32>, memref<64xi8>) -> ()
  return
}
func.func private @callee(memref<16xf32>, memref<64xi8> {hp.arena})

// -----

func.func private @outside(%arena: memref<64xi8> {hp.arena}) {
  %c64 = arith.constant 64 : index
  // expected-error@+1 {{expected a buffer to lie in its arena of 64 bytes but got bytes 64 to 128}}
  %a = memref.view %arena[%c64][] : memref<64xi8> to memref<16xf32>
  return
}

// -----

func.func private @unaligned(%arena: memref<128xi8> {hp.arena}) {
  %c4 = arith.constant 4 : index
  // expected-error@+1 {{expected an offset that is a multiple of 64 but got 4}}
  %a = memref.view %arena[%c4][] : memref<128xi8> to memref<16xf32>
  return
}

// -----

func.func private @moving(%arena: memref<128xi8> {hp.arena}, %at: index) {
  // expected-error@+1 {{expected a buffer of static shape at a constant offset of its arena}}
  %a = memref.view %arena[%at][] : memref<128xi8> to memref<16xf32>
  return
}

// -----

func.func private @used_whole(%arena: memref<64xi8> {hp.arena}, %x: memref<64xi8>) {
  // expected-error@+1 {{expected an arena to be used by views alone}}
  memref.copy %x, %arena : memref<64xi8> to memref<64xi8>
  return
}

// -----

// expected-error @below {{expected an arena of static size but got 'memref<?xi8>'}}
func.func private @unknown(%arena: memref<?xi8> {hp.arena}) {
  return
}
