// Every tensor has a closed sharding.
// RUN: hp-opt %s -hypershard-verify-propagated | FileCheck %s

hypershard.mesh @m = <["a"=2]>
// CHECK-LABEL: func @main
func.func @main(%x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>})
    -> (tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) {
  %0 = math.exp %x {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}
