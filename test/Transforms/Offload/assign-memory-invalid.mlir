// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What has no known height has no arena.
// RUN: hp-opt %s --offload-assign-memory --split-input-file --verify-diagnostics

// expected-error@+1 {{expected a function that does not call itself, whose memory is known}}
func.func private @again(%x: memref<16xf32>) {
  %t = memref.alloc() : memref<16xf32>
  memref.copy %x, %t : memref<16xf32> to memref<16xf32>
  func.call @again(%t) : (memref<16xf32>) -> ()
  memref.dealloc %t : memref<16xf32>
  return
}
