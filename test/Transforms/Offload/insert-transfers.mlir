// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Moves become copies where the plan says; uses and views follow.
// RUN: hp-opt %s --offload-insert-transfers --offload-verify-tiers --split-input-file | FileCheck %s

// A value that is made here: stored, ended, fetched.
// CHECK-LABEL: func.func @intermediate(
// CHECK-NOT: offload.moves
func.func @intermediate(%x: tensor<4xf32>) -> tensor<4xf32> attributes {
    offload.moves = [#offload.move<value = 1, tier = <pool>, evict_after = 1, free_before = 2, prefetch_before = 3, clean = false>]} {
  // CHECK: %[[A:.*]] = arith.negf
  %a = arith.negf %x : tensor<4xf32>
  // CHECK: %[[B:.*]] = arith.addf %[[A]], %[[A]]
  %b = arith.addf %a, %a : tensor<4xf32>
  // CHECK: %[[S:.*]] = offload.store %[[A]] : tensor<4xf32> -> <tensor<4xf32, #offload.tier<pool>>>
  // CHECK: %[[BELOW:.*]] = offload.wait %[[S]]
  // CHECK: offload.detach %[[A]]
  // CHECK: %[[C:.*]] = arith.mulf %[[B]], %[[B]]
  %c = arith.mulf %b, %b : tensor<4xf32>
  // CHECK: %[[F:.*]] = offload.prefetch %[[BELOW]]
  // CHECK: %[[D:.*]] = arith.mulf %[[C]], %[[B]]
  %d = arith.mulf %c, %b : tensor<4xf32>
  // CHECK: %[[AGAIN:.*]] = offload.wait %[[F]]
  // CHECK: arith.addf %[[D]], %[[AGAIN]]
  %e = arith.addf %d, %a : tensor<4xf32>
  return %e : tensor<4xf32>
}

// -----

// What is freed and fetched before the same op stays: it is stored early, so that it can be dropped later.
// CHECK-LABEL: func.func @stored_early(
func.func @stored_early(%x: tensor<4xf32>) -> tensor<4xf32> attributes {
    offload.moves = [#offload.move<value = 1, tier = <pool>, evict_after = 0, free_before = 2, prefetch_before = 2, clean = false>,
                     #offload.move<value = 1, tier = <pool>, evict_after = 2, free_before = 3, prefetch_before = 4, clean = true>]} {
  // CHECK: %[[A:.*]] = arith.negf
  %a = arith.negf %x : tensor<4xf32>
  // CHECK-NEXT: %[[S:.*]] = offload.store %[[A]]
  // CHECK-NEXT: %[[B:.*]] = arith.negf
  %b = arith.negf %x : tensor<4xf32>
  // CHECK-NEXT: %[[BELOW:.*]] = offload.wait %[[S]]
  // CHECK-NEXT: %[[C:.*]] = arith.mulf %[[B]], %[[A]]
  %c = arith.mulf %b, %a : tensor<4xf32>
  // CHECK-NEXT: offload.detach %[[A]]
  // CHECK-NEXT: %[[D:.*]] = arith.negf %[[C]]
  %d = arith.negf %c : tensor<4xf32>
  // CHECK-NEXT: %[[F:.*]] = offload.prefetch %[[BELOW]]
  // CHECK-NEXT: %[[AGAIN:.*]] = offload.wait %[[F]]
  // CHECK-NEXT: arith.addf %[[D]], %[[AGAIN]]
  %e = arith.addf %d, %a : tensor<4xf32>
  return %e : tensor<4xf32>
}

// -----

// An argument that lives below between steps and leaves once more in the middle: nothing is stored.
// CHECK-LABEL: func.func @streamed(
// CHECK-SAME: %[[W:.*]]: tensor<4xf32, #offload.tier<pool>>, %[[X:.*]]: tensor<4xf32>
func.func @streamed(%w: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> attributes {
    offload.moves = [#offload.move<value = 0, tier = <pool>, evict_after = 1, free_before = 2, prefetch_before = 3, clean = true>,
                     #offload.move<value = 0, tier = <pool>, evict_after = 4, free_before = 5, prefetch_before = 0, clean = true>]} {
  // CHECK-NEXT: %[[F:.*]] = offload.prefetch %[[W]]
  // CHECK-NEXT: %[[A:.*]] = arith.negf %[[X]]
  %a = arith.negf %x : tensor<4xf32>
  // CHECK-NEXT: %[[W0:.*]] = offload.wait %[[F]]
  // CHECK-NEXT: %[[B:.*]] = arith.addf %[[A]], %[[W0]]
  %b = arith.addf %a, %w : tensor<4xf32>
  // CHECK-NEXT: offload.detach %[[W0]]
  // CHECK-NEXT: %[[C:.*]] = arith.negf %[[B]]
  %c = arith.negf %b : tensor<4xf32>
  // CHECK-NEXT: %[[G:.*]] = offload.prefetch %[[W]]
  // CHECK-NEXT: %[[D:.*]] = arith.negf %[[C]]
  %d = arith.negf %c : tensor<4xf32>
  // CHECK-NEXT: %[[W1:.*]] = offload.wait %[[G]]
  // CHECK-NEXT: %[[E:.*]] = arith.addf %[[D]], %[[W1]]
  %e = arith.addf %d, %w : tensor<4xf32>
  // CHECK-NEXT: offload.detach %[[W1]]
  // CHECK-NEXT: return %[[E]]
  return %e : tensor<4xf32>
}

// -----

// A view is made again of what was fetched, and the old one is gone (cases 7 to 9: the storage moves once).
// CHECK-LABEL: func.func @views(
// CHECK-SAME: %[[W:.*]]: tensor<4x6xf32, #offload.tier<pool>>
func.func @views(%w: tensor<4x6xf32>, %x: tensor<24xf32>) -> (tensor<24xf32>, tensor<24xf32>) attributes {
    offload.moves = [#offload.move<value = 0, tier = <pool>, evict_after = 3, free_before = 4, prefetch_before = 2, clean = true>]} {
  // CHECK-NOT: tensor.collapse_shape
  %v = tensor.collapse_shape %w [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
  %a = arith.negf %x : tensor<24xf32>
  // CHECK: %[[F:.*]] = offload.prefetch %[[W]]
  // CHECK: %[[D:.*]] = offload.wait %[[F]]
  // CHECK: %[[V:.*]] = tensor.collapse_shape %[[D]]
  // CHECK: arith.addf %{{.*}}, %[[V]]
  %b = arith.addf %a, %v : tensor<24xf32>
  // CHECK: arith.mulf %{{.*}}, %[[V]]
  %c = arith.mulf %b, %v : tensor<24xf32>
  // CHECK: offload.detach %[[D]]
  return %b, %c : tensor<24xf32>, tensor<24xf32>
}

// -----

// What the step updates is fetched, and its next value stored and returned from the tier; the one that it leaves as it is
// comes back as it was.
// CHECK-LABEL: func.func @updated(
// CHECK-SAME: %[[W:.*]]: tensor<4xf32, #offload.tier<pool>> {hp.name = "w"}, %[[V:.*]]: tensor<4xf32, #offload.tier<pool>> {hp.name = "v"}, %[[X:.*]]: tensor<4xf32>)
// CHECK-SAME: -> (tensor<4xf32, #offload.tier<pool>> {hp.updates = "w"}, tensor<4xf32, #offload.tier<pool>> {hp.updates = "v"}, tensor<4xf32>, tensor<4xf32>)
func.func @updated(%w: tensor<4xf32> {hp.name = "w"}, %v: tensor<4xf32> {hp.name = "v"}, %x: tensor<4xf32>)
    -> (tensor<4xf32> {hp.updates = "w"}, tensor<4xf32> {hp.updates = "v"}, tensor<4xf32>, tensor<4xf32>) attributes {
    offload.moves = [#offload.move<value = 4, tier = <pool>, evict_after = 2, free_before = 3, prefetch_before = 0, clean = false>,
                     #offload.move<value = 1, tier = <pool>, evict_after = 3, free_before = 4, prefetch_before = 3, clean = true>]} {
  // CHECK-NEXT: %[[F:.*]] = offload.prefetch %[[W]]
  // CHECK-NEXT: %[[A:.*]] = arith.negf %[[X]]
  %a = arith.negf %x : tensor<4xf32>
  // CHECK-NEXT: %[[D:.*]] = offload.wait %[[F]]
  // CHECK-NEXT: %[[NEW:.*]] = arith.subf %[[D]], %[[A]]
  %new = arith.subf %w, %a : tensor<4xf32>
  // CHECK-NEXT: arith.negf %[[NEW]]
  %b = arith.negf %new : tensor<4xf32>
  // CHECK-NEXT: %[[S:.*]] = offload.store %[[NEW]]
  // CHECK-NEXT: %[[BELOW:.*]] = offload.wait %[[S]]
  // CHECK-NEXT: offload.detach %[[NEW]]
  // CHECK-NEXT: %[[G:.*]] = offload.prefetch %[[V]]
  // CHECK-NEXT: offload.wait %[[G]]
  %c = arith.negf %v : tensor<4xf32>
  // CHECK: return %[[BELOW]], %[[V]]
  return %new, %v, %b, %c : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// It may leave in between, before the update and after it: only what was written is stored.
// CHECK-LABEL: func.func @updated_and_moved(
// CHECK-SAME: %[[W:.*]]: tensor<4xf32, #offload.tier<pool>>
func.func @updated_and_moved(%w: tensor<4xf32> {hp.name = "w"}, %x: tensor<4xf32>)
    -> (tensor<4xf32> {hp.updates = "w"}, tensor<4xf32>) attributes {
    offload.moves = [#offload.move<value = 0, tier = <pool>, evict_after = 0, free_before = 1, prefetch_before = 2, clean = true>,
                     #offload.move<value = 4, tier = <pool>, evict_after = 2, free_before = 3, prefetch_before = 4, clean = false>,
                     #offload.move<value = 4, tier = <pool>, evict_after = 4, free_before = 5, prefetch_before = 0, clean = true>]} {
  // CHECK: offload.prefetch %[[W]]
  %a = arith.addf %x, %w : tensor<4xf32>
  // CHECK: offload.detach
  %b = arith.negf %a : tensor<4xf32>
  // CHECK: offload.prefetch %[[W]]
  // CHECK: %[[NEW:.*]] = arith.subf
  %new = arith.subf %w, %b : tensor<4xf32>
  // CHECK: %[[S:.*]] = offload.store %[[NEW]]
  // CHECK: %[[BELOW:.*]] = offload.wait %[[S]]
  // CHECK: offload.detach %[[NEW]]
  %c = arith.negf %b : tensor<4xf32>
  // CHECK: %[[G:.*]] = offload.prefetch %[[BELOW]]
  // CHECK: %[[AGAIN:.*]] = offload.wait %[[G]]
  // CHECK: %[[R:.*]] = arith.addf %{{.*}}, %[[AGAIN]]
  %d = arith.addf %c, %new : tensor<4xf32>
  // CHECK: offload.detach %[[AGAIN]]
  // CHECK: return %[[BELOW]], %[[R]]
  return %new, %d : tensor<4xf32>, tensor<4xf32>
}

// -----

// What is computed again is not copied: its maker runs again, of what was fetched for it, right before the next use.
// CHECK-LABEL: func.func @again(
// CHECK-SAME: %[[W:.*]]: tensor<4xf32, #offload.tier<pool>>
// CHECK-NOT: offload.store
func.func @again(%w: tensor<4xf32>) -> tensor<4xf32> attributes {
    offload.moves = [#offload.move<value = 0, tier = <pool>, evict_after = 3, free_before = 4, prefetch_before = 0, clean = true>,
                     #offload.move<value = 0, tier = <pool>, evict_after = 0, free_before = 1, prefetch_before = 2, clean = true>,
                     #offload.move<value = 1, tier = <pool>, evict_after = 1, free_before = 2, prefetch_before = 3, clean = false, recomputed = true>]} {
  // CHECK: %[[A:.*]] = arith.negf
  %a = arith.negf %w : tensor<4xf32>
  // CHECK: %[[B:.*]] = arith.addf %[[A]], %[[A]]
  %b = arith.addf %a, %a : tensor<4xf32>
  // CHECK: offload.detach %[[A]]
  // CHECK: %[[F:.*]] = offload.prefetch %[[W]]
  // CHECK: %[[C:.*]] = arith.mulf %[[B]], %[[B]]
  %c = arith.mulf %b, %b : tensor<4xf32>
  // CHECK: %[[D:.*]] = offload.wait %[[F]]
  // CHECK: %[[AGAIN:.*]] = arith.negf %[[D]] {hp.again}
  // CHECK: arith.addf %[[C]], %[[AGAIN]]
  %d = arith.addf %c, %a : tensor<4xf32>
  return %d : tensor<4xf32>
}

// -----

// A use in a region is a use.
// CHECK-LABEL: func.func @region(
func.func @region(%w: tensor<4xf32>, %x: tensor<4xf32>, %c: i1) -> tensor<4xf32> attributes {
    offload.moves = [#offload.move<value = 0, tier = <pool>, evict_after = 0, free_before = 1, prefetch_before = 0, clean = true>]} {
  // CHECK: %[[D:.*]] = offload.wait
  // CHECK-NEXT: scf.if
  %r = scf.if %c -> tensor<4xf32> {
    // CHECK: arith.addf %[[D]], %[[D]]
    %y = arith.addf %w, %w : tensor<4xf32>
    scf.yield %y : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// Nothing to write, nothing changes.
// CHECK-LABEL: func.func @nothing(
// CHECK-NEXT: return
func.func @nothing(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// At one op: what is freed comes before what is fetched, which comes in the order of its next uses, before what is waited
// for. Here %a (value 1) is fetched where %b and %c (2, 3) are freed, and is needed later than %b.
// CHECK-LABEL: func.func @in_order(
func.func @in_order(%x: tensor<4xf32>) -> tensor<4xf32> attributes {
    offload.moves = [#offload.move<value = 1, tier = <pool>, evict_after = 0, free_before = 1, prefetch_before = 4, clean = false>,
                     #offload.move<value = 2, tier = <pool>, evict_after = 1, free_before = 2, prefetch_before = 4, clean = false>,
                     #offload.move<value = 3, tier = <pool>, evict_after = 2, free_before = 4, prefetch_before = 5, clean = false>]} {
  // CHECK: %[[A:.*]] = arith.negf
  %a = arith.negf %x : tensor<4xf32>
  // CHECK-NEXT: %[[SA:.*]] = offload.store %[[A]]
  // CHECK-NEXT: %[[A_BELOW:.*]] = offload.wait %[[SA]]
  // CHECK-NEXT: offload.detach %[[A]]
  // CHECK-NEXT: %[[B:.*]] = arith.negf
  %b = arith.negf %x : tensor<4xf32>
  // CHECK-NEXT: %[[SB:.*]] = offload.store %[[B]]
  // CHECK-NEXT: %[[B_BELOW:.*]] = offload.wait %[[SB]]
  // CHECK-NEXT: offload.detach %[[B]]
  // CHECK-NEXT: %[[C:.*]] = arith.negf
  %c = arith.negf %x : tensor<4xf32>
  // CHECK-NEXT: %[[SC:.*]] = offload.store %[[C]]
  // CHECK-NEXT: arith.negf
  %d = arith.negf %x : tensor<4xf32>
  // CHECK-NEXT: offload.wait %[[SC]]
  // CHECK-NEXT: offload.detach %[[C]]
  // CHECK-NEXT: %[[FB:.*]] = offload.prefetch %[[B_BELOW]]
  // CHECK-NEXT: %[[FA:.*]] = offload.prefetch %[[A_BELOW]]
  // CHECK-NEXT: %[[B_AGAIN:.*]] = offload.wait %[[FB]]
  // CHECK-NEXT: arith.addf %[[B_AGAIN]]
  %e = arith.addf %b, %d : tensor<4xf32>
  // CHECK-NEXT: offload.prefetch
  // CHECK-NEXT: offload.wait %[[FA]]
  %f = arith.addf %a, %e : tensor<4xf32>
  %g = arith.addf %c, %f : tensor<4xf32>
  return %g : tensor<4xf32>
}
