// A program as import hands it over.
// RUN: hp-opt %s -hp-verify-imported | FileCheck %s

// CHECK-LABEL: func @main
func.func @main(%x: tensor<8xf32> {hp.name = "x", hp.role = "input"}, %w: tensor<8xf32> {hp.name = "fc.weight", hp.role = "parameter"}) -> tensor<8xf32> {
  %0 = arith.addf %x, %w : tensor<8xf32>
  return %0 : tensor<8xf32>
}
