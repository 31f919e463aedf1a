// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hp-opt %s --hypermpmd-resolve-transfers --split-input-file --verify-diagnostics

#t = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>
module attributes {hypermpmd.topology = #t} {
  module @a attributes {hypermpmd.group = "a"} {
    func.func @main(%x: tensor<2xf32>) {
      // expected-error @below {{expected a recv with tag 1 in the program of "b" to meet it}}
      hypermpmd.send %x to "b" tag 1 : tensor<2xf32>
      return
    }
  }
  module @b attributes {hypermpmd.group = "b"} {
    func.func @main() {
      // expected-error @below {{expected a send with tag 0 in the program of "a" to meet it}}
      %r = hypermpmd.recv from "a" tag 0 : tensor<2xf32>
      return
    }
  }
}

// -----

#t = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>
module attributes {hypermpmd.topology = #t} {
  module @a attributes {hypermpmd.group = "a"} {
    func.func @main(%x: tensor<2xf32>) {
      // expected-note @below {{another is here}}
      hypermpmd.send %x to "b" tag 0 : tensor<2xf32>
      // expected-error @below {{expected one with this peer and tag}}
      hypermpmd.send %x to "b" tag 0 : tensor<2xf32>
      return
    }
  }
}

// -----

#t = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>
module attributes {hypermpmd.topology = #t} {
  module @a attributes {hypermpmd.group = "a"} {
    func.func @main(%x: tensor<2xf32>) {
      // expected-note @below {{it is sent here}}
      hypermpmd.send %x to "b" tag 0 : tensor<2xf32>
      return
    }
  }
  module @b attributes {hypermpmd.group = "b"} {
    func.func @main() {
      // expected-error @below {{expected to receive 'tensor<2xf32>', which is sent, but got 'tensor<3xf32>'}}
      %r = hypermpmd.recv from "a" tag 0 : tensor<3xf32>
      return
    }
  }
}

// -----

#t = #hypermpmd.topology<"a" = <["tp"=2]>, "b" = <["tp"=1]>>
module attributes {hypermpmd.topology = #t} {
  module @a attributes {hypermpmd.group = "a"} {
    hypershard.mesh @mesh = <["tp"=2]>
    func.func @main(%x: tensor<2xf32> {hypershard.sharding = #hypershard.sharding<@mesh, [{}], partial = <sum {"tp"}>>}) {
      // expected-error @below {{expected a whole value but got a partial one; run hypershard-insert-reshards first}}
      hypermpmd.send %x to "b" tag 0 : tensor<2xf32>
      return
    }
  }
}
