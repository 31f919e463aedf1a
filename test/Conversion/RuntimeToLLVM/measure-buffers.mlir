// The most that is allocated at once, by tier: device, pinned, host, file; what is given is not counted.
// RUN: hp-opt %s --hp-measure-buffers | FileCheck %s

// A block of 100 floats takes 448 bytes, and an empty one 64.
// CHECK-LABEL: func.func private @two(
// CHECK-SAME: hp.peak_bytes = array<i64: 512, 0, 0, 0>
func.func private @two(%given: memref<1000xf32>) {
  %a = memref.alloc() : memref<100xf32>
  %b = memref.alloc() : memref<0xf32>
  memref.dealloc %b : memref<0xf32>
  memref.dealloc %a : memref<100xf32>
  return
}

// Tiers are apart, and a call comes on top of what is there.
// CHECK-LABEL: func.func @tiers(
// CHECK-SAME: hp.peak_bytes = array<i64: 576, 0, 4032, 0>
func.func @tiers(%given: memref<1000xf32>) {
  %a = memref.alloc() : memref<1000xf32, #offload.tier<pool>>
  %b = memref.alloc() : memref<3xf32>
  call @two(%given) : (memref<1000xf32>) -> ()
  memref.dealloc %b : memref<3xf32>
  %c = memref.alloc() : memref<16xf32>
  memref.dealloc %a : memref<1000xf32, #offload.tier<pool>>
  memref.dealloc %c : memref<16xf32>
  return
}

// Of a branch the larger side, of a loop one iteration.
// CHECK-LABEL: func.func @regions(
// CHECK-SAME: hp.peak_bytes = array<i64: 1088, 0, 0, 0>
func.func @regions(%condition: i1, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<16xi32>
  scf.if %condition {
    %b = memref.alloc() : memref<256xi32>
    memref.dealloc %b : memref<256xi32>
  } else {
    %b = memref.alloc() : memref<128xi32>
    memref.dealloc %b : memref<128xi32>
  }
  scf.for %i = %c0 to %n step %c1 {
    %b = memref.alloc() : memref<200xi32>
    memref.dealloc %b : memref<200xi32>
  }
  memref.dealloc %a : memref<16xi32>
  return
}

// No static peak.
// CHECK-LABEL: func.func @dynamic(
// CHECK-NOT: hp.peak_bytes
// CHECK: return
func.func @dynamic(%n: index) {
  %a = memref.alloc(%n) : memref<?xf32>
  memref.dealloc %a : memref<?xf32>
  return
}

// An arena is its function's, wherever it comes from, and is counted once.
// CHECK-LABEL: func.func @with_arena(
// CHECK-SAME: hp.peak_bytes = array<i64: 256, 0, 0, 0>
func.func @with_arena() {
  %arena = memref.alloc() {hp.arena} : memref<256xi8>
  %c64 = arith.constant 64 : index
  %part = memref.view %arena[%c64][] : memref<256xi8> to memref<128xi8>
  call @given_arena(%part) : (memref<128xi8>) -> ()
  memref.dealloc %arena : memref<256xi8>
  return
}
// CHECK-LABEL: func.func private @given_arena(
// CHECK-SAME: hp.peak_bytes = array<i64: 128, 0, 0, 0>
func.func private @given_arena(%arena: memref<128xi8> {hp.arena}) {
  return
}
