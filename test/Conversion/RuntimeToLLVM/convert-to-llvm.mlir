// Buffers come from the runtime, an assertion ends the run, and a public function has an entry of two arrays.
// RUN: hp-opt %s --hp-convert-to-llvm | FileCheck %s

// CHECK: llvm.mlir.global {{.*}} @[[$TEXT:.*]]("expected a row of the table\00")

// CHECK-LABEL: llvm.func @main(
// CHECK-SAME: %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr)
func.func @main(%a: memref<4xf32>, %b: memref<4xf32>) attributes {hp.num_results = 1 : i64} {
  // CHECK: %[[TMP:.*]] = llvm.call @hp_rt_alloc
  // CHECK: llvm.call @hp_rt_free
  %tmp = memref.alloc() : memref<4xf32>
  %c0 = arith.constant 0 : index
  %v = memref.load %a[%c0] : memref<4xf32>
  memref.store %v, %tmp[%c0] : memref<4xf32>
  %w = memref.load %tmp[%c0] : memref<4xf32>
  memref.store %w, %b[%c0] : memref<4xf32>
  memref.dealloc %tmp : memref<4xf32>
  return
}

// CHECK-LABEL: llvm.func @check
// CHECK: llvm.cond_br
// CHECK: %[[ADDRESS:.*]] = llvm.mlir.addressof @[[$TEXT]]
// CHECK: llvm.call @hp_rt_assert_fail(%[[ADDRESS]])
// CHECK: llvm.unreachable
func.func private @check(%i: i1) {
  cf.assert %i, "expected a row of the table"
  return
}

// CHECK-LABEL: llvm.func @hp_entry_main(
// CHECK-SAME: %[[ARGS:.*]]: !llvm.ptr, %[[RESULTS:.*]]: !llvm.ptr)
// CHECK: %[[FIRST:.*]] = llvm.getelementptr %[[ARGS]][0]
// CHECK: %[[A:.*]] = llvm.load %[[FIRST]]
// CHECK: %[[OUT:.*]] = llvm.getelementptr %[[RESULTS]][0]
// CHECK: %[[B:.*]] = llvm.load %[[OUT]]
// CHECK: llvm.call @main(%[[A]], %[[B]])
