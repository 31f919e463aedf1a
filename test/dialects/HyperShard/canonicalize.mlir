// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A reshard that changes nothing goes away, and one on the way to another is skipped unless somebody else reads it.
// RUN: hp-opt --canonicalize %s | FileCheck %s

hypershard.mesh @m = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @same_sharding
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>
func.func @same_sharding(%x: tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) -> tensor<4xf32> {
  // CHECK-NEXT: return %[[X]]
  %0 = hypershard.reshard %x <@m, [{"a"}]> : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @through_another
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>
func.func @through_another(%x: tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) -> tensor<4xf32> {
  // CHECK-NEXT: %[[Y:.*]] = hypershard.reshard %[[X]] <@m, [{"b"}]>
  // CHECK-NEXT: return %[[Y]]
  %0 = hypershard.reshard %x <@m, [{}]> : tensor<4xf32>
  %1 = hypershard.reshard %0 <@m, [{"b"}]> : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// The value in the middle has another user: nothing changes.
// CHECK-LABEL: func.func @both_are_read
func.func @both_are_read(%x: tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[Y:.*]] = hypershard.reshard %{{.*}} <@m, [{}]>
  // CHECK-NEXT: %[[Z:.*]] = hypershard.reshard %[[Y]] <@m, [{"b"}]>
  // CHECK-NEXT: return %[[Y]], %[[Z]]
  %0 = hypershard.reshard %x <@m, [{}]> : tensor<4xf32>
  %1 = hypershard.reshard %0 <@m, [{"b"}]> : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// A sharding that is not known is not the same.
// CHECK-LABEL: func.func @unknown
func.func @unknown(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: hypershard.reshard
  %0 = hypershard.reshard %x <@m, [{}]> : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Collectives have no side effects: one that nobody reads goes away.
// CHECK-LABEL: func.func @unread
func.func @unread(%x: tensor<4xf32>) {
  // CHECK-NEXT: return
  %0 = hypershard.all_gather %x over @m {"a"} dim 0 : tensor<4xf32> -> tensor<8xf32>
  %1 = hypershard.axis_index @m {"b"}
  return
}
