// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls go on streams; waits are those that data and reused memory need, and none that follows from others.
// RUN: hp-opt %s --split-input-file --stream-assign-streams | FileCheck %s
// What was assigned is in order.
// RUN: hp-opt %s --split-input-file --stream-assign-streams --stream-verify-streams --offload-assign-memory \
// RUN:   --offload-verify-memory --stream-verify-streams -o /dev/null

func.func private @all_reduce(memref<4xf32> {stream.access = "read"}, memref<4xf32> {stream.access = "write"})
  attributes {stream.of = #stream.id<comm>}
func.func private @work(memref<4xf32>)

// The reduction runs beside the work, its operand is freed when it was waited for.
// CHECK-LABEL: func.func @beside(
// CHECK-SAME:    %[[X:.*]]: memref<4xf32>, %[[Y:.*]]: memref<4xf32>)
func.func @beside(%x: memref<4xf32>, %y: memref<4xf32>) {
  // CHECK-NEXT: %[[G:.*]] = memref.alloc()
  %g = memref.alloc() : memref<4xf32>
  // CHECK-NEXT: memref.copy %[[X]], %[[G]]
  memref.copy %x, %g : memref<4xf32> to memref<4xf32>
  // CHECK-NEXT: %[[SUM:.*]] = memref.alloc()
  // CHECK-NEXT: %[[MADE:.*]] = stream.record <compute>
  // CHECK-NEXT: stream.wait <comm> for %[[MADE]]
  // CHECK-NEXT: stream.on <comm> {
  // CHECK-NEXT:   @all_reduce(%[[G]], %[[SUM]])
  // CHECK-NEXT: }
  // CHECK-NEXT: %[[DONE:.*]] = stream.record <comm>
  %sum = memref.alloc() : memref<4xf32>
  func.call @all_reduce(%g, %sum) : (memref<4xf32>, memref<4xf32>) -> ()
  memref.dealloc %g : memref<4xf32>
  // CHECK-NEXT: call @work(%[[X]])
  func.call @work(%x) : (memref<4xf32>) -> ()
  // CHECK-NEXT: stream.wait <compute> for %[[DONE]]
  // CHECK-NEXT: memref.dealloc %[[G]]
  // CHECK-NEXT: memref.copy %[[SUM]], %[[Y]]
  // CHECK-NEXT: memref.dealloc %[[SUM]]
  memref.copy %sum, %y : memref<4xf32> to memref<4xf32>
  memref.dealloc %sum : memref<4xf32>
  // CHECK-NEXT: return
  return
}

// Where its result is read at once it stays where it is.
// CHECK-LABEL: func.func @nothing_meanwhile(
// CHECK-NOT: stream
// CHECK: return
func.func @nothing_meanwhile(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>) {
  func.call @all_reduce(%x, %y) : (memref<4xf32>, memref<4xf32>) -> ()
  memref.copy %y, %z : memref<4xf32> to memref<4xf32>
  func.call @work(%z) : (memref<4xf32>) -> ()
  return
}

// What writes over its operand waits, too.
// CHECK-LABEL: func.func @written_over(
// CHECK: %[[DONE:.*]] = stream.record <comm>
// CHECK-NEXT: call @work(%arg2)
// CHECK-NEXT: stream.wait <compute> for %[[DONE]]
// CHECK-NEXT: call @work(%arg0)
// CHECK-NEXT: return
func.func @written_over(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>) {
  func.call @all_reduce(%x, %y) : (memref<4xf32>, memref<4xf32>) -> ()
  func.call @work(%z) : (memref<4xf32>) -> ()
  func.call @work(%x) : (memref<4xf32>) -> ()
  return
}

// -----

func.func private @gather(memref<4xf32> {stream.access = "read"}, memref<4xf32> {stream.access = "write"})
  attributes {stream.of = #stream.id<comm, 1>}
func.func private @send(memref<4xf32> {stream.access = "read"}) attributes {stream.of = #stream.id<send>}
func.func private @recv(memref<4xf32> {stream.access = "write"}) attributes {stream.of = #stream.id<recv>}
func.func private @work(memref<4xf32>)

// From stream to stream: what is received is gathered and sent on, and the computation waits for none of it but the
// last; that the receive is done follows.
// CHECK-LABEL: func.func @chain(
func.func @chain(%x: memref<4xf32>, %a: memref<4xf32>, %b: memref<4xf32>) {
  // CHECK: stream.on <recv> {
  // CHECK: %[[CAME:.*]] = stream.record <recv>
  func.call @recv(%a) : (memref<4xf32>) -> ()
  // CHECK-NEXT: stream.wait <comm, 1> for %[[CAME]]
  // CHECK-NEXT: stream.on <comm, 1> {
  // CHECK: %[[WHOLE:.*]] = stream.record <comm, 1>
  func.call @gather(%a, %b) : (memref<4xf32>, memref<4xf32>) -> ()
  // CHECK-NEXT: stream.wait <send> for %[[WHOLE]]
  // CHECK-NEXT: stream.on <send> {
  // CHECK: %[[SENT:.*]] = stream.record <send>
  func.call @send(%b) : (memref<4xf32>) -> ()
  // CHECK-NEXT: call @work(%arg0)
  func.call @work(%x) : (memref<4xf32>) -> ()
  // CHECK-NEXT: stream.wait <compute> for %[[SENT]]
  // CHECK-NEXT: call @work(%arg2)
  func.call @work(%b) : (memref<4xf32>) -> ()
  // CHECK-NEXT: return
  return
}

// Nothing is under way at the end of an iteration.
// CHECK-LABEL: func.func @loop(
func.func @loop(%x: memref<4xf32>, %a: memref<4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: scf.for
  scf.for %i = %c0 to %n step %c1 {
    // CHECK: stream.on <send> {
    // CHECK: %[[SENT:.*]] = stream.record <send>
    func.call @send(%a) : (memref<4xf32>) -> ()
    // CHECK-NEXT: call @work(%arg0)
    func.call @work(%x) : (memref<4xf32>) -> ()
    // CHECK-NEXT: stream.wait <compute> for %[[SENT]]
    // CHECK-NEXT: }
  }
  return
}

// -----

// A program that is to be synchronous is left alone.
module attributes {hp.synchronous} {
  func.func private @send(memref<4xf32> {stream.access = "read"}) attributes {stream.of = #stream.id<send>}
  func.func private @work(memref<4xf32>)
  // CHECK-LABEL: func.func @in_order(
  // CHECK-NOT: stream.on
  func.func @in_order(%x: memref<4xf32>, %a: memref<4xf32>) {
    func.call @send(%a) : (memref<4xf32>) -> ()
    func.call @work(%x) : (memref<4xf32>) -> ()
    return
  }
}
