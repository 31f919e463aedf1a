// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hp-opt %s --hypermpmd-unroll-microbatches --split-input-file --verify-diagnostics

func.func @main(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{expected constant bounds of the loop over microbatches}}
  scf.for %m = %c0 to %n step %c1 {
  } {hp.microbatches}
  return
}
