// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Moves that do not fit the function are refused.
// RUN: hp-opt %s --split-input-file --offload-insert-transfers --verify-diagnostics

// expected-error @below {{expected the number of one of 2 values but got 2}}
func.func @value(%x: tensor<4xf32>) -> tensor<4xf32> attributes {
    offload.moves = [#offload.move<value = 2, tier = <pool>, evict_after = -1, free_before = 0, prefetch_before = 1, clean = false>]} {
  %a = arith.negf %x : tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

// expected-error @below {{expected positions of at most 1 ops but got 2}}
func.func @position(%x: tensor<4xf32>) -> tensor<4xf32> attributes {
    offload.moves = [#offload.move<value = 1, tier = <pool>, evict_after = 0, free_before = 1, prefetch_before = 2, clean = false>]} {
  %a = arith.negf %x : tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

// expected-error @below {{expected a tensor on the device that is no view to move but got 'tensor<4xf32>'}}
func.func @view(%x: tensor<2x2xf32>) -> tensor<4xf32> attributes {
    offload.moves = [#offload.move<value = 1, tier = <pool>, evict_after = 0, free_before = 1, prefetch_before = 1, clean = false>]} {
  %v = tensor.collapse_shape %x [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
  %a = arith.negf %v : tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

// expected-error @below {{expected a tensor on the device that is no view to move but got 'tensor<4xf32, #offload.tier<pool>>'}}
func.func @placed(%x: tensor<4xf32, #offload.tier<pool>>) attributes {
    offload.moves = [#offload.move<value = 0, tier = <pool>, evict_after = -1, free_before = 0, prefetch_before = 0, clean = false>]} {
  return
}

// -----

// expected-error @below {{expected an argument, or what is its next value, to live in a tier between steps but got another value}}
func.func @around(%x: tensor<4xf32>) -> tensor<4xf32> attributes {
    offload.moves = [#offload.move<value = 1, tier = <pool>, evict_after = 1, free_before = 2, prefetch_before = 0, clean = true>]} {
  %a = arith.negf %x : tensor<4xf32>
  %b = arith.negf %a : tensor<4xf32>
  return %b : tensor<4xf32>
}

// -----

// expected-error @below {{expected a value with a copy below to be dropped but got one that was never stored}}
func.func @dropped(%x: tensor<4xf32>) -> tensor<4xf32> attributes {
    offload.moves = [#offload.move<value = 1, tier = <pool>, evict_after = 0, free_before = 1, prefetch_before = 2, clean = true>]} {
  %a = arith.negf %x : tensor<4xf32>
  %b = arith.negf %x : tensor<4xf32>
  %c = arith.addf %a, %b : tensor<4xf32>
  return %c : tensor<4xf32>
}

// -----

// expected-error @below {{expected a function of one block to move values in}}
func.func @blocks(%x: tensor<4xf32>) attributes {offload.moves = []} {
  cf.br ^next
^next:
  return
}

// -----

// expected-error @below {{expected an argument that the step leaves as it is to be dropped but got a store in}}
func.func @written(%x: tensor<4xf32> {hp.name = "x"}) -> tensor<4xf32> attributes {
    offload.moves = [#offload.move<value = 0, tier = <pool>, evict_after = 0, free_before = 1, prefetch_before = 0, clean = false>]} {
  %a = arith.negf %x : tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

// expected-error @below {{expected the only result of an op to be computed again before another op but got}}
func.func @argument_again(%x: tensor<4xf32>) -> tensor<4xf32> attributes {
    offload.moves = [#offload.move<value = 0, tier = <pool>, evict_after = -1, free_before = 0, prefetch_before = 0, clean = false, recomputed = true>]} {
  %a = arith.negf %x : tensor<4xf32>
  return %a : tensor<4xf32>
}
