// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is still in its global form, is over a group of one, or has no element is left as it is; so is a program without a mesh.
// RUN: hp-opt --hypershard-combine-collectives --split-input-file %s | FileCheck %s

hypershard.mesh @m = <["dp"=2, "one"=1]>
// CHECK-LABEL: func.func @global
func.func @global(%x: tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"dp"}]>}, %y: tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"dp"}]>}) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-COUNT-2: hypershard.all_gather %{{.*}} : tensor<4xf32> -> tensor<4xf32>
  %0 = hypershard.all_gather %x over @m {"dp"} dim 0 {hypershard.sharding = #hypershard.sharding<@m, [{}]>} : tensor<4xf32> -> tensor<4xf32>
  %1 = hypershard.all_gather %y over @m {"dp"} dim 0 {hypershard.sharding = #hypershard.sharding<@m, [{}]>} : tensor<4xf32> -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @nothing_to_move
func.func @nothing_to_move(%x: tensor<4xf32>, %y: tensor<4xf32>, %n: tensor<0xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<0xf32>, tensor<0xf32>) {
  // CHECK-COUNT-4: hypershard.all_reduce
  // CHECK-NOT: insert_slice
  %0 = hypershard.all_reduce %x over @m {"one"} <sum> : tensor<4xf32> -> tensor<4xf32>
  %1 = hypershard.all_reduce %y over @m {"one"} <sum> : tensor<4xf32> -> tensor<4xf32>
  %2 = hypershard.all_reduce %n over @m {"dp"} <sum> : tensor<0xf32> -> tensor<0xf32>
  %3 = hypershard.all_reduce %n over @m {"dp"} <sum> : tensor<0xf32> -> tensor<0xf32>
  return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<0xf32>, tensor<0xf32>
}

// -----
// CHECK-LABEL: func.func @no_mesh
// CHECK-NEXT: return
func.func @no_mesh() { return }
