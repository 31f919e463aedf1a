// Calls whose arguments are stored differently get functions of their own; calls that agree share one.
// CHECK-LABEL: func.func @main(
// CHECK:         call @block(%{{.*}})
// CHECK-NEXT:    call @[[OTHER:block_.*]](%
// CHECK-NEXT:    call @block(%
// CHECK:       func.func private @block(%[[W:.*]]: tensor<4xf32> {hypershard.sharding
// CHECK-NEXT:    %[[U:.*]] = hypershard.constraint %[[W]] <@m, [{}]>
// CHECK-NEXT:    return %[[U]]
// CHECK:       func.func private @[[OTHER]](%[[V:.*]]: tensor<4xf32>)
// CHECK-NEXT:    return %[[V]]
func.func @main(%w0: tensor<4xf32> {hp.name = "w0"}, %w1: tensor<4xf32> {hp.name = "w1"}, %w2: tensor<4xf32> {hp.name = "w2"})
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = call @block(%w0) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @block(%w1) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = call @block(%w2) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
func.func private @block(%w: tensor<4xf32>) -> tensor<4xf32> {
  return %w : tensor<4xf32>
}

