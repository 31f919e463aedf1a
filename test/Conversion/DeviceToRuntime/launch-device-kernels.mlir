// Calls of kernels become launches; kernels move to a module of their own, with the constants that they read.
// RUN: hp-opt %s --hp-launch-device-kernels | FileCheck %s

// The texts of assertions are kept for the runtime, equal ones once.
// CHECK: llvm.mlir.global external constant @hp_program_assertions("index out of range\00\00")

memref.global "private" constant @table : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>

// CHECK-LABEL: func.func @main(
// CHECK: %[[WORD:.*]] = llvm.call @hp_rt_assertion_word()
// CHECK: llvm.store %[[WORD]]
// CHECK: llvm.call @hp_rt_launch(%{{.*}}, %[[BLOCKS:.*]], %[[THREADS:.*]], %{{.*}}, %{{.*}})
func.func @main(%a: memref<4xf32>, %flag: i1) {
  call @kernel(%a, %flag) : (memref<4xf32>, i1) -> ()
  return
}

// What the host reads itself is a copy that waits; its own stack is its own.
// CHECK-LABEL: func.func @host(
// CHECK: llvm.call @hp_rt_read(
// CHECK: llvm.call @hp_rt_write(
func.func @host(%a: memref<4xf32>, %i: index) {
  %0 = memref.load %a[%i] : memref<4xf32>
  %1 = arith.addf %0, %0 : f32
  memref.store %1, %a[%i] : memref<4xf32>
  %stack = memref.alloca() : memref<f32>
  memref.store %1, %stack[] : memref<f32>
  return
}

// CHECK: module @hp_device {
// CHECK: func.func private @kernel({{.*}}, %{{.*}}: !llvm.ptr) attributes {hp.asserts, hp.geometry = array<i64: 1, 32>, hp.kernel}
// CHECK: cf.assert %{{.*}}, "index out of range" {hp.assertion = 1 : i32}
// CHECK: memref.global "private" constant @table
func.func private @kernel(%a: memref<4xf32>, %flag: i1) attributes {hp.kernel, hp.geometry = array<i64: 1, 32>} {
  %table = memref.get_global @table : memref<4xf32>
  %zero = arith.constant 0 : index
  cf.assert %flag, "index out of range"
  %0 = memref.load %table[%zero] : memref<4xf32>
  memref.store %0, %a[%zero] : memref<4xf32>
  return
}
