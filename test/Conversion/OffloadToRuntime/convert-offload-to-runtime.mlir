// Copies become calls on both buffers, at the start and at the wait; values keep their tiers.
// RUN: hp-opt %s --hp-convert-offload-to-runtime | FileCheck %s
!pool = tensor<4x3xbf16, #offload.tier<pool>>

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[W:.*]]: tensor<4x3xbf16, #offload.tier<pool>>, %[[X:.*]]: tensor<4x3xbf16>
func.func @main(%w: !pool, %x: tensor<4x3xbf16>) -> (tensor<4x3xbf16>, !pool) {
  // CHECK: %[[FROM:.*]] = bufferization.to_buffer %[[W]] read_only
  // CHECK-SAME: to memref<4x3xbf16, #offload.tier<pool>>
  // CHECK: %[[TO:.*]] = memref.alloc() {alignment = 64 : i64} : memref<4x3xbf16>
  // CHECK: %[[COPY:.*]] = call @prefetch(%[[FROM]], %[[TO]])
  %f = offload.prefetch %w : !pool -> <tensor<4x3xbf16>>
  // CHECK: %[[GONE:.*]] = memref.alloc() {alignment = 64 : i64} : memref<4x3xbf16, #offload.tier<pool>>
  // CHECK: %[[STORE:.*]] = call @store(%{{.*}}, %[[GONE]])
  %s = offload.store %x : tensor<4x3xbf16> -> <!pool>
  // CHECK: call @wait_for_copy{{.*}}(%[[COPY]], %{{.*}}, %[[TO]])
  // CHECK: %[[D:.*]] = bufferization.to_tensor %[[TO]] restrict writable
  %d = offload.wait %f : <tensor<4x3xbf16>>
  // CHECK: call @wait_for_copy{{.*}}(%[[STORE]], %{{.*}}, %[[GONE]])
  // CHECK: %[[H:.*]] = bufferization.to_tensor %[[GONE]] restrict writable
  %h = offload.wait %s : <!pool>
  // CHECK-NOT: offload.detach
  offload.detach %x : tensor<4x3xbf16>
  // CHECK: return %[[D]], %[[H]]
  return %d, %h : tensor<4x3xbf16>, !pool
}

// CHECK-LABEL: func.func private @store(
// CHECK-DAG: %[[HOST:.*]] = llvm.mlir.constant(2 : i32)
// CHECK-DAG: %[[DEVICE:.*]] = llvm.mlir.constant(0 : i32)
// CHECK-DAG: %[[BYTES:.*]] = llvm.mlir.constant(24 : i64)
// CHECK: llvm.call @hp_rt_copy_start(%{{.*}}, %[[HOST]], %{{.*}}, %[[DEVICE]], %[[BYTES]])
