// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reshards that no collectives can do.
// RUN: hp-opt --hypershard-lower-reshards --split-input-file --verify-diagnostics %s

hypershard.mesh @m = <["a"=2, "b"=2]>
// expected-note@+1 {{the operand has #hypershard.sharding<@m, [{"a"}]>}}
func.func @copies_to_sum(%x: tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) {
  // expected-error@+1 {{expected a sharding that the operand can be brought to, but copies cannot become the terms of a partial value over sum {"b"}; only terms of max, min, and, or, avg may be equal}}
  %0 = hypershard.reshard %x <@m, [{"a"}], partial=<sum {"b"}>> : tensor<4xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=4]>
func.func @part_to_whole(%x: tensor<4xf32>) {
  // expected-note@+1 {{the operand has}}
  %0 = arith.negf %x {hypershard.sharding = #hypershard.sharding<@m, [{}], partial=<prod {"a":(1)2}>>} : tensor<4xf32>
  // expected-error@+1 {{copies cannot become the terms of a partial value over prod {"a"}}}
  %1 = hypershard.reshard %0 <@m, [{}], partial=<prod {"a"}>> : tensor<4xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=2, "b"=2]>
func.func @other_kind(%x: tensor<4xf32>) {
  // expected-note@+1 {{the operand has}}
  %0 = arith.negf %x {hypershard.sharding = #hypershard.sharding<@m, [{}], partial=<sum {"a"}>>} : tensor<4xf32>
  // expected-error@+1 {{a value that is partial over sum {"a"} cannot become partial over max {"a"}; reduce it first}}
  %1 = hypershard.reshard %0 <@m, [{}], partial=<max {"a"}>> : tensor<4xf32>
  return
}

// -----
// As many terms, but of sizes that do not change places.
hypershard.mesh @m = <["a"=4, "b"=6]>
func.func @sizes_do_not_fit(%x: tensor<4xf32>) {
  // expected-note@+1 {{the operand has}}
  %0 = arith.negf %x {hypershard.sharding = #hypershard.sharding<@m, [{}], partial=<sum {"b"}>>} : tensor<4xf32>
  // expected-error@+1 {{copies cannot become the terms of a partial value over sum {"a"}}}
  %1 = hypershard.reshard %0 <@m, [{}], partial=<sum {"a"}>> : tensor<4xf32>
  return
}
