// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every message about a task.
// RUN: hp-opt %s --split-input-file --verify-diagnostics

// C1
// expected-error@+1 {{expected `seconds` to be a finite number of at least 0 but got -1.000000e+00 : f64}}
supernode.task "a" {seconds = -1.0 : f64}

// -----

// expected-error@+1 {{expected `seconds` to be a finite number of at least 0 but got 0x7FF0000000000000 : f64}}
supernode.task "a" {seconds = 0x7FF0000000000000 : f64}

// -----

// expected-error@+1 {{expected `flops` to be a finite number of at least 0 but got -5.000000e-01 : f64}}
supernode.task "a" {seconds = 1.0 : f64, flops = -0.5 : f64}

// -----

// expected-error@+1 {{expected `bytes` to be a finite number of at least 0 but got 0x7FF8000000000000 : f64}}
supernode.task "a" {seconds = 1.0 : f64, bytes = 0x7FF8000000000000 : f64}

// -----

// C2
func.func @f(%a: tensor<4xi8>) {
  // expected-error@+1 {{expected type of operand #0 ('tensor<4xi8>') to match type of corresponding result ('tensor<8xi8>')}}
  %0 = "supernode.task"(%a) <{label = "a", operandSegmentSizes = array<i32: 0, 1>, seconds = 1.0 : f64}>
    : (tensor<4xi8>) -> tensor<8xi8>
  return
}
