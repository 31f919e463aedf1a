// Tensors that propagation left without a closed sharding.
// RUN: hp-opt %s -split-input-file -verify-diagnostics -hypershard-verify-propagated

// expected-error @below {{argument 0 has no sharding}}
func.func @argument(%x: tensor<8xf32>) {
  return
}

// -----

hypershard.mesh @m = <["a"=2]>
func.func @result(%x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) {
  // expected-error @below {{result 0 has no sharding}}
  %0 = math.exp %x : tensor<8xf32>
  return
}

// -----

hypershard.mesh @m = <["a"=2]>
// expected-error @below {{argument 0 has a sharding that is not closed: #hypershard.sharding<@m, [{"a", ?}]>}}
func.func @open(%x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a", ?}]>}) {
  return
}

// -----

hypershard.mesh @m = <["a"=2]>
// expected-error @below {{result 0 has no sharding}}
func.func @function_result(%x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
