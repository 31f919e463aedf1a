// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass refuses nothing: functions that others than plain calls refer to, public ones, and programs that are to be
// synchronous stay as they are.
// RUN: hp-opt %s --split-input-file --verify-diagnostics --hypershard-lift-collectives | FileCheck %s

hypershard.mesh @m = <["dp"=2]>

// CHECK-LABEL: func.func private @referenced(
// CHECK: all_gather
func.func private @referenced(%a: tensor<2xf32>) -> tensor<4xf32> {
  %0 = hypershard.all_gather %a over @m {"dp"} dim 0 : tensor<2xf32> -> tensor<4xf32>
  %1 = math.exp %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @public(
// CHECK: all_gather
func.func @public(%a: tensor<2xf32>) -> tensor<4xf32> {
  %0 = hypershard.all_gather %a over @m {"dp"} dim 0 : tensor<2xf32> -> tensor<4xf32>
  %1 = math.exp %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}

func.func @main(%a: tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %f = constant @referenced : (tensor<2xf32>) -> tensor<4xf32>
  %0 = call_indirect %f(%a) : (tensor<2xf32>) -> tensor<4xf32>
  %1 = call @public(%a) : (tensor<2xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

module attributes {hp.synchronous} {
  hypershard.mesh @m = <["dp"=2]>

  // CHECK-LABEL: func.func private @block(
  // CHECK: all_gather
  func.func private @block(%a: tensor<2xf32>) -> tensor<4xf32> {
    %0 = hypershard.all_gather %a over @m {"dp"} dim 0 : tensor<2xf32> -> tensor<4xf32>
    %1 = math.exp %0 : tensor<4xf32>
    return %1 : tensor<4xf32>
  }
  func.func @main(%a: tensor<2xf32>) -> tensor<4xf32> {
    %0 = call @block(%a) : (tensor<2xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
