// What resharding refuses.
// RUN: hp-opt %s -split-input-file -verify-diagnostics -hypershard-propagate-shardings -hypershard-insert-reshards

hypershard.mesh @m = <["a"=2]>
func.func @kinds(%x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}], partial=<sum {"a"}>>}) -> tensor<8xf32> {
  // expected-error @below {{cannot reshard 'tensor<8xf32>' from #hypershard.sharding<@m, [{}], partial=<sum {"a"}>> to #hypershard.sharding<@m, [{}], partial=<max {"a"}>>}}
  %0 = hypershard.constraint %x <@m, [{}], partial=<max {"a"}>> : tensor<8xf32>
  return %0 : tensor<8xf32>
}
