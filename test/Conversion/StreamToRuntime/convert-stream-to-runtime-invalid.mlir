// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass refuses nothing: what it could not convert, the dialect's verifiers do not let through. A program without
// streams stays as it is.
// RUN: hp-opt %s --convert-stream-to-runtime --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: return
func.func @main() {
  return
}
