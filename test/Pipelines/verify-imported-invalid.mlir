// What may not come out of import.
// RUN: hp-opt %s -split-input-file -verify-diagnostics -hp-verify-imported

// expected-error @below {{expected a function @main}}
module {
}

// -----

// expected-error @below {{expected hp.role of argument 0 to be input, parameter, buffer, optimizer or cache but got "weight"}}
func.func @main(%x: tensor<8xf32> {hp.name = "x", hp.role = "weight"}) {
  return
}

// -----

// expected-error @below {{expected argument 0 with hp.role "input" to have an hp.name}}
func.func @main(%x: tensor<8xf32> {hp.role = "input"}) {
  return
}

// -----

// expected-error @below {{expected arguments of different names but got "x" twice}}
func.func @main(%x: tensor<8xf32> {hp.name = "x"}, %y: tensor<8xf32> {hp.name = "x"}) {
  return
}

// -----

func.func @main(%x: memref<8xf32>) {
  %c = arith.constant 0 : index
  // expected-error @below {{expected a program of func, linalg, tensor, arith, math and scf but got `memref.load`}}
  // expected-note @below {{lower it to linalg on tensors first}}
  %0 = memref.load %x[%c] : memref<8xf32>
  return
}

// -----

func.func @main(%c: i1) {
  // expected-error @below {{expected structured control flow but got `cf.cond_br`}}
  // expected-note @below {{lift it with --lift-cf-to-scf}}
  cf.cond_br %c, ^bb1, ^bb1
^bb1:
  return
}

// -----

func.func @main(%x: tensor<5x3xf32>) -> tensor<4x3xf32> {
  %c = arith.constant 0.0 : f32
  // expected-error @below {{expected padding of at least 0 but got -1}}
  // expected-note @below {{cut with tensor.extract_slice instead}}
  %0 = tensor.pad %x low[-1, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %c : f32
  } : tensor<5x3xf32> to tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

// -----

func.func @main(%x: tensor<4294967296x4194304xf32>) {
  // expected-error @below {{expected tensors of less than 2^53 elements but got 'tensor<4294967296x4194304xf32>'}}
  %0 = arith.negf %x : tensor<4294967296x4194304xf32>
  return
}

// -----

func.func @main(%x: tensor<4xcomplex<f32>>) {
  // expected-error @below {{expected tensors of numbers but got 'tensor<4xcomplex<f32>>'}}
  // expected-note @below {{write real and imaginary parts as tensors of their own}}
  %0 = tensor.extract_slice %x[0] [2] [1] : tensor<4xcomplex<f32>> to tensor<2xcomplex<f32>>
  return
}

// -----

func.func @main(%n: index) {
  // expected-error @below {{expected tensors of static shape but got 'tensor<?xf32>'}}
  // expected-note @below {{import the model with fixed example shapes}}
  %0 = tensor.empty(%n) : tensor<?xf32>
  return
}

// -----

// expected-error @below {{expected hp.updates of result 0 to be the hp.name of an argument but got "w"}}
func.func @main(%x: tensor<4xf32> {hp.name = "x"}) -> (tensor<4xf32> {hp.updates = "w"}) {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{expected result 1 to have the type of the argument "x" that it updates, 'tensor<4xf32>', but got 'tensor<f32>'}}
func.func @main(%x: tensor<4xf32> {hp.name = "x"}, %y: tensor<f32>) -> (tensor<f32>, tensor<f32> {hp.updates = "x"}) {
  return %y, %y : tensor<f32>, tensor<f32>
}

// -----

// expected-error @below {{expected one next value of the argument "x" but got two}}
func.func @main(%x: tensor<4xf32> {hp.name = "x"})
    -> (tensor<4xf32> {hp.updates = "x"}, tensor<4xf32> {hp.updates = "x"}) {
  return %x, %x : tensor<4xf32>, tensor<4xf32>
}

// -----

// expected-error @below {{expected a result to update the argument "c", which is to be 1 steps old}}
func.func @main(%c: tensor<4xf32> {hp.name = "c", hp.staleness = 1 : i64}) -> tensor<4xf32> {
  return %c : tensor<4xf32>
}

// -----

// expected-error @below {{expected the argument "c", which is to be 2 steps old, to take a value that is 1 steps old but got one of 0}}
func.func @main(%c: tensor<4xf32> {hp.name = "c", hp.staleness = 2 : i64}) -> (tensor<4xf32> {hp.updates = "c"}) {
  %0 = arith.addf %c, %c : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @below {{expected hp.staleness of argument 0 to be a number of steps of at least 1}}
func.func @main(%c: tensor<4xf32> {hp.name = "c", hp.staleness = 0 : i64}) -> (tensor<4xf32> {hp.updates = "c"}) {
  return %c : tensor<4xf32>
}
