// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A wait that is missing is found, whatever it is for.
// RUN: hp-opt %s --split-input-file --verify-diagnostics --stream-verify-streams

func.func private @all_reduce(memref<4xf32> {stream.access = "read"}, memref<4xf32> {stream.access = "write"})

func.func @read_too_early(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>) {
  %begin = stream.record <compute>
  stream.wait <comm> for %begin
  // expected-note@+1 {{here}}
  stream.on <comm> {
    func.call @all_reduce(%x, %y) : (memref<4xf32>, memref<4xf32>) -> ()
  }
  // expected-error@+2 {{expected this op, which reads memory on the stream #stream.id<compute>, to wait for the stream #stream.id<comm>, which writes the same bytes before}}
  // expected-note@+1 {{stream-assign-streams writes the waits that are needed}}
  memref.copy %y, %z : memref<4xf32> to memref<4xf32>
  %done = stream.record <comm>
  stream.wait <compute> for %done
  return
}

// -----

func.func private @all_reduce(memref<4xf32> {stream.access = "read"}, memref<4xf32> {stream.access = "write"})

func.func @operand_not_made(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>) {
  %begin = stream.record <compute>
  stream.wait <comm> for %begin
  // expected-note@+1 {{here}}
  memref.copy %z, %x : memref<4xf32> to memref<4xf32>
  // expected-error@+2 {{expected this op, which reads memory on the stream #stream.id<comm>, to wait for the stream #stream.id<compute>, which writes the same bytes before}}
  // expected-note@+1 {{stream-assign-streams writes the waits that are needed}}
  stream.on <comm> {
    func.call @all_reduce(%x, %y) : (memref<4xf32>, memref<4xf32>) -> ()
  }
  %done = stream.record <comm>
  stream.wait <compute> for %done
  return
}

// -----

func.func private @all_reduce(memref<4xf32> {stream.access = "read"}, memref<4xf32> {stream.access = "write"})

// The bytes of a buffer that is used no more belong to another.
func.func private @bytes_used_again(%arena: memref<128xi8> {hp.arena}, %x: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %a = memref.view %arena[%c0][] : memref<128xi8> to memref<4xf32>
  %b = memref.view %arena[%c64][] : memref<128xi8> to memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  %made = stream.record <compute>
  stream.wait <comm> for %made
  // expected-note@+1 {{here}}
  stream.on <comm> {
    func.call @all_reduce(%a, %b) : (memref<4xf32>, memref<4xf32>) -> ()
  }
  %c = memref.view %arena[%c0][] : memref<128xi8> to memref<4xf32>
  // expected-error@+2 {{expected this op, which writes memory on the stream #stream.id<compute>, to wait for the stream #stream.id<comm>, which reads the same bytes before}}
  // expected-note@+1 {{stream-assign-streams writes the waits that are needed}}
  memref.copy %x, %c : memref<4xf32> to memref<4xf32>
  %done = stream.record <comm>
  stream.wait <compute> for %done
  return
}

// -----

func.func private @all_reduce(memref<4xf32> {stream.access = "read"}, memref<4xf32> {stream.access = "write"})

func.func @before_the_block(%x: memref<4xf32>, %y: memref<4xf32>) {
  // expected-error@+3 {{expected this op, which reads memory on the stream #stream.id<comm>, to wait for the stream #stream.id<compute>, which writes the same bytes before}}
  // expected-note@+2 {{before this block}}
  // expected-note@+1 {{stream-assign-streams writes the waits that are needed}}
  stream.on <comm> {
    func.call @all_reduce(%x, %y) : (memref<4xf32>, memref<4xf32>) -> ()
  }
  %done = stream.record <comm>
  stream.wait <compute> for %done
  return
}

// -----

func.func private @all_reduce(memref<4xf32> {stream.access = "read"}, memref<4xf32> {stream.access = "write"})

func.func @left_under_way(%x: memref<4xf32>, %y: memref<4xf32>) {
  %begin = stream.record <compute>
  stream.wait <comm> for %begin
  // expected-note@+1 {{this is not done}}
  stream.on <comm> {
    func.call @all_reduce(%x, %y) : (memref<4xf32>, memref<4xf32>) -> ()
  }
  // expected-error@+1 {{expected the block to end when the stream #stream.id<comm> was waited for, but it is under way}}
  return
}

// -----

func.func private @all_reduce(memref<4xf32> {stream.access = "read"}, memref<4xf32> {stream.access = "write"})

func.func @mark_of_another_block(%x: memref<4xf32>, %y: memref<4xf32>, %flag: i1) {
  %begin = stream.record <compute>
  scf.if %flag {
    // expected-error@+1 {{expected a mark that was recorded in this block}}
    stream.wait <comm> for %begin
  }
  return
}

// -----

// expected-error@+1 {{expected streams in structured control flow alone but got a region of several blocks}}
func.func @jumps(%flag: i1) {
  %begin = stream.record <compute>
  cf.br ^end
^end:
  return
}
