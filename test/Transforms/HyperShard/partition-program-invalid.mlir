// RUN: hp-opt %s --hypershard-partition-program --split-input-file --verify-diagnostics
// A program that is not fully resharded is refused where it does not fit.

hypershard.mesh @m = <["a"=2]>
func.func @reshard(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{expected reshards to be lowered; run hypershard-lower-reshards first}}
  %y = hypershard.reshard %x <@m, [{"a"}]> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>} : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

hypershard.mesh @m = <["a"=2]>
func.func @constraint(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{expected its operand to be split as #hypershard.sharding<@m, [{"a"}]> but got #hypershard.sharding<@m, [{}]>; run hypershard-insert-reshards first}}
  %y = hypershard.constraint %x <@m, [{"a"}]> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>} : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

hypershard.mesh @m = <["a"=2]>
// expected-note@+1 {{an operand is #hypershard.sharding<@m, [{"a"}]>}}
func.func @misfit(%x: tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) -> tensor<4xf32> {
  // expected-error@+4 {{expected operands and results to be split as its rule allows, with every reshard inserted}}
  // expected-note@+3 {{the rule is ([i]) -> ([i]) {i=4}}}
  // expected-note@+2 {{a result is #hypershard.sharding<@m, [{}]>}}
  // expected-note@+1 {{run hypershard-insert-reshards and hypershard-lower-reshards first}}
  %y = math.exp %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

hypershard.mesh @m = <["a"=2]>
func.func @unknown(%x: tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) -> f32 {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{expected whole tensors, because it has no sharding rule, but got #hypershard.sharding<@m, [{"a"}]>; run hypershard-insert-reshards first}}
  %y = tensor.extract %x[%c0] : tensor<4xf32>
  return %y : f32
}

// -----

hypershard.mesh @m = <["a"=2]>
func.func @gather(%x: tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) -> tensor<4xf32> {
  // expected-error@+1 {{expected its sharding to be #hypershard.sharding<@m, [{"a"}]>, which is what it makes of its operand's, but got #hypershard.sharding<@m, [{"a"}]>}}
  %y = hypershard.all_gather %x over @m {"a"} dim 0 {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>} : tensor<4xf32> -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

hypershard.mesh @m = <["a"=2]>
func.func @reduce(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{expected an operand that is partial over its axes but got #hypershard.sharding<@m, [{}]>}}
  %y = hypershard.all_reduce %x over @m {"a"} <sum> {hypershard.sharding = #hypershard.sharding<@m, [{}]>} : tensor<4xf32> -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

hypershard.mesh @m = <["a"=2, "b"=2]>
func.func @permute(%x: tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a", "b"}]>}) -> tensor<4xf32> {
  // expected-error@+1 {{does not bring the parts of #hypershard.sharding<@m, [{"a", "b"}]> to where #hypershard.sharding<@m, [{"b", "a"}]> needs them}}
  %y = hypershard.permute %x over @m {"a", "b"} to {"a", "b"} {hypershard.sharding = #hypershard.sharding<@m, [{"b", "a"}]>} : tensor<4xf32> -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

hypershard.mesh @m = <["a"=2, "b"=4]>
func.func @permute_sizes(%x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) -> tensor<8xf32> {
  // expected-error@+1 {{expected operand and result to be split into as many parts but got #hypershard.sharding<@m, [{"a"}]> and #hypershard.sharding<@m, [{"b"}]>}}
  %y = hypershard.permute %x over @m {"a", "b"} to {"b", "a"} {hypershard.sharding = #hypershard.sharding<@m, [{"b"}]>} : tensor<8xf32> -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

hypershard.mesh @m = <["a"=2]>
func.func @manual(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{expected operand 0 to be split as #hypershard.sharding<@m, [{"a"}]> but got #hypershard.sharding<@m, [{}]>}}
  %y = hypershard.manual (%x) in [#hypershard.sharding<@m, [{"a"}]>] out [#hypershard.sharding<@m, [{"a"}]>] {
  ^bb0(%l: tensor<2xf32>):
    hypershard.return %l : tensor<2xf32>
  } {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

hypershard.mesh @m = <["a"=2]>
func.func @manual_result(%x: tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) -> tensor<4xf32> {
  // expected-error@+1 {{expected result 0 to be split as #hypershard.sharding<@m, [{"a"}]> but got #hypershard.sharding<@m, [{}]>}}
  %y = hypershard.manual (%x) in [#hypershard.sharding<@m, [{"a"}]>] out [#hypershard.sharding<@m, [{"a"}]>] {
  ^bb0(%l: tensor<2xf32>):
    hypershard.return %l : tensor<2xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

hypershard.mesh @m = <["a"=2]>
func.func @result(%x: tensor<4xf32>) -> (tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) {
  // expected-error@+1 {{expected operand 0 to be split as what it feeds, #hypershard.sharding<@m, [{"a"}]>, but got #hypershard.sharding<@m, [{}]>; run hypershard-insert-reshards first}}
  return %x : tensor<4xf32>
}

// -----

hypershard.mesh @m = <["a"=2]>
// expected-error@+1 {{expected argument 0 of a function without a body to be whole but got #hypershard.sharding<@m, [{"a"}]>}}
func.func private @external(tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>})

// -----

hypershard.mesh @m = <["a"=2]>
func.func private @takes(%x: tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) {
  return
}
func.func @call(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected operand 0 to be split as what it feeds, #hypershard.sharding<@m, [{"a"}]>, but got #hypershard.sharding<@m, [{}]>; run hypershard-insert-reshards first}}
  call @takes(%x) : (tensor<4xf32>) -> ()
  return
}

// -----

hypershard.mesh @m = <["a"=2]>
// expected-note@-1 {{the first is @m}}
// expected-error@+1 {{expected one mesh in the module but got a second, @n}}
hypershard.mesh @n = <["b"=2]>
func.func @two(%x: tensor<4xf32>) {
  return
}

// -----

hypershard.mesh @m = <["a"=2]>
func.func @blocks(%x: tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) -> tensor<4xf32> {
  // expected-error@+1 {{expected structured control flow (scf) around split tensors but got several blocks}}
  %y = math.exp %x {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>} : tensor<4xf32>
  cf.br ^bb1
^bb1:
  return %y : tensor<4xf32>
}

// -----

hypershard.mesh @m = <["a"=2, "b"=2]>
// expected-note@+1 {{an operand is #hypershard.sharding<@m, [{"a"}, {"b"}]>}}
func.func @reshape(%x: tensor<2x3xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {"b"}]>}) -> tensor<6xf32> {
  // expected-error@+4 {{expected operands and results to be split as its rule allows, with every reshard inserted}}
  // expected-note@+3 {{the rule is ([i, j]) -> ([ij])}}
  // expected-note@+2 {{a result is #hypershard.sharding<@m, [{"a", "b"}]>}}
  // expected-note@+1 {{run hypershard-insert-reshards and hypershard-lower-reshards first}}
  %y = tensor.collapse_shape %x [[0, 1]] {hypershard.sharding = #hypershard.sharding<@m, [{"a", "b"}]>} : tensor<2x3xf32> into tensor<6xf32>
  return %y : tensor<6xf32>
}

// -----

hypershard.mesh @m = <["a"=2]>
func.func @pad(%x: tensor<2x3xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {}]>}, %l: index) -> tensor<4x5xf32> {
  %c0 = arith.constant 0.0 : f32
  // expected-error@+1 {{cannot be split with a padding of dimension 1 that is not constant}}
  %y = tensor.pad %x low[1, %l] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %c0 : f32
  } {hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {}]>} : tensor<2x3xf32> to tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}
