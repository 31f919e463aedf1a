// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions are issued as soon as their operand is there; gathers one reader ahead; what computes keeps its order, and so
// do sends and receives.
// RUN: hp-opt %s --split-input-file --hypershard-reorder-collectives | FileCheck %s

hypershard.mesh @m = <["dp"=2]>

func.func private @forward(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = linalg.matmul ins(%x, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%x : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// CHECK-LABEL: func.func @gathers_ahead(
func.func @gathers_ahead(%x: tensor<64x64xf32>, %a: tensor<32x64xf32>, %b: tensor<32x64xf32>, %c: tensor<32x64xf32>) -> tensor<64x64xf32> {
  // CHECK-NEXT: %[[A:.*]] = hypershard.all_gather %arg1
  // CHECK-NEXT: %[[B:.*]] = hypershard.all_gather %arg2
  // CHECK-NEXT: %[[X0:.*]] = call @forward(%arg0, %[[A]])
  // CHECK-NEXT: %[[C:.*]] = hypershard.all_gather %arg3
  // CHECK-NEXT: %[[X1:.*]] = call @forward(%[[X0]], %[[B]])
  // CHECK-NEXT: %[[X2:.*]] = call @forward(%[[X1]], %[[C]])
  // CHECK-NEXT: return %[[X2]]
  %w0 = hypershard.all_gather %a over @m {"dp"} dim 0 : tensor<32x64xf32> -> tensor<64x64xf32>
  %x0 = call @forward(%x, %w0) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %w1 = hypershard.all_gather %b over @m {"dp"} dim 0 : tensor<32x64xf32> -> tensor<64x64xf32>
  %x1 = call @forward(%x0, %w1) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %w2 = hypershard.all_gather %c over @m {"dp"} dim 0 : tensor<32x64xf32> -> tensor<64x64xf32>
  %x2 = call @forward(%x1, %w2) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %x2 : tensor<64x64xf32>
}

// The view comes along, to where it is needed.
// CHECK-LABEL: func.func @reduces_early(
func.func @reduces_early(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> (tensor<4096xf32>, tensor<64x64xf32>) {
  // CHECK-NEXT: %[[G0:.*]] = call @forward(%arg0, %arg1)
  // CHECK-NEXT: %[[R0:.*]] = hypershard.all_reduce %[[G0]]
  // CHECK-NEXT: %[[G1:.*]] = call @forward(%[[G0]], %arg1)
  // CHECK-NEXT: %[[R1:.*]] = hypershard.all_reduce %[[G1]]
  // CHECK-NEXT: %[[V:.*]] = tensor.collapse_shape %[[R0]]
  // CHECK-NEXT: return %[[V]], %[[R1]]
  %g0 = call @forward(%x, %w) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %g1 = call @forward(%g0, %w) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %r0 = hypershard.all_reduce %g0 over @m {"dp"} <sum> : tensor<64x64xf32> -> tensor<64x64xf32>
  %v = tensor.collapse_shape %r0 [[0, 1]] : tensor<64x64xf32> into tensor<4096xf32>
  %r1 = hypershard.all_reduce %g1 over @m {"dp"} <sum> : tensor<64x64xf32> -> tensor<64x64xf32>
  return %v, %r1 : tensor<4096xf32>, tensor<64x64xf32>
}

// -----

// A send is issued when its operand is there; small ones that are a moment apart wait for each other, and small receives
// come together, one reader ahead. Their order among each other stays.
#t = #hypermpmd.topology<"a" = <["dp"=1]>, "b" = <["dp"=1]>>
module attributes {hypermpmd.topology = #t, hypermpmd.group = "a"} {
  func.func private @work(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {
    %0 = linalg.matmul ins(%x, %x : tensor<512x512xf32>, tensor<512x512xf32>) outs(%x : tensor<512x512xf32>) -> tensor<512x512xf32>
    return %0 : tensor<512x512xf32>
  }
  // CHECK-LABEL: func.func @messages(
  func.func @messages(%x: tensor<512x512xf32>, %a: tensor<4xf32>) -> (tensor<512x512xf32>, tensor<4xf32>, tensor<4xf32>) {
    // CHECK-NEXT: %[[E:.*]] = math.exp %arg1
    // CHECK-NEXT: hypermpmd.send %arg1 to "b" tag 0
    // CHECK-NEXT: hypermpmd.send %[[E]] to "b" tag 1
    // CHECK-NEXT: %[[R0:.*]] = hypermpmd.recv from "b" tag 0
    // CHECK-NEXT: %[[R1:.*]] = hypermpmd.recv from "b" tag 1
    // CHECK-NEXT: %[[X:.*]] = call @work(%arg0)
    // CHECK-NEXT: %[[Y:.*]] = call @work(%[[X]])
    // CHECK-NEXT: math.exp %[[R0]]
    // CHECK-NEXT: math.exp %[[R1]]
    %e = math.exp %a : tensor<4xf32>
    %y = call @work(%x) : (tensor<512x512xf32>) -> tensor<512x512xf32>
    %z = call @work(%y) : (tensor<512x512xf32>) -> tensor<512x512xf32>
    hypermpmd.send %a to "b" tag 0 : tensor<4xf32>
    hypermpmd.send %e to "b" tag 1 : tensor<4xf32>
    %0 = hypermpmd.recv from "b" tag 0 : tensor<4xf32>
    %1 = math.exp %0 : tensor<4xf32>
    %2 = hypermpmd.recv from "b" tag 1 : tensor<4xf32>
    %3 = math.exp %2 : tensor<4xf32>
    return %z, %1, %3 : tensor<512x512xf32>, tensor<4xf32>, tensor<4xf32>
  }
}
