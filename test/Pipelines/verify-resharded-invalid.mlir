// Programs that cannot be partitioned as they stand.
// RUN: hp-opt %s -split-input-file -verify-diagnostics -hypershard-verify-resharded

hypershard.mesh @m = <["a"=2]>
func.func @rule(%x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) {
  // expected-error @below {{the shardings of its operands and results do not fit its sharding rule: ([i]) -> ([i]) {i=8}}}
  %0 = math.exp %x {hypershard.sharding = #hypershard.sharding<@m, [{}]>} : tensor<8xf32>
  return
}

// -----

hypershard.mesh @m = <["a"=2]>
func.func @annotation(%x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) {
  // expected-error @below {{expected no annotation to be left after resharding}}
  %0 = hypershard.constraint %x <@m, [{}]> {hypershard.sharding = #hypershard.sharding<@m, [{}]>} : tensor<8xf32>
  return
}

// -----

hypershard.mesh @m = <["a"=2]>
func.func @edge(%x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>})
    -> (tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}]>}) {
  // expected-error @below {{operand 0 is to become #hypershard.sharding<@m, [{}]> but is #hypershard.sharding<@m, [{"a"}]>}}
  return %x : tensor<8xf32>
}
