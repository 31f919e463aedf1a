// Fragments of a vendor's compiler have no body here: they are launched by name, and listed with their texts; operators are
// calls of the runtime with words about their buffers.
// RUN: hp-opt %s --hp-launch-device-kernels | FileCheck %s

// CHECK: llvm.mlir.global external constant @hp_program_assertions("out of range\00\00")
module attributes {hp.assertions = ["out of range"]} {
  memref.global "private" constant @many : memref<3xf32> = dense<[1.0, 2.0, 3.0]>
  func.func private @fragment(memref<3xf32>, memref<3xf32>)
      attributes {hp.kernel, hp.geometry = array<i64: 1, 1>, hp.fragment = "func.func @fragment() {}"}
  func.func private @library_copy(memref<3xf32>, memref<3xf32>)
      attributes {hp.kernel, hp.geometry = array<i64: 1, 1>, hp.library = "copy", hp.words = array<i64: 7, 1, 3, 1, 7, 1, 3, 1>}
  func.func private @library_upload(memref<3xf32>, memref<3xf32>)
      attributes {hp.kernel, hp.geometry = array<i64: 1, 1>, hp.library = "upload", hp.words = array<i64: 7, 1, 3, 1, 7, 1, 3, 1>}

  // CHECK-LABEL: func.func @main(
  // CHECK: llvm.call @hp_rt_launch(
  // CHECK: llvm.call @hp_rt_library(
  // CHECK: llvm.call @hp_rt_write(
  // CHECK-NOT: call @library
  func.func @main(%a: memref<3xf32>, %b: memref<3xf32>) {
    call @fragment(%a, %b) : (memref<3xf32>, memref<3xf32>) -> ()
    call @library_copy(%a, %b) : (memref<3xf32>, memref<3xf32>) -> ()
    %many = memref.get_global @many : memref<3xf32>
    call @library_upload(%many, %b) : (memref<3xf32>, memref<3xf32>) -> ()
    return
  }
  // CHECK: module @hp_device attributes {hp.fragments = {{\[\["}}fragment", "func.func @fragment() {}"]]}
}
