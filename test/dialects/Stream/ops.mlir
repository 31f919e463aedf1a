// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every op, attribute and type of the dialect survives text and bytecode.
// RUN: hp-opt %s | hp-opt | FileCheck %s
// RUN: hp-opt %s --emit-bytecode | hp-opt | FileCheck %s

// CHECK: func.func private @all_reduce(memref<4xf32> {stream.access = "read"}, memref<4xf32> {stream.access = "write"}) attributes {stream.of = #stream.id<comm, 1>}
func.func private @all_reduce(memref<4xf32> {stream.access = "read"}, memref<4xf32> {stream.access = "write"})
  attributes {stream.of = #stream.id<comm, 1>}

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[X:.*]]: memref<4xf32>, %[[Y:.*]]: memref<4xf32>)
func.func @main(%x: memref<4xf32>, %y: memref<4xf32>) {
  // CHECK-NEXT: %[[MADE:.*]] = stream.record <compute>
  %made = stream.record <compute>
  // CHECK-NEXT: stream.wait <comm, 1> for %[[MADE]]
  stream.wait <comm, 1> for %made
  // CHECK-NEXT: stream.on <comm, 1> {
  // CHECK-NEXT:   func.call @all_reduce(%[[X]], %[[Y]])
  // CHECK-NEXT: }
  stream.on <comm, 1> {
    func.call @all_reduce(%x, %y) : (memref<4xf32>, memref<4xf32>) -> ()
  }
  // CHECK-NEXT: %[[SUMMED:.*]] = stream.record <comm, 1>
  %summed = stream.record <comm, 1>
  // CHECK-NEXT: stream.wait <compute> for %[[SUMMED]]
  stream.wait <compute> for %summed
  return
}

// CHECK-LABEL: func.func @every_role(
// CHECK-SAME: [#stream.id<compute>, #stream.id<h2d>, #stream.id<d2h>, #stream.id<comm>, #stream.id<send>, #stream.id<recv, 2>]
// CHECK-SAME: !stream.mark
func.func @every_role() attributes {
  ids = [#stream.id<compute>, #stream.id<h2d>, #stream.id<d2h>, #stream.id<comm>, #stream.id<send>, #stream.id<recv, 2>],
  type = !stream.mark} {
  return
}
