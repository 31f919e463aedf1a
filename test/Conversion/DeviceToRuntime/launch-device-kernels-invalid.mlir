// Kernels say how they are launched.
// RUN: hp-opt %s --split-input-file --hp-launch-device-kernels --verify-diagnostics

// expected-error @below {{expected a kernel with a geometry (hp.geometry); run hp-form-device-kernels, not hp-form-kernels}}
func.func private @kernel(%a: memref<4xf32>) attributes {hp.kernel} {
  return
}

// -----

// expected-error @below {{expected hp.geometry to be two numbers but got array<i64: 1>}}
func.func private @kernel(memref<4xf32>) attributes {hp.kernel, hp.geometry = array<i64: 1>}

// -----

// expected-error @below {{expected hp.library to be a name but got ""}}
func.func private @copy(memref<4xf32>) attributes {hp.kernel, hp.geometry = array<i64: 1, 1>, hp.library = ""}

// -----

// expected-error @below {{expected an operator with words (hp.words)}}
func.func private @copy(memref<4xf32>) attributes {hp.kernel, hp.geometry = array<i64: 1, 1>, hp.library = "copy"}

// -----

// expected-error @below {{expected hp.assertions to be texts but got 1 : i64}}
module attributes {hp.assertions = 1 : i64} {}
