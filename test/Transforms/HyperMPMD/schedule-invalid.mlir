// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hp-opt %s --hypermpmd-schedule=schedule=backwards --split-input-file --verify-diagnostics

#t = #hypermpmd.topology<"a" = <["tp"=1]>>
module attributes {hypermpmd.topology = #t} {
  // expected-error @below {{expected the name of a schedule (gpipe, 1f1b, interleaved_1f1b, zero_bubble_h1 or auto) but got "backwards"}}
  func.func @main() {
    return
  }
}
