// Kernels become entries of PTX. What they ask about their threads is NVVM's; a failed assertion leaves its number.
// RUN: hp-opt %s --hp-convert-device-to-llvm | FileCheck %s

// CHECK-NOT: hp_device_
func.func private @hp_device_thread() -> i32
func.func private @hp_device_block() -> i32
func.func private @hp_device_barrier()
func.func private @hp_device_exchange(i32, i32) -> i32

// CHECK: llvm.func ptx_kernelcc @kernel(%{{.*}}: !llvm.ptr {llvm.align = 16 : i64}, %[[WORD:.*]]: !llvm.ptr)
// CHECK-SAME: hp.threads = 64
// CHECK: llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.tid.x"()
// CHECK: llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.ctaid.x"()
// CHECK: llvm.call_intrinsic "llvm.nvvm.barrier.cta.sync.aligned.all"(
// CHECK: llvm.call_intrinsic "llvm.nvvm.shfl.sync.bfly.i32"(
// CHECK: llvm.cond_br %{{.*}}, ^[[AFTER:.*]], ^[[FAILURE:.*]]
// CHECK: ^[[FAILURE]]:
// CHECK: llvm.store volatile %{{.*}}, %[[WORD]]
// CHECK-NEXT: llvm.return
func.func private @kernel(%a: memref<4xi32>, %word: !llvm.ptr) attributes {hp.kernel, hp.geometry = array<i64: 1, 64>} {
  %thread = call @hp_device_thread() : () -> i32
  %block = call @hp_device_block() : () -> i32
  call @hp_device_barrier() : () -> ()
  %other = call @hp_device_exchange(%thread, %block) : (i32, i32) -> i32
  %small = arith.cmpi ult, %other, %thread : i32
  cf.assert %small, "too large" {hp.assertion = 1 : i32}
  %at = arith.index_cast %block : i32 to index
  memref.store %other, %a[%at] : memref<4xi32>
  return
}
