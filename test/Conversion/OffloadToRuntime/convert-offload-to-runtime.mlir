// Copies become calls on both buffers, at the start and at the wait; values keep their tiers.
// RUN: hp-opt %s --hp-convert-offload-to-runtime | FileCheck %s
!pool = tensor<4x3xbf16, #offload.tier<pool>>

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[W:.*]]: tensor<4x3xbf16, #offload.tier<pool>>, %[[X:.*]]: tensor<4x3xbf16>
func.func @main(%w: !pool, %x: tensor<4x3xbf16>) -> (tensor<4x3xbf16>, !pool) {
  // CHECK: %[[FROM:.*]] = bufferization.to_buffer %[[W]] read_only
  // CHECK-SAME: to memref<4x3xbf16, #offload.tier<pool>>
  // CHECK: %[[TO:.*]] = memref.alloc() {alignment = 64 : i64} : memref<4x3xbf16>
  // CHECK: %[[COPY:.*]] = call @prefetch(%[[FROM]], %[[TO]], %{{.*}})
  %f = offload.prefetch %w : !pool -> <tensor<4x3xbf16>>
  // CHECK: %[[GONE:.*]] = memref.alloc() {alignment = 64 : i64} : memref<4x3xbf16, #offload.tier<pool>>
  // CHECK: %[[STORE:.*]] = call @store(%{{.*}}, %[[GONE]], %{{.*}})
  %s = offload.store %x : tensor<4x3xbf16> -> <!pool>
  // The source is used until the copy has ended (case 2).
  // CHECK: %[[READ:.*]] = bufferization.to_buffer %[[W]] read_only
  // CHECK: call @wait_for_copy{{.*}}(%[[COPY]], %[[READ]], %[[TO]])
  // CHECK: %[[D:.*]] = bufferization.to_tensor %[[TO]] restrict writable
  %d = offload.wait %f : <tensor<4x3xbf16>>
  // CHECK: %[[SAVED:.*]] = bufferization.to_buffer %[[X]] read_only
  // CHECK: call @wait_for_copy{{.*}}(%[[STORE]], %[[SAVED]], %[[GONE]])
  // CHECK: %[[H:.*]] = bufferization.to_tensor %[[GONE]] restrict writable
  %h = offload.wait %s : <!pool>
  // CHECK-NOT: offload.detach
  offload.detach %x : tensor<4x3xbf16>
  // CHECK: return %[[D]], %[[H]]
  return %d, %h : tensor<4x3xbf16>, !pool
}

// A copy that nobody waits for is none.
// CHECK-LABEL: func.func @never(
// CHECK-NEXT: return
func.func @never(%w: tensor<4xf32, #offload.tier<pool>>) {
  %f = offload.prefetch %w : tensor<4xf32, #offload.tier<pool>> -> <tensor<4xf32>>
  return
}

// A contiguous part is fetched from its place in the whole: row 2 of 12 bytes is at 24.
// CHECK-LABEL: func.func @part(
// CHECK-SAME: %[[W:.*]]: tensor<8x3xf32, #offload.tier<pool>>
func.func @part(%w: tensor<8x3xf32, #offload.tier<pool>>) -> tensor<4x3xf32> {
  // CHECK: %[[WHOLE:.*]] = bufferization.to_buffer %[[W]] read_only
  // CHECK: %[[AT:.*]] = arith.constant 24 : i64
  // CHECK: call @prefetch{{.*}}(%[[WHOLE]], %{{.*}}, %[[AT]])
  %p = tensor.extract_slice %w[2, 0] [4, 3] [1, 1] : tensor<8x3xf32, #offload.tier<pool>> to tensor<4x3xf32, #offload.tier<pool>>
  %f = offload.prefetch %p : tensor<4x3xf32, #offload.tier<pool>> -> <tensor<4x3xf32>>
  %d = offload.wait %f : <tensor<4x3xf32>>
  return %d : tensor<4x3xf32>
}

// CHECK-LABEL: func.func @rows(
// CHECK-SAME: %[[T:.*]]: tensor<50x4xf32, #offload.tier<pool>>, %[[I:.*]]: tensor<2x3xi64>
func.func @rows(%table: tensor<50x4xf32, #offload.tier<pool>>, %i: tensor<2x3xi64>) -> tensor<2x3x4xf32> {
  // CHECK-DAG: %[[TABLE:.*]] = bufferization.to_buffer %[[T]] read_only
  // CHECK-DAG: %[[ROWS:.*]] = bufferization.to_buffer %[[I]] read_only
  // CHECK: %[[TO:.*]] = memref.alloc() {alignment = 64 : i64} : memref<2x3x4xf32>
  // CHECK: call @prefetch_rows(%[[TABLE]], %[[ROWS]], %[[TO]])
  %f = offload.prefetch_rows %table at %i : tensor<50x4xf32, #offload.tier<pool>>, tensor<2x3xi64> -> <tensor<2x3x4xf32>>
  %d = offload.wait %f : <tensor<2x3x4xf32>>
  return %d : tensor<2x3x4xf32>
}

// The next value of an argument is stored where that is, and may be made over what was fetched of it.
// CHECK-LABEL: func.func @updated(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4xf32, #offload.tier<pool>> {hp.name = "w"}, %[[V:[a-z0-9]+]]: tensor<4xf32, #offload.tier<pool>> {hp.name = "v"}
!below = tensor<4xf32, #offload.tier<pool>>
func.func private @half(tensor<4xf32>) -> tensor<4xf32>
func.func @updated(%w: !below {hp.name = "w"}, %v: !below {hp.name = "v"}) -> (!below {hp.updates = "w"}, !below {hp.updates = "v"}) {
  // CHECK: %[[FETCHED:.*]] = bufferization.to_tensor
  %f = offload.prefetch %w : !below -> <tensor<4xf32>>
  %d = offload.wait %f : <tensor<4xf32>>
  // CHECK: linalg.exp {hp.written_over = array<i64: 0, 0>} ins(%[[FETCHED]] : tensor<4xf32>)
  %e = tensor.empty() : tensor<4xf32>
  %next = linalg.exp ins(%d : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %[[TO:.*]] = bufferization.to_buffer %[[W]] read_only
  // CHECK: call @store{{.*}}(%{{.*}}, %[[TO]], %{{.*}})
  %s = offload.store %next : tensor<4xf32> -> <!below>
  %below = offload.wait %s : <!below>
  // CHECK: call @half(%{{.*}}) {hp.written_over = array<i64: 0, 0>}
  %g = offload.prefetch %v : !below -> <tensor<4xf32>>
  %dv = offload.wait %g : <tensor<4xf32>>
  %h = func.call @half(%dv) : (tensor<4xf32>) -> tensor<4xf32>
  %t = offload.store %h : tensor<4xf32> -> <!below>
  %belowv = offload.wait %t : <!below>
  // CHECK: return %[[W]], %[[V]]
  return %below, %belowv : !below, !below
}

// Not where the old one is fetched again afterwards.
// CHECK-LABEL: func.func @still_read(
func.func @still_read(%w: !below {hp.name = "w"}, %x: tensor<4xf32>) -> (!below {hp.updates = "w"}, tensor<4xf32>) {
  // CHECK: %[[OWN:.*]] = memref.alloc() {{.*}} : memref<4xf32, #offload.tier<pool>>
  // CHECK: call @store{{.*}}(%{{.*}}, %[[OWN]], %{{.*}})
  %s = offload.store %x : tensor<4xf32> -> <!below>
  %below = offload.wait %s : <!below>
  %f = offload.prefetch %w : !below -> <tensor<4xf32>>
  %d = offload.wait %f : <tensor<4xf32>>
  return %below, %d : !below, tensor<4xf32>
}

// CHECK-LABEL: func.func private @store(
// CHECK-DAG: %[[HOST:.*]] = llvm.mlir.constant(2 : i32)
// CHECK-DAG: %[[DEVICE:.*]] = llvm.mlir.constant(0 : i32)
// CHECK-DAG: %[[BYTES:.*]] = llvm.mlir.constant(24 : i64)
// CHECK: llvm.call @hp_rt_copy_start(%{{.*}}, %[[HOST]], %{{.*}}, %[[DEVICE]], %[[BYTES]])

// CHECK-LABEL: func.func private @prefetch_rows(
// CHECK-DAG: %[[HOST:.*]] = llvm.mlir.constant(2 : i32)
// CHECK-DAG: %[[ROW:.*]] = llvm.mlir.constant(16 : i64)
// CHECK-DAG: %[[ALL:.*]] = llvm.mlir.constant(50 : i64)
// CHECK-DAG: %[[COUNT:.*]] = llvm.mlir.constant(6 : i64)
// CHECK: llvm.call @hp_rt_copy_rows_start(%{{.*}}, %{{.*}}, %[[HOST]], %[[ROW]], %[[ALL]], %{{.*}}, %[[COUNT]])
