// The constraint stands in the innermost function that uses the argument; one that only hands it on has none.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT:    call @outer
// CHECK-NEXT:    return
// CHECK:       func.func private @outer(%{{.*}}: tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"dp"}]>})
// CHECK-NEXT:    call @inner
// CHECK-NEXT:    return
// CHECK:       func.func private @inner(%[[W:.*]]: tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"dp"}]>})
// CHECK-NEXT:    hypershard.constraint %[[W]] <@m, [{}]>
func.func @main(%w: tensor<4xf32> {hp.name = "w"}) -> tensor<4xf32> {
  %0 = call @outer(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @outer(%w: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @inner(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @inner(%w: tensor<4xf32>) -> tensor<4xf32> {
  return %w : tensor<4xf32>
}
