// Each product, and each operator of a library, has memory of its own while it runs; what the host does itself has none.
// RUN: hp-opt %s --split-input-file --hp-reserve-workspace | FileCheck %s
// RUN: hp-opt %s --split-input-file --hp-reserve-workspace --offload-assign-memory --offload-verify-memory --hp-launch-device-kernels | FileCheck %s --check-prefix=CALLS
// RUN: hp-opt %s --split-input-file --hp-reserve-workspace --remarks-filter=hp-reserve-workspace 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: at most 2048 bytes of workspace for 3 calls: operands and results of the largest call take 1760 bytes

// CHECK: module attributes {hp.reserved = {because = "operands and results of the largest call take 1760 bytes", bytes = 2048 : i64, calls = 3 : i64}}
module {
  func.func private @library_copy(memref<16xf32>, memref<16xf32>) attributes {hp.kernel, hp.geometry = array<i64: 1, 1>, hp.library = "copy", hp.words = array<i64: 7, 1, 16, 1, 7, 1, 16, 1>}
  func.func private @library_check(memref<i32>) attributes {hp.kernel, hp.geometry = array<i64: 1, 1>, hp.library = "check", hp.words = array<i64: 3, 0>}
  func.func private @kernel(%a: memref<16xf32>) attributes {hp.kernel, hp.geometry = array<i64: 1, 32>} {
    return
  }

  // The buffer is larger than what is told of, as back ends align it.
  // CHECK-LABEL: func.func private @block(
  // CHECK-NEXT: %[[W:.*]] = memref.alloc() {alignment = 64 : i64} : memref<2496xi8>
  // CHECK-NEXT: call @[[$TELL:.*]](%[[W]]) : (memref<2496xi8>) -> ()
  // CHECK-NEXT: linalg.matmul
  // CHECK-NEXT: call @[[$END:.*]](%[[W]]) : (memref<2496xi8>) -> ()
  // CHECK-NEXT: memref.dealloc %[[W]]
  // CHECK-NEXT: return
  func.func private @block(%a: memref<8x20xf32>, %b: memref<20x10xf32>, %c: memref<8x10xf32>) {
    linalg.matmul ins(%a, %b : memref<8x20xf32>, memref<20x10xf32>) outs(%c : memref<8x10xf32>)
    return
  }

  // It is a part of the arena, at its beginning in one function and beside what lives in another.
  // CALLS-LABEL: func.func private @block(
  // CALLS: %[[BYTES:.*]] = llvm.mlir.constant(2048 : i64)
  // CALLS: llvm.call @hp_rt_workspace(%{{.*}}, %[[BYTES]])
  // CALLS: linalg.matmul
  // CALLS: %[[NONE:.*]] = llvm.mlir.constant(0 : i64)
  // CALLS: llvm.call @hp_rt_workspace(%{{.*}}, %[[NONE]])

  // CHECK-LABEL: func.func @main(
  // CHECK: call @kernel
  // CHECK-NEXT: scf.for
  // CHECK-NEXT: %[[V:.*]] = memref.alloc() {alignment = 64 : i64} : memref<960xi8>
  // CHECK-NEXT: call @[[SMALL:.*]](%[[V]])
  // CHECK-NEXT: call @library_copy
  // CHECK-NEXT: call @{{.*}}(%[[V]])
  // CHECK-NEXT: memref.dealloc %[[V]]
  // CHECK-NEXT: }
  // CHECK-NEXT: call @library_check
  // CHECK-NEXT: call @block
  // CHECK-NEXT: memref.alloc() {alignment = 64 : i64} : memref<2496xi8>
  // CALLS-LABEL: func.func @main(
  // CALLS: memref.alloc() {hp.arena} : memref<2496xi8>
  // CALLS: llvm.mlir.constant(512 : i64)
  // CALLS: llvm.call @hp_rt_workspace
  // CALLS: llvm.call @hp_rt_library
  // CALLS: llvm.call @hp_rt_workspace
  // CALLS: llvm.call @hp_rt_library
  // CALLS-NOT: llvm.call @hp_rt_workspace
  // CALLS: call @block(
  func.func @main(%x: memref<16xf32>, %y: memref<16xf32>, %n: memref<i32>, %a: memref<8x20xf32>, %b: memref<20x10xf32>, %c: memref<8x10xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    call @kernel(%x) : (memref<16xf32>) -> ()
    scf.for %i = %c0 to %c4 step %c1 {
      func.call @library_copy(%x, %y) : (memref<16xf32>, memref<16xf32>) -> ()
    }
    call @library_check(%n) : (memref<i32>) -> ()
    call @block(%a, %b, %c) : (memref<8x20xf32>, memref<20x10xf32>, memref<8x10xf32>) -> ()
    linalg.matmul ins(%a, %b : memref<8x20xf32>, memref<20x10xf32>) outs(%c : memref<8x10xf32>)
    return
  }
  // CHECK: func.func private @[[$TELL]](memref<2496xi8> {stream.access = "write"}) attributes {hp.geometry = array<i64: 1, 1>, hp.kernel, hp.library = "workspace", hp.words = array<i64: {{.*}}, 2048>}
  // CHECK: func.func private @[[$END]](memref<2496xi8> {{.*}}hp.words = array<i64: {{.*}}, 0>}
}

// -----

// So much as is asked for, whatever the call takes.
// REMARK: at most 4096 bytes of workspace for 1 calls: as asked for
// CHECK: module attributes {hp.reserved = {because = "as asked for", bytes = 4096 : i64, calls = 1 : i64}, hp.workspace = 4000 : i64}
module attributes {hp.workspace = 4000 : i64} {
  // CHECK: memref.alloc() {alignment = 64 : i64} : memref<4544xi8>
  func.func @main(%a: memref<8x20xf32>, %b: memref<20x10xf32>, %c: memref<8x10xf32>) {
    linalg.matmul ins(%a, %b : memref<8x20xf32>, memref<20x10xf32>) outs(%c : memref<8x10xf32>)
    return
  }
}

// -----

// Without being asked no more than 32 MiB.
// REMARK: at most 33554432 bytes of workspace for 1 calls: as much as is reserved unasked, of 50331648 bytes that operands and results of a call take
// CHECK: memref.alloc() {alignment = 64 : i64} : memref<33554880xi8>
func.func @main(%a: memref<2048x2048xf32>, %b: memref<2048x2048xf32>, %c: memref<2048x2048xf32>) {
  linalg.matmul ins(%a, %b : memref<2048x2048xf32>, memref<2048x2048xf32>) outs(%c : memref<2048x2048xf32>)
  return
}

// -----

// None at all; the program is as it was.
// CHECK: module attributes {hp.workspace = 0 : i64}
// CHECK-NOT: memref.alloc
module attributes {hp.workspace = 0 : i64} {
  func.func @main(%a: memref<8x20xf32>, %b: memref<20x10xf32>, %c: memref<8x10xf32>) {
    linalg.matmul ins(%a, %b : memref<8x20xf32>, memref<20x10xf32>) outs(%c : memref<8x10xf32>)
    return
  }
}
