// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Without an entry there is nothing to unroll.
// RUN: hp-opt %s --offload-unroll-loops --verify-diagnostics

// expected-error @below {{expected a function @main with one block to unroll the loops of}}
module {
}
