// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hp-opt %s --split-input-file --offload-split-large-ops --verify-diagnostics

// expected-error @below {{expected a function @main with one block to split the ops of}}
module {
}
