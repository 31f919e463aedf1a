func.func @main(%x: tensor<4x4xf32> {hp.name = "x"}) -> (tensor<4x4xf32> {hp.name = "y"}) {
  %0 = call @f(%x) {hp.path = "b.0"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
func.func private @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  return %x : tensor<4x4xf32>
}
