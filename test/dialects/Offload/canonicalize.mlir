// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What folds and, above all, what does not.
// RUN: hp-opt %s --canonicalize --cse | FileCheck %s
!pool = tensor<4xf32, #offload.tier<pool>>
!disk = tensor<4xf32, #offload.tier<disk>>

// Clean data has a copy below already.
// CHECK-LABEL: func.func @clean(
// CHECK-SAME: %[[W:.*]]: tensor<4xf32, #offload.tier<pool>>
// CHECK-NEXT: return %[[W]]
func.func @clean(%w: !pool) -> !pool {
  %f = offload.prefetch %w : !pool -> <tensor<4xf32>>
  %d = offload.wait %f : <tensor<4xf32>>
  %g = offload.store %d : tensor<4xf32> -> <!pool>
  %r = offload.wait %g : <!pool>
  return %r : !pool
}

// Another tier is another copy.
// CHECK-LABEL: func.func @other_tier(
// CHECK: offload.store
func.func @other_tier(%w: !pool) -> !disk {
  %f = offload.prefetch %w : !pool -> <tensor<4xf32>>
  %d = offload.wait %f : <tensor<4xf32>>
  %g = offload.store %d : tensor<4xf32> -> <!disk>
  %r = offload.wait %g : <!disk>
  return %r : !disk
}

// Equal values in different tiers are different values (case 12), and going away
// and coming back is the point.
// CHECK-LABEL: func.func @two_tiers(
// CHECK: offload.store {{.*}} #offload.tier<pool>
// CHECK: offload.store {{.*}} #offload.tier<disk>
// CHECK: offload.prefetch
func.func @two_tiers(%x: tensor<4xf32>) -> (!disk, tensor<4xf32>) {
  %f = offload.store %x : tensor<4xf32> -> <!pool>
  %p = offload.wait %f : <!pool>
  %g = offload.store %x : tensor<4xf32> -> <!disk>
  %q = offload.wait %g : <!disk>
  %h = offload.prefetch %p : !pool -> <tensor<4xf32>>
  %d = offload.wait %h : <tensor<4xf32>>
  return %q, %d : !disk, tensor<4xf32>
}

// Two prefetches of one value are not merged: between them it is not there.
// CHECK-LABEL: func.func @twice(
// CHECK-COUNT-2: offload.prefetch
func.func @twice(%w: !pool) -> (tensor<4xf32>, tensor<4xf32>) {
  %f = offload.prefetch %w : !pool -> <tensor<4xf32>>
  %a = offload.wait %f : <tensor<4xf32>>
  %x = arith.negf %a : tensor<4xf32>
  offload.detach %a : tensor<4xf32>
  %g = offload.prefetch %w : !pool -> <tensor<4xf32>>
  %b = offload.wait %g : <tensor<4xf32>>
  return %x, %b : tensor<4xf32>, tensor<4xf32>
}

// What nobody waits for is not copied.
// CHECK-LABEL: func.func @unused(
// CHECK-NEXT: return
func.func @unused(%w: !pool) {
  %f = offload.prefetch %w : !pool -> <tensor<4xf32>>
  %a = offload.wait %f : <tensor<4xf32>>
  return
}
