// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A message that nobody receives, two groups that wait for each other, and a peer that has no program. What travels together
// waits for its last send, has the same in it on both sides, and is in one block.
// RUN: hp-opt %s --hypermpmd-verify-programs --split-input-file --verify-diagnostics

#t = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>
// expected-error @below {{expected every group to come to its end but}}
module attributes {hypermpmd.topology = #t} {
  module @a attributes {hypermpmd.group = "a"} {
    func.func @main(%x: tensor<2xf32>) {
      hypermpmd.send %x to "b" tag 1 : tensor<2xf32>
      return
    }
  }
  module @b attributes {hypermpmd.group = "b"} {
    func.func @main() {
      %r = hypermpmd.recv from "a" tag 0 : tensor<2xf32>
      return
    }
  }
}

// -----

#t = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>
// expected-error @below {{expected every group to come to its end but}}
module attributes {hypermpmd.topology = #t} {
  module @a attributes {hypermpmd.group = "a"} {
    func.func @main(%x: tensor<2xf32>) {
      %r = hypermpmd.recv from "b" tag 0 : tensor<2xf32>
      hypermpmd.send %r to "b" tag 0 : tensor<2xf32>
      return
    }
  }
  module @b attributes {hypermpmd.group = "b"} {
    func.func @main() {
      %r = hypermpmd.recv from "a" tag 0 : tensor<2xf32>
      hypermpmd.send %r to "a" tag 0 : tensor<2xf32>
      return
    }
  }
}

// -----

#t = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>
module attributes {hypermpmd.topology = #t} {
  module @a attributes {hypermpmd.group = "a"} {
    func.func @main(%x: tensor<2xf32>) {
      // expected-error @below {{expected a program of "b" in the module}}
      hypermpmd.send %x to "b" tag 1 : tensor<2xf32>
      return
    }
  }
}

// -----

#t = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>
// expected-error @below {{each waits for the next: 'a' receives 'recv from b tag 0 of tensor<2xf32>' (tag 0) from 'b'; 'b' receives 'recv from a tag 0, 1 of tensor<2xf32>, tensor<2xf32>' (tag 0) from 'a'}}
module attributes {hypermpmd.topology = #t} {
  module @a attributes {hypermpmd.group = "a"} {
    func.func @main(%x: tensor<2xf32>) {
      hypermpmd.send %x to "b" tag 0 {hp.packet = array<i64: 0, 0>} : tensor<2xf32>
      %r = hypermpmd.recv from "b" tag 0 : tensor<2xf32>
      hypermpmd.send %x to "b" tag 1 {hp.packet = array<i64: 0, 1>} : tensor<2xf32>
      return
    }
  }
  module @b attributes {hypermpmd.group = "b"} {
    func.func @main() {
      %r = hypermpmd.recv from "a" tag 0 {hp.packet = array<i64: 0, 0>} : tensor<2xf32>
      %s = hypermpmd.recv from "a" tag 1 {hp.packet = array<i64: 0, 1>} : tensor<2xf32>
      hypermpmd.send %r to "a" tag 0 : tensor<2xf32>
      return
    }
  }
}

// -----

#t = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>
module attributes {hypermpmd.topology = #t} {
  module @a attributes {hypermpmd.group = "a"} {
    func.func @main(%x: tensor<2xf32>) {
      hypermpmd.send %x to "b" tag 0 {hp.packet = array<i64: 0, 0>} : tensor<2xf32>
      // expected-note @below {{the other side is here: send to b tag 0, 1 of tensor<2xf32>, tensor<2xf32>}}
      hypermpmd.send %x to "b" tag 1 {hp.packet = array<i64: 0, 1>} : tensor<2xf32>
      return
    }
  }
  module @b attributes {hypermpmd.group = "b"} {
    func.func @main() {
      // expected-error @below {{expected what travels together to do so on both sides}}
      %r = hypermpmd.recv from "a" tag 0 : tensor<2xf32>
      %s = hypermpmd.recv from "a" tag 1 : tensor<2xf32>
      return
    }
  }
}

// -----

#t = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>
module attributes {hypermpmd.topology = #t} {
  module @a attributes {hypermpmd.group = "a"} {
    func.func @main(%x: tensor<2xf32>) {
      // expected-error @below {{expected what travels together to be in one block}}
      hypermpmd.send %x to "b" tag 0 {hp.packet = array<i64: 0, 0>} : tensor<2xf32>
      call @last(%x) : (tensor<2xf32>) -> ()
      return
    }
    func.func private @last(%x: tensor<2xf32>) {
      hypermpmd.send %x to "b" tag 1 {hp.packet = array<i64: 0, 1>} : tensor<2xf32>
      return
    }
  }
  module @b attributes {hypermpmd.group = "b"} {
  }
}
