// Operands, results and data-flow edges agree.
// RUN: hp-opt %s -hypershard-verify-resharded | FileCheck %s

hypershard.mesh @m = <["a"=2]>
// CHECK-LABEL: func @main
func.func @main(%x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>})
    -> (tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}]>}) {
  %0 = math.exp %x {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>} : tensor<8xf32>
  %1 = hypershard.all_gather %0 over @m {"a"} dim 0 {hypershard.sharding = #hypershard.sharding<@m, [{}]>} : tensor<8xf32> -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
