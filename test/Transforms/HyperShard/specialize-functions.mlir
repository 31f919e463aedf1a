// Callers that annotate a function differently get clones of it.
// RUN: hp-opt %s -split-input-file -hypershard-specialize-functions | FileCheck %s

hypershard.mesh @m = <["a"=2]>
// The first way of calling keeps the function.
// CHECK-LABEL: func private @block(
// CHECK-SAME: %{{.*}}: tensor<8xf32>, %{{.*}}: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}
func.func private @block(%x: tensor<8xf32>, %w: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @inner(%x, %w) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
// What a caller learns it hands on.
// CHECK-LABEL: func private @inner(
// CHECK-SAME: %{{.*}}: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}
func.func private @inner(%x: tensor<8xf32>, %w: tensor<8xf32>) -> tensor<8xf32> {
  %0 = arith.addf %x, %w : tensor<8xf32>
  return %0 : tensor<8xf32>
}
// CHECK-LABEL: func @main
func.func @main(%x: tensor<8xf32>, %a: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>},
                %b: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}]>},
                %c: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) -> tensor<8xf32> {
  // CHECK: call @block(%{{.*}}, %arg1)
  %0 = call @block(%x, %a) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  // CHECK: call @[[OTHER:block_.*]](%{{.*}}, %arg2)
  %1 = call @block(%0, %b) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  // CHECK: call @block(%{{.*}}, %arg3)
  %2 = call @block(%1, %c) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}
// CHECK: func private @[[OTHER]](
// CHECK-SAME: %{{.*}}: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}]>}

// -----

// All callers alike: nothing is cloned.
// CHECK-LABEL: func private @same
// CHECK-NOT: func private
func.func private @same(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @same(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @same(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
