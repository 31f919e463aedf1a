// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Buffers get places in one arena; those that live at the same time share no byte, others do.
// RUN: hp-opt %s --offload-assign-memory --offload-verify-memory --split-input-file | FileCheck %s

// The first and the last buffer are never there together. What is freed on a condition stays.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[ARG:.*]]: memref<40xf32>, %{{.*}}: i1) {
func.func @main(%arg: memref<40xf32>, %flag: i1) {
  // CHECK-NEXT: %[[ARENA:.*]] = memref.alloc() {hp.arena} : memref<384xi8>
  // CHECK-NEXT: %[[AT:.*]] = arith.constant [[#FIRST:]] : index
  // CHECK-NEXT: %[[A:.*]] = memref.view %[[ARENA]][%[[AT]]][] : memref<384xi8> to memref<40xf32>
  // CHECK-NEXT: memref.copy %[[ARG]], %[[A]]
  %a = memref.alloc() : memref<40xf32>
  memref.copy %arg, %a : memref<40xf32> to memref<40xf32>
  // CHECK-NEXT: %[[AT:.*]] = arith.constant [[#sub(192,FIRST)]] : index
  // CHECK-NEXT: %[[B:.*]] = memref.view %[[ARENA]][%[[AT]]][] : memref<384xi8> to memref<40xf32>
  // CHECK-NEXT: memref.copy %[[A]], %[[B]]
  %b = memref.alloc() : memref<40xf32>
  memref.copy %a, %b : memref<40xf32> to memref<40xf32>
  memref.dealloc %a : memref<40xf32>
  // CHECK-NEXT: %[[AT:.*]] = arith.constant [[#FIRST]] : index
  // CHECK-NEXT: %[[C:.*]] = memref.view %[[ARENA]][%[[AT]]][] : memref<384xi8> to memref<40xf32>
  // CHECK-NEXT: memref.copy %[[B]], %[[C]]
  %c = memref.alloc() : memref<40xf32>
  memref.copy %b, %c : memref<40xf32> to memref<40xf32>
  memref.copy %c, %arg : memref<40xf32> to memref<40xf32>
  memref.dealloc %c : memref<40xf32>
  memref.dealloc %b : memref<40xf32>
  // CHECK: %[[D:.*]] = memref.alloc() : memref<40xf32>
  %d = memref.alloc() : memref<40xf32>
  scf.if %flag {
    // CHECK: memref.dealloc %[[D]]
    memref.dealloc %d : memref<40xf32>
  }
  // CHECK: memref.dealloc %[[ARENA]]
  // CHECK-NEXT: return
  return
}

// -----

// A call's arena is a part of its caller's, as long as the call lasts; a function that is called twice has one.
// CHECK-LABEL: func.func @main(
func.func @main(%arg: memref<16xf32>) {
  // CHECK-NEXT: %[[ARENA:.*]] = memref.alloc() {hp.arena} : memref<128xi8>
  // CHECK: %[[A:.*]] = memref.view %[[ARENA]][%{{.*}}][] : memref<128xi8> to memref<16xf32>
  %a = memref.alloc() : memref<16xf32>
  memref.copy %arg, %a : memref<16xf32> to memref<16xf32>
  // CHECK: %[[INNER:.*]] = memref.view %[[ARENA]][%{{.*}}][] : memref<128xi8> to memref<64xi8>
  // CHECK-NEXT: call @block(%[[A]], %[[INNER]]) : (memref<16xf32>, memref<64xi8>) -> ()
  func.call @block(%a) : (memref<16xf32>) -> ()
  memref.dealloc %a : memref<16xf32>
  // CHECK: %[[AGAIN:.*]] = memref.view %[[ARENA]][%{{.*}}][] : memref<128xi8> to memref<64xi8>
  // CHECK-NEXT: call @block(%{{.*}}, %[[AGAIN]])
  func.call @block(%arg) : (memref<16xf32>) -> ()
  return
}
// CHECK: func.func private @block(%{{.*}}: memref<16xf32>, %[[GIVEN:.*]]: memref<64xi8> {hp.arena}) {
func.func private @block(%x: memref<16xf32>) {
  // CHECK-NOT: memref.alloc
  // CHECK: memref.view %[[GIVEN]]
  %t = memref.alloc() : memref<16xf32>
  memref.copy %x, %t : memref<16xf32> to memref<16xf32>
  memref.copy %t, %x : memref<16xf32> to memref<16xf32>
  memref.dealloc %t : memref<16xf32>
  return
}

// -----

// Branches may use the same bytes, but none of what lives across them (case 17); loops reuse theirs in each iteration; each
// tier has an arena of its own.
// CHECK-LABEL: func.func @main(
func.func @main(%arg: memref<16xf32>, %flag: i1, %n: index) {
  // CHECK-NEXT: %[[POOL:.*]] = memref.alloc() {hp.arena} : memref<64xi8, #offload.tier<pool>>
  // CHECK-NEXT: %[[ARENA:.*]] = memref.alloc() {hp.arena} : memref<128xi8>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: arith.constant 1 : index
  // CHECK-NEXT: %[[AT:.*]] = arith.constant [[#TAKEN:]] : index
  // CHECK: memref.view %[[ARENA]][%[[AT]]]
  %outer = memref.alloc() : memref<16xf32>
  memref.copy %arg, %outer : memref<16xf32> to memref<16xf32>
  scf.if %flag {
    // CHECK: arith.constant [[#FREE:sub(64,TAKEN)]] : index
    // CHECK: memref.view %[[ARENA]]
    %t = memref.alloc() : memref<16xf32>
    memref.copy %outer, %t : memref<16xf32> to memref<16xf32>
    memref.dealloc %t : memref<16xf32>
  } else {
    // CHECK: arith.constant [[#FREE]] : index
    // CHECK: memref.view %[[ARENA]]
    %e = memref.alloc() : memref<16xf32>
    memref.copy %outer, %e : memref<16xf32> to memref<16xf32>
    memref.dealloc %e : memref<16xf32>
  }
  scf.for %i = %c0 to %n step %c1 {
    // CHECK: scf.for
    // CHECK: arith.constant [[#FREE]] : index
    // CHECK: memref.view %[[ARENA]]
    %l = memref.alloc() : memref<16xf32>
    memref.copy %outer, %l : memref<16xf32> to memref<16xf32>
    memref.dealloc %l : memref<16xf32>
  }
  // CHECK: memref.view %[[POOL]]
  %below = memref.alloc() : memref<16xf32, #offload.tier<pool>>
  memref.copy %outer, %below : memref<16xf32> to memref<16xf32, #offload.tier<pool>>
  memref.dealloc %below : memref<16xf32, #offload.tier<pool>>
  memref.copy %outer, %arg : memref<16xf32> to memref<16xf32>
  memref.dealloc %outer : memref<16xf32>
  return
}

// -----

// Three weights are streamed through two slots: the third goes where the first was, which has been used by then and whose
// copy has been waited for (cases 5 and 6).
// CHECK-LABEL: func.func @streamed(
func.func @streamed(%w: memref<3x16xf32, #offload.tier<pool>>, %x: memref<16xf32>) {
  // CHECK-NEXT: %[[ARENA:.*]] = memref.alloc() {hp.arena} : memref<128xi8>
  // CHECK: arith.constant [[#FIRST:]] : index
  // CHECK-NEXT: %[[A:.*]] = memref.view %[[ARENA]]
  // CHECK-NEXT: call @prefetch(%{{.*}}, %[[A]])
  %a = memref.alloc() : memref<16xf32>
  %fa = func.call @prefetch(%w, %a) : (memref<3x16xf32, #offload.tier<pool>>, memref<16xf32>) -> !llvm.ptr
  // CHECK: arith.constant [[#sub(64,FIRST)]] : index
  // CHECK-NEXT: %[[B:.*]] = memref.view %[[ARENA]]
  // CHECK-NEXT: call @prefetch(%{{.*}}, %[[B]])
  %b = memref.alloc() : memref<16xf32>
  %fb = func.call @prefetch(%w, %b) : (memref<3x16xf32, #offload.tier<pool>>, memref<16xf32>) -> !llvm.ptr
  func.call @wait_for_copy(%fa, %w, %a) : (!llvm.ptr, memref<3x16xf32, #offload.tier<pool>>, memref<16xf32>) -> ()
  memref.copy %a, %x : memref<16xf32> to memref<16xf32>
  memref.dealloc %a : memref<16xf32>
  // CHECK: arith.constant [[#FIRST]] : index
  // CHECK-NEXT: %[[C:.*]] = memref.view %[[ARENA]]
  // CHECK-NEXT: call @prefetch(%{{.*}}, %[[C]])
  %c = memref.alloc() : memref<16xf32>
  %fc = func.call @prefetch(%w, %c) : (memref<3x16xf32, #offload.tier<pool>>, memref<16xf32>) -> !llvm.ptr
  func.call @wait_for_copy(%fb, %w, %b) : (!llvm.ptr, memref<3x16xf32, #offload.tier<pool>>, memref<16xf32>) -> ()
  memref.copy %b, %x : memref<16xf32> to memref<16xf32>
  memref.dealloc %b : memref<16xf32>
  func.call @wait_for_copy(%fc, %w, %c) : (!llvm.ptr, memref<3x16xf32, #offload.tier<pool>>, memref<16xf32>) -> ()
  memref.copy %c, %x : memref<16xf32> to memref<16xf32>
  memref.dealloc %c : memref<16xf32>
  return
}
func.func private @prefetch(memref<3x16xf32, #offload.tier<pool>>, memref<16xf32>) -> !llvm.ptr
func.func private @wait_for_copy(!llvm.ptr, memref<3x16xf32, #offload.tier<pool>>, memref<16xf32>)

// -----

// A function of which pieces run at the same time has memory of its own in each, not a part of its caller's.
// CHECK-LABEL: func.func @main(
func.func @main(%arg: memref<16xf32>, %n: index) {
  // CHECK-NEXT: call @pieces(%{{.*}}, %{{.*}}) {hp.parallel_grain = 1 : i64} : (memref<16xf32>, index) -> ()
  func.call @pieces(%arg, %n) {hp.parallel_grain = 1 : i64} : (memref<16xf32>, index) -> ()
  return
}
// CHECK: func.func private @pieces(%{{.*}}: memref<16xf32>, %{{.*}}: index) {
func.func private @pieces(%x: memref<16xf32>, %n: index) {
  // CHECK-NEXT: memref.alloc() {hp.arena} : memref<64xi8>
  %t = memref.alloc() : memref<16xf32>
  memref.copy %x, %t : memref<16xf32> to memref<16xf32>
  memref.copy %t, %x : memref<16xf32> to memref<16xf32>
  memref.dealloc %t : memref<16xf32>
  return
}

// -----

// Nothing to place: nothing changes.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: memref.copy
// CHECK-NEXT: return
func.func @main(%arg: memref<16xf32>, %result: memref<16xf32>) {
  memref.copy %arg, %result : memref<16xf32> to memref<16xf32>
  return
}
