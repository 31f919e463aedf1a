// An option, and marks of outlined operators, that are none.
// RUN: not hp-opt %s --hp-choose-operators=operators=some 2>&1 | FileCheck %s
// RUN: hp-opt %s --split-input-file --hp-choose-operators --verify-diagnostics

// CHECK: expected operators=by-cost, always or never but got 'some'
module {}

// -----

// expected-error @below {{expected an operator with a name (hp.operator), hp.results and hp.epsilon}}
func.func private @operator_rms_norm(%x: memref<16x64xf32>) attributes {hp.operator = [], hp.results = array<i64: 0>} {
  return
}
