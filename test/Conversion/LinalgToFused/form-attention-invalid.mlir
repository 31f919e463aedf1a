// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Types are named as MLIR names them.
// RUN: hp-opt %s --hp-form-attention=types=half --verify-diagnostics

// expected-error @below {{expected types of f16, bf16, f32 or f64 but got 'half'}}
module {}
