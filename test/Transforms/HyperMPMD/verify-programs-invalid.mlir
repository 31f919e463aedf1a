// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A message that nobody receives, two groups that wait for each other, and a peer that has no program.
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
