// A program as import hands it over.
// RUN: hp-opt %s -hp-verify-imported | FileCheck %s

// CHECK-LABEL: func @main
func.func @main(%x: tensor<8xf32> {hp.name = "x", hp.role = "input"}, %w: tensor<8xf32> {hp.name = "fc.weight", hp.role = "parameter"}) -> tensor<8xf32> {
  %0 = arith.addf %x, %w : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// A channel whose reader gets what was made two steps ago.
// CHECK-LABEL: func @channel
// CHECK-SAME: hp.staleness = 2
// RUN: hp-opt %s -hp-verify-imported=entry=channel -o /dev/null
func.func @channel(%c1: tensor<8xf32> {hp.name = "c.1", hp.staleness = 1 : i64},
                   %c2: tensor<8xf32> {hp.name = "c", hp.staleness = 2 : i64})
    -> (tensor<8xf32>, tensor<8xf32> {hp.updates = "c.1"}, tensor<8xf32> {hp.updates = "c"}) {
  %0 = arith.addf %c2, %c2 : tensor<8xf32>
  return %0, %0, %c1 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
