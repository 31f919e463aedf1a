// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every message of the dialect.
// RUN: hp-opt %s --split-input-file --verify-diagnostics

func.func @c1_dynamic(%u: tensor<?x4xf32>, %i: tensor<6xi64>, %t: tensor<8x4xf32>) {
  // expected-error @below {{expected static shapes but got 'tensor<?x4xf32>'}}
  %0 = indexing.scatter_add %u at %i into %t : tensor<?x4xf32>, tensor<6xi64> into tensor<8x4xf32>
  return
}

// -----

func.func @c1_indices(%u: tensor<6x4xf32>, %i: tensor<6xf32>, %t: tensor<8x4xf32>) {
  // expected-error @below {{expected integer indices of one dimension but got 'tensor<6xf32>'}}
  %0 = indexing.scatter_add %u at %i into %t : tensor<6x4xf32>, tensor<6xf32> into tensor<8x4xf32>
  return
}

// -----

func.func @c2_elements(%u: tensor<6x4xf16>, %i: tensor<6xi64>, %t: tensor<8x4xf32>) {
  // expected-error @below {{expected updates of a table's numbers but got 'tensor<6x4xf16>' for the table 'tensor<8x4xf32>'}}
  %0 = indexing.scatter_add %u at %i into %t : tensor<6x4xf16>, tensor<6xi64> into tensor<8x4xf32>
  return
}

// -----

func.func @c3_count(%u: tensor<5x4xf32>, %i: tensor<6xi64>, %t: tensor<8x4xf32>) {
  // expected-error @below {{expected one update for each of 6 indices but got 'tensor<5x4xf32>'}}
  %0 = indexing.scatter_add %u at %i into %t : tensor<5x4xf32>, tensor<6xi64> into tensor<8x4xf32>
  return
}

// -----

func.func @c4_width(%u: tensor<6x3xf32>, %i: tensor<6xi64>, %t: tensor<8x4xf32>) {
  // expected-error @below {{expected updates of the size of a row of 'tensor<8x4xf32>' but got 'tensor<6x3xf32>'}}
  %0 = indexing.scatter_add %u at %i into %t : tensor<6x3xf32>, tensor<6xi64> into tensor<8x4xf32>
  return
}
