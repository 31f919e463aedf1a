// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the dialect's verifiers refuse, and how they say it.
// RUN: hp-opt %s --split-input-file --verify-diagnostics

func.func @several_ops(%x: memref<4xf32>) {
  // expected-error@+1 {{expected its body to be one call that returns nothing}}
  stream.on <comm> {
    memref.copy %x, %x : memref<4xf32> to memref<4xf32>
  }
  return
}

// -----

func.func private @send(memref<4xf32>)
func.func @on_compute(%x: memref<4xf32>) {
  // expected-error@+1 {{expected a stream beside compute, where ops are that are in no `stream.on`}}
  stream.on <compute> {
    func.call @send(%x) : (memref<4xf32>) -> ()
  }
  return
}

// -----

func.func @own_mark() {
  %mark = stream.record <comm>
  // expected-error@+1 {{expected a mark of another stream but got one of #stream.id<comm> itself, whose ops happen in order}}
  stream.wait <comm> for %mark
  return
}

// -----

func.func @mark_from_elsewhere(%mark: !stream.mark) {
  // expected-error@+1 {{expected the mark of a `stream.record`}}
  stream.wait <comm> for %mark
  return
}

// -----

func.func @second_compute() {
  // expected-error@+1 {{expected a number of at least 0, and 0 for compute, but got 1 for compute}}
  %mark = stream.record <compute, 1>
  return
}

// -----

// expected-error@+1 {{expected `stream.of` to be a stream beside compute, on a function, but got #stream.id<compute>}}
func.func private @computes() attributes {stream.of = #stream.id<compute>}

// -----

// expected-error@+1 {{unknown attribute `stream.what` of the stream dialect}}
func.func private @what() attributes {stream.what}

// -----

// expected-error@+1 {{argument 0: expected `stream.access` to be "read" or "write" but got `stream.access` = "both"}}
func.func private @both(memref<4xf32> {stream.access = "both"})
