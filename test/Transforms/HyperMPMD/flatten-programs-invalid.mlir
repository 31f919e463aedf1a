// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hp-opt %s --hypermpmd-flatten-programs --split-input-file --verify-diagnostics

// expected-error @below {{expected the name @b.f to be free; rename a device group}}
module attributes {hypermpmd.topology = #hypermpmd.topology<"b" = <["tp"=1]>>} {
  func.func private @b.f()
  module @b attributes {hypermpmd.group = "b"} {
    func.func @main() {
      return
    }
    func.func private @f()
  }
}
