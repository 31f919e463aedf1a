// A local program: collectives, no shardings.
// RUN: hp-opt %s -hypershard-verify-partitioned | FileCheck %s

hypershard.mesh @m = <["a"=2]>
// CHECK-LABEL: func @main
func.func @main(%x: tensor<4xf32>) -> tensor<8xf32> {
  %0 = hypershard.all_gather %x over @m {"a"} dim 0 : tensor<4xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
