// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every message of the dialect.
// RUN: hp-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{expected the name of a tier but got an empty one}}
func.func private @empty(tensor<4xf32, #offload.tier<"">>)

// -----

func.func @prefetch_device(%x: tensor<4xf32>) {
  // expected-error @below {{expected a source in a tier but got 'tensor<4xf32>', which is on the device}}
  %f = offload.prefetch %x : tensor<4xf32> -> <tensor<4xf32>>
  return
}

// -----

func.func @prefetch_to_tier(%x: tensor<4xf32, #offload.tier<pool>>) {
  // expected-error @below {{expected a future on the device but got tier "disk"; copies between tiers go through the device}}
  %f = offload.prefetch %x : tensor<4xf32, #offload.tier<pool>> -> <tensor<4xf32, #offload.tier<disk>>>
  return
}

// -----

func.func @prefetch_shape(%x: tensor<4xf32, #offload.tier<pool>>) {
  // expected-error @below {{expected shape and element type to stay but got 'tensor<4xf32, #offload.tier<pool>>' and 'tensor<3xf32>'}}
  %f = offload.prefetch %x : tensor<4xf32, #offload.tier<pool>> -> <tensor<3xf32>>
  return
}

// -----

// A value that was stored cannot be read, or fetched, before the copy has ended (cases 1, 3): there is no such value.
func.func @fetch_what_is_under_way(%x: tensor<4xf32>) {
  %f = offload.store %x : tensor<4xf32> -> <tensor<4xf32, #offload.tier<pool>>>
  // expected-error @below {{'offload.prefetch' op operand #0 must be ranked tensor of any type values, but got '!offload.future<tensor<4xf32, #offload.tier<pool>>>'}}
  %g = "offload.prefetch"(%f) : (!offload.future<tensor<4xf32, #offload.tier<pool>>>) -> !offload.future<tensor<4xf32>>
  return
}

// -----

func.func @store_from_tier(%x: tensor<4xf32, #offload.tier<pool>>) {
  // expected-error @below {{expected a source on the device but got tier "pool"}}
  %f = offload.store %x : tensor<4xf32, #offload.tier<pool>> -> <tensor<4xf32, #offload.tier<pool>>>
  return
}

// -----

func.func @store_to_device(%x: tensor<4xf32>) {
  // expected-error @below {{expected a future in a tier but got one on the device}}
  %f = offload.store %x : tensor<4xf32> -> <tensor<4xf32>>
  return
}

// -----

func.func @waited_twice(%x: tensor<4xf32, #offload.tier<pool>>) -> (tensor<4xf32>, tensor<4xf32>) {
  // expected-error @below {{expected one offload.wait for its future but got several; use the value of the first}}
  %f = offload.prefetch %x : tensor<4xf32, #offload.tier<pool>> -> <tensor<4xf32>>
  %a = offload.wait %f : <tensor<4xf32>>
  %b = offload.wait %f : <tensor<4xf32>>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @detach_tier(%x: tensor<4xf32, #offload.tier<pool>>) {
  // expected-error @below {{expected a value on the device but got tier "pool"}}
  offload.detach %x : tensor<4xf32, #offload.tier<pool>>
  return
}

// -----

func.func @use_after_detach(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{expected no use of the value after its residency ends}}
  offload.detach %x : tensor<4xf32>
  // expected-note @below {{it is used here; prefetch it again, or detach it later}}
  %y = arith.negf %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @detached_twice(%x: tensor<4xf32>) {
  // expected-error @below {{expected no use of the value after its residency ends}}
  offload.detach %x : tensor<4xf32>
  // expected-note @below {{it is used here; prefetch it again, or detach it later}}
  offload.detach %x : tensor<4xf32>
  return
}

// -----

// expected-error @below {{unknown attribute `offload.plan` of the offload dialect}}
func.func private @unknown() attributes {offload.plan = 1}

// -----

// expected-error @below {{expected `offload.moves` to be an array of #offload.move on a function}}
func.func private @no_moves() attributes {offload.moves = [1]}

// -----

// expected-error @below {{unknown attribute `offload.put` of the offload dialect}}
func.func private @unknown_argument(tensor<4xf32> {offload.put})

// -----

// expected-error @below {{argument 0: expected a #offload.tier but got "pool"}}
func.func private @place(tensor<4xf32> {offload.place = "pool"})

// -----

// expected-error @below {{argument 0: expected `offload.keep` without a value but got true}}
func.func private @keep(tensor<4xf32> {offload.keep = true})

// -----

// expected-error @below {{argument 1: expected a tensor to place but got 'index'}}
func.func private @place_index(tensor<4xf32>, index {offload.keep})

// -----

// One value asked both kept and offloaded (case 26).
// expected-error @below {{argument 0: expected it to be kept on the device or placed in a tier but got both; remove one}}
func.func private @both(tensor<4xf32> {offload.keep, offload.place = #offload.tier<pool>})

// -----

// expected-error @below {{expected the number of a value and positions of ops}}
func.func private @positions() attributes {offload.moves = [#offload.move<value = -1, tier = <pool>, evict_after = 1, free_before = 2, prefetch_before = 3, clean = true>]}

// -----

// expected-error @below {{expected the value to be freed before an op after op 2, which it is evicted after, but got op 2}}
func.func private @freed_early() attributes {offload.moves = [#offload.move<value = 0, tier = <pool>, evict_after = 2, free_before = 2, prefetch_before = 3, clean = true>]}

// -----

// expected-error @below {{expected the value to come back before op 4 or a later one, or, around the end of the step, no later than op 2, but got op 3}}
func.func private @back_early() attributes {offload.moves = [#offload.move<value = 0, tier = <pool>, evict_after = 2, free_before = 4, prefetch_before = 3, clean = true>]}

// -----

func.func @table_on_device(%t: tensor<8x4xf32>, %i: tensor<2xi64>) {
  // expected-error @below {{expected a table in a tier but got 'tensor<8x4xf32>', which is on the device}}
  %f = offload.prefetch_rows %t at %i : tensor<8x4xf32>, tensor<2xi64> -> <tensor<2x4xf32>>
  return
}

// -----

func.func @rows_in_tier(%t: tensor<8x4xf32, #offload.tier<pool>>, %i: tensor<2xi64, #offload.tier<pool>>) {
  // expected-error @below {{expected indices and rows on the device but got 'tensor<2xi64, #offload.tier<pool>>' and 'tensor<2x4xf32>'}}
  %f = offload.prefetch_rows %t at %i : tensor<8x4xf32, #offload.tier<pool>>, tensor<2xi64, #offload.tier<pool>> -> <tensor<2x4xf32>>
  return
}

// -----

func.func @index_type(%t: tensor<8x4xf32, #offload.tier<pool>>, %i: tensor<2xi32>) {
  // expected-error @below {{expected a table with a dimension and indices of i64 but got 'tensor<8x4xf32, #offload.tier<pool>>' and 'tensor<2xi32>'}}
  %f = offload.prefetch_rows %t at %i : tensor<8x4xf32, #offload.tier<pool>>, tensor<2xi32> -> <tensor<2x4xf32>>
  return
}

// -----

func.func @row_shape(%t: tensor<8x4xf32, #offload.tier<pool>>, %i: tensor<2xi64>) {
  // expected-error @below {{expected 'tensor<2x4xf32>' but got 'tensor<4x2xf32>'}}
  %f = offload.prefetch_rows %t at %i : tensor<8x4xf32, #offload.tier<pool>>, tensor<2xi64> -> <tensor<4x2xf32>>
  return
}

// -----

// expected-error @below {{expected what lives in a tier between steps to be copied but got one that is recomputed}}
#around = #offload.move<value = 0, tier = <pool>, evict_after = 3, free_before = 4, prefetch_before = 0, clean = true, recomputed = true>
