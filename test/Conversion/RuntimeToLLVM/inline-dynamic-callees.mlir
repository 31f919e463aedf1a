// A function on buffers of dynamic shape is written where it is called.
// RUN: hp-opt %s --split-input-file --hp-inline-dynamic-callees | FileCheck %s

// CHECK-NOT: func.func private @count
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[LONG:.*]]: memref<4xindex>, %[[SHORT:.*]]: memref<2xindex>, %[[FLAG:.*]]: i1
// CHECK: %[[LIST:.*]] = memref.cast %[[LONG]]
// CHECK: %[[LENGTH:.*]] = memref.dim %[[LIST]]
// CHECK: %[[FIRST:.*]] = arith.select %[[FLAG]], %[[LENGTH]]
// CHECK: %[[LIST2:.*]] = memref.cast %[[SHORT]]
// CHECK: %[[LENGTH2:.*]] = memref.dim %[[LIST2]]
// CHECK: %[[SECOND:.*]] = arith.select %[[FLAG]], %[[LENGTH2]]
// CHECK: arith.addi %[[FIRST]], %[[SECOND]]
// CHECK-NOT: @count
func.func private @count(%list: memref<?xindex>, %flag: i1) -> index {
  %zero = arith.constant 0 : index
  %length = memref.dim %list, %zero : memref<?xindex>
  %result = arith.select %flag, %length, %zero : index
  return %result : index
}
func.func @main(%long: memref<4xindex>, %short: memref<2xindex>, %flag: i1) -> index {
  %a = memref.cast %long : memref<4xindex> to memref<?xindex>
  %0 = func.call @count(%a, %flag) : (memref<?xindex>, i1) -> index
  %b = memref.cast %short : memref<2xindex> to memref<?xindex>
  %1 = func.call @count(%b, %flag) : (memref<?xindex>, i1) -> index
  %2 = arith.addi %0, %1 : index
  return %2 : index
}

// -----

// Static shapes stay calls, and so does what is defined elsewhere.
// CHECK-LABEL: func.func private @elsewhere(memref<?xf32>)
// CHECK-LABEL: func.func private @static(
// CHECK-LABEL: func.func @main(
// CHECK: call @static
// CHECK: call @elsewhere
func.func private @elsewhere(memref<?xf32>)
func.func private @static(%list: memref<3xf32>) {
  return
}
func.func @main(%list: memref<3xf32>, %any: memref<3xf32>) {
  call @static(%list) : (memref<3xf32>) -> ()
  %cast = memref.cast %any : memref<3xf32> to memref<?xf32>
  call @elsewhere(%cast) : (memref<?xf32>) -> ()
  return
}
