// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every message about tasks and movements.
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

// -----

// Copies: C1
func.func @f(%a: tensor<4xi8>) {
  // expected-error@+1 {{expected two tiers that differ but got "hbm" and "hbm"}}
  %0 = supernode.copy %a from "hbm" to "hbm" : tensor<4xi8>
  return
}

// -----

// Messages: C1
func.func @f(%a: tensor<4xi8>) {
  // expected-error@+1 {{expected a tag of at least 0 but got -1}}
  supernode.send %a to "b" tag -1 : tensor<4xi8>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{expected a tag of at least 0 but got -2}}
  %0 = supernode.recv from "b" tag -2 : tensor<4xi8>
  return
}

// -----

// Attributes of functions and arguments.
// expected-error@+1 {{expected `supernode.program` on a function but got it on `builtin.module`}}
module attributes {supernode.program = "a"} {}

// -----

// expected-error@+1 {{expected `supernode.program` to be a name but got 1 : i64}}
func.func private @f() attributes {supernode.program = 1}

// -----

// expected-error@+1 {{expected `supernode.devices` beside `supernode.program`}}
func.func private @f() attributes {supernode.program = "a"}

// -----

// expected-error@+1 {{expected `supernode.devices` to be [first, count], a count of at least 1, but got [0, 0]}}
func.func private @f() attributes {supernode.program = "a", supernode.devices = [0, 0]}

// -----

// expected-error@+1 {{unknown attribute `supernode.speed` of the supernode dialect on an argument}}
func.func private @f(tensor<4xi8> {supernode.speed = 1})

// -----

// expected-error@+1 {{expected `supernode.tier` to be the name of a tier but got 1 : i64}}
func.func private @f(tensor<4xi8> {supernode.tier = 1})
