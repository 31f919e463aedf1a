// What partition may not leave behind.
// RUN: hp-opt %s -split-input-file -verify-diagnostics -hypershard-verify-partitioned

hypershard.mesh @m = <["a"=2]>
// expected-error @below {{expected no sharding to be left on argument 0}}
func.func @argument(%x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) {
  return
}

// -----

hypershard.mesh @m = <["a"=2]>
// expected-error @below {{expected no sharding to be left on result 0}}
func.func @result(%x: tensor<8xf32>) -> (tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) {
  return %x : tensor<8xf32>
}

// -----

hypershard.mesh @m = <["a"=2]>
func.func @op(%x: tensor<8xf32>) {
  // expected-error @below {{expected no sharding to be left after partition}}
  %0 = math.exp %x {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>} : tensor<8xf32>
  return
}

// -----

hypershard.mesh @m = <["a"=2]>
func.func @annotation(%x: tensor<8xf32>) {
  // expected-error @below {{expected a local program}}
  %0 = hypershard.constraint %x <@m, [{"a"}]> : tensor<8xf32>
  return
}
