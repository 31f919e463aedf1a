// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Without an entry, or with parts of nothing, there is nothing to cut.
// RUN: hp-opt %s --offload-split-calls=grain=0 --split-input-file --verify-diagnostics

// expected-error @below {{expected a function @main with one block to split the calls of}}
module {
}

// -----

// expected-error @below {{expected a grain of at least one byte but got 0}}
func.func @main() {
  return
}
