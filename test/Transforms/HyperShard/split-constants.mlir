// Each use of a constant-like tensor gets a copy; nothing else does.
// RUN: hp-opt %s -split-input-file -hypershard-split-constants | FileCheck %s

// CHECK-LABEL: func @constant
func.func @constant() -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-COUNT-2: arith.constant dense<[1.0
  %c = arith.constant dense<[1.0, -2.0, 3.0, -4.0]> : tensor<4xf32>
  // CHECK-NOT: arith.constant
  return %c, %c : tensor<4xf32>, tensor<4xf32>
}

// -----

// A chain is copied whole: fill and the empty tensor under it.
// CHECK-LABEL: func @chain
func.func @chain(%v: f32) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-COUNT-2: tensor.empty
  %e = tensor.empty() : tensor<4xf32>
  // CHECK-COUNT-2: linalg.fill
  %f = linalg.fill ins(%v : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %f, %f : tensor<4xf32>, tensor<4xf32>
}

// -----

// Indices only: an iota is constant-like.
#id = affine_map<(d0) -> (d0)>
// CHECK-LABEL: func @iota
func.func @iota() -> (tensor<4xindex>, tensor<4xindex>) {
  %e = tensor.empty() : tensor<4xindex>
  // CHECK-COUNT-2: linalg.generic
  %i = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<4xindex>) {
  ^bb0(%out: index):
    %0 = linalg.index 0 : index
    linalg.yield %0 : index
  } -> tensor<4xindex>
  return %i, %i : tensor<4xindex>, tensor<4xindex>
}

// -----

// What depends on an argument is computed once, captured or not.
#id = affine_map<(d0) -> (d0)>
// CHECK-LABEL: func @computed
func.func @computed(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  // CHECK: linalg.generic
  // CHECK-NOT: linalg.generic
  %r = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<4xf32>) {
  ^bb0(%out: f32):
    %0 = linalg.index 0 : index
    %1 = tensor.extract %x[%0] : tensor<4xf32>
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  return %r, %r : tensor<4xf32>, tensor<4xf32>
}

// -----

// One use: nothing changes.
// CHECK-LABEL: func @once
// CHECK-NEXT: arith.constant
// CHECK-NEXT: return
func.func @once() -> tensor<2xi32> {
  %c = arith.constant dense<[1, 2]> : tensor<2xi32>
  return %c : tensor<2xi32>
}
