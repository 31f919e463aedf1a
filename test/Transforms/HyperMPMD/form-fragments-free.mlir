// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A mask that the first function makes of positions, which another makes of nothing, is made on both groups; what it makes of
// a parameter or by a product is moved, and so is nothing that only its own group reads.
// RUN: hp-opt %s --pass-pipeline='builtin.module(hypermpmd-form-fragments{plan={{"groups":[{"name":"a","axes":[["tp",1]]},{"name":"b","axes":[["tp",1]]}],"stages":[{"group":"a","blocks":["embed"]},{"group":"b","blocks":["head"]}]}}},hypermpmd-infer-transfers)' | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK: %[[A:.*]]:3 = hypermpmd.fragment on "a" stage 0 forward
// CHECK-NOT: @embed_free
// CHECK: func.call @embed_rest(%{{.*}}, %{{.*}}) {hp.path = "embed"} : (tensor<4x2xf32>, tensor<4x4xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x4xf32>)
// CHECK: hypermpmd.yield
// CHECK-COUNT-3: hypermpmd.transfer %[[A]]
// CHECK-NOT: hypermpmd.transfer
// CHECK: hypermpmd.fragment on "b" stage 1 forward
// CHECK: %[[P:.*]] = func.call @positions_free()
// CHECK-NOT: hp.path
// CHECK: %[[M:.*]] = func.call @embed_free(%{{.*}}, %[[P]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
// CHECK: func.call @head(%{{.*}}, %[[M]], %{{.*}}, %{{.*}}) {hp.path = "head"}
// CHECK-NOT: hypermpmd.transfer
// CHECK: return
func.func @main(%w: tensor<4x2xf32> {hp.name = "w", hp.role = "parameter"}, %x: tensor<4xf32> {hp.name = "x", hp.role = "input"},
                %y: tensor<4x4xf32> {hp.name = "y", hp.role = "input"}) -> tensor<4x2xf32> {
  %p = call @positions() {hp.path = "embed"} : () -> tensor<4xf32>
  %e:4 = call @embed(%w, %x, %p, %y) {hp.path = "embed"} : (tensor<4x2xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x4xf32>) -> (tensor<4x2xf32>, tensor<4x4xf32>, tensor<4x2xf32>, tensor<4x4xf32>)
  %h = call @head(%e#0, %e#1, %e#2, %e#3) {hp.path = "head"} : (tensor<4x2xf32>, tensor<4x4xf32>, tensor<4x2xf32>, tensor<4x4xf32>) -> tensor<4x2xf32>
  return %h : tensor<4x2xf32>
}
func.func private @positions() -> tensor<4xf32> {
  %p = arith.constant dense<[0.0, 1.0, 2.0, 3.0]> : tensor<4xf32>
  return %p : tensor<4xf32>
}
// CHECK: func.func private @embed_free(
// CHECK-NOT: math.exp
// CHECK: func.func private @embed_rest(
#rows = affine_map<(i, j) -> (i)>
#columns = affine_map<(i, j) -> (j)>
#both = affine_map<(i, j) -> (i, j)>
func.func private @embed(%w: tensor<4x2xf32>, %x: tensor<4xf32>, %p: tensor<4xf32>, %y: tensor<4x4xf32>) -> (tensor<4x2xf32>, tensor<4x4xf32>, tensor<4x2xf32>, tensor<4x4xf32>) {
  %a = math.exp %w : tensor<4x2xf32>
  %empty = tensor.empty() : tensor<4x4xf32>
  %mask = linalg.generic {indexing_maps = [#rows, #columns, #both], iterator_types = ["parallel", "parallel"]} ins(%x, %p : tensor<4xf32>, tensor<4xf32>) outs(%empty : tensor<4x4xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = arith.subf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<4x4xf32>
  %b = arith.negf %w : tensor<4x2xf32>
  %zero = arith.constant dense<0.0> : tensor<4x4xf32>
  %square = linalg.matmul ins(%y, %y : tensor<4x4xf32>, tensor<4x4xf32>) outs(%zero : tensor<4x4xf32>) -> tensor<4x4xf32>
  %cube = linalg.matmul ins(%square, %y : tensor<4x4xf32>, tensor<4x4xf32>) outs(%zero : tensor<4x4xf32>) -> tensor<4x4xf32>
  %fourth = linalg.matmul ins(%cube, %y : tensor<4x4xf32>, tensor<4x4xf32>) outs(%zero : tensor<4x4xf32>) -> tensor<4x4xf32>
  %fifth = linalg.matmul ins(%fourth, %y : tensor<4x4xf32>, tensor<4x4xf32>) outs(%zero : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a, %mask, %b, %fifth : tensor<4x2xf32>, tensor<4x4xf32>, tensor<4x2xf32>, tensor<4x4xf32>
}
func.func private @head(%a: tensor<4x2xf32>, %mask: tensor<4x4xf32>, %b: tensor<4x2xf32>, %c: tensor<4x4xf32>) -> tensor<4x2xf32> {
  %r = arith.addf %a, %b : tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}
