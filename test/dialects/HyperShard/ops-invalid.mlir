// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every message of the ops' verifiers.
// RUN: hp-opt %s -split-input-file -verify-diagnostics

func.func @f() {
  // expected-error@+1 {{expects parent op 'builtin.module'}}
  hypershard.mesh @m = <["a"=2]>
  return
}

// -----
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected a mesh of the module but got @m}}
  %0 = hypershard.constraint %x <@m, [{}]> : tensor<4xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected 1 dimensions for 'tensor<4xf32>' but the sharding has 2}}
  %0 = hypershard.reshard %x <@m, [{}, {"a"}]> : tensor<4xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected an axis of the mesh #hypershard.mesh<["a"=2]> but got "b"}}
  %0 = hypershard.constraint %x <@m, [{"b"}]> : tensor<4xf32>
  return
}

// -----
// Manual, C1.
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected one sharding and one local value per operand but got 0 and 1 for 1}}
  %0 = hypershard.manual(%x) in [] out [#hypershard.sharding<@m, [{"a"}]>] {
  ^bb0(%l: tensor<2xf32>):
    hypershard.return %l : tensor<2xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected one sharding and one local value per result but got 1 and 2 for 1}}
  %0 = hypershard.manual(%x) in [#hypershard.sharding<@m, [{"a"}]>] out [#hypershard.sharding<@m, [{"a"}]>] {
  ^bb0(%l: tensor<2xf32>):
    hypershard.return %l, %l : tensor<2xf32>, tensor<2xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=2]>
hypershard.mesh @n = <["a"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected all shardings on one mesh}}
  %0 = hypershard.manual(%x) in [#hypershard.sharding<@m, [{"a"}]>] out [#hypershard.sharding<@n, [{"a"}]>] {
  ^bb0(%l: tensor<2xf32>):
    hypershard.return %l : tensor<2xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected a mesh of the module but got @m}}
  %0 = hypershard.manual(%x) in [#hypershard.sharding<@m, [{"a"}]>] out [#hypershard.sharding<@m, [{"a"}]>] {
  ^bb0(%l: tensor<2xf32>):
    hypershard.return %l : tensor<2xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
// Manual, C2.
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<5xf32>) {
  // expected-error@+1 {{expected the split dimensions of operand 0 ('tensor<5xf32>') to be divisible under #hypershard.sharding<@m, [{"a"}]>}}
  %0 = hypershard.manual(%x) in [#hypershard.sharding<@m, [{"a"}]>] out [#hypershard.sharding<@m, [{"a"}]>] {
  ^bb0(%l: tensor<3xf32>):
    hypershard.return %l : tensor<3xf32>
  } : (tensor<5xf32>) -> tensor<5xf32>
  return
}

// -----
// Manual, C3.
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected the local type of operand 0 to be 'tensor<2xf32>' but got 'tensor<4xf32>'}}
  %0 = hypershard.manual(%x) in [#hypershard.sharding<@m, [{"a"}]>] out [#hypershard.sharding<@m, [{}]>] {
  ^bb0(%l: tensor<4xf32>):
    hypershard.return %l : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected the local type of result 0 to be 'tensor<4xf32>' but got 'tensor<2xf32>'}}
  %0 = hypershard.manual(%x) in [#hypershard.sharding<@m, [{"a"}]>] out [#hypershard.sharding<@m, [{}]>] {
  ^bb0(%l: tensor<2xf32>):
    hypershard.return %l : tensor<2xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected its body to end with hypershard.return}}
  %0 = hypershard.manual(%x) in [#hypershard.sharding<@m, [{}]>] out [#hypershard.sharding<@m, [{}]>] {
  ^bb0(%l: tensor<4xf32>):
    llvm.unreachable
  } : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expects parent op 'hypershard.manual'}}
  hypershard.return %x : tensor<4xf32>
}

// -----
// The group of a collective.
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected a mesh of the module but got @m}}
  %0 = hypershard.all_reduce %x over @m {"a"} <sum> : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected an axis of the mesh #hypershard.mesh<["a"=2]> but got "b"}}
  %0 = hypershard.all_reduce %x over @m {"b"} <sum> : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected each axis once but got "a" twice}}
  %0 = hypershard.all_gather %x over @m {"a", "a"} dim 0 : tensor<4xf32> -> tensor<16xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=4]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected sub-axes "a":(1)2 and "a":(2)2 to be written as one}}
  %0 = hypershard.axis_index @m {"a":(1)2, "a":(2)2}
  return
}

// -----
hypershard.mesh @m = <["a"=4]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected the size of sub-axis of "a" to be at least 2 but got 1}}
  %0 = hypershard.axis_index @m {"a":(1)1}
  return
}

// -----
hypershard.mesh @m = <["a"=4]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected the pre-size of sub-axis of "a" to be at least 1}}
  %0 = hypershard.axis_index @m {"a":(0)2}
  return
}

// -----
func.func @f() {
  // expected-error@+1 {{expected a mesh of the module but got @m}}
  %0 = hypershard.axis_index @m {}
  return
}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<?xf32>) {
  // expected-error@+1 {{expected a static shape but got 'tensor<?xf32>'}}
  %0 = hypershard.all_reduce %x over @m {"a"} <sum> : tensor<?xf32> -> tensor<?xf32>
  return
}

// -----
// Dimensions.
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected dim in [0, 1) but got 1}}
  %0 = hypershard.all_gather %x over @m {"a"} dim 1 : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<f32>) {
  // expected-error@+1 {{expected dim in [0, 0) but got 0}}
  %0 = hypershard.slice_local %x over @m {"a"} dim 0 : tensor<f32> -> tensor<f32>
  return
}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected dim in [0, 1) but got -1}}
  %0 = hypershard.reduce_scatter %x over @m {"a"} <sum> dim -1 : tensor<4xf32> -> tensor<2xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected split in [0, 1) but got 1}}
  %0 = hypershard.all_to_all %x over @m {"a"} split 1 concat 0 : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected concat in [0, 1) but got 1}}
  %0 = hypershard.all_to_all %x over @m {"a"} split 0 concat 1 : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected split and concat to be different dimensions}}
  %0 = hypershard.all_to_all %x over @m {"a"} split 0 concat 0 : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected dim in [0, 1) but got 3}}
  %0 = hypershard.halo_exchange %x over @m {"a"} dim 3 of 8 window 0 step 4 size 4 : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----
// Shapes.
hypershard.mesh @m = <["a"=2, "b"=3]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected the result of a group of 6 to be 'tensor<24xf32>' but got 'tensor<8xf32>'}}
  %0 = hypershard.all_gather %x over @m {"a", "b"} dim 0 : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected the result of a group of 2 to be 'tensor<4xf32>' but got 'tensor<4xf16>'}}
  %0 = hypershard.all_reduce %x over @m {"a"} <sum> : tensor<4xf32> -> tensor<4xf16>
  return
}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected the result of a group of 2 to be 'tensor<4xf32>' but got 'tensor<2xf32>'}}
  %0 = hypershard.all_reduce %x over @m {"a"} <sum> : tensor<4xf32> -> tensor<2xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<5xf32>) {
  // expected-error@+1 {{expected dimension 0 of 'tensor<5xf32>' to be divisible by the group's 2 devices}}
  %0 = hypershard.reduce_scatter %x over @m {"a"} <sum> dim 0 : tensor<5xf32> -> tensor<2xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<5x4xf32>) {
  // expected-error@+1 {{expected dimension 0 of 'tensor<5x4xf32>' to be divisible by the group's 2 devices}}
  %0 = hypershard.all_to_all %x over @m {"a"} split 0 concat 1 : tensor<5x4xf32> -> tensor<2x8xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4x4xf32>) {
  // expected-error@+1 {{expected the result of a group of 2 to be 'tensor<2x8xf32>' but got 'tensor<8x2xf32>'}}
  %0 = hypershard.all_to_all %x over @m {"a"} split 0 concat 1 : tensor<4x4xf32> -> tensor<8x2xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<5xf32>) {
  // expected-error@+1 {{expected the result of a group of 2 to be 'tensor<3xf32>' but got 'tensor<2xf32>'}}
  %0 = hypershard.slice_local %x over @m {"a"} dim 0 : tensor<5xf32> -> tensor<2xf32>
  return
}

// -----
// In global form the type stays.
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected the result of a group of 2 to be 'tensor<4xf32>' but got 'tensor<8xf32>'}}
  %0 = hypershard.all_gather %x over @m {"a"} dim 0 {hypershard.sharding = #hypershard.sharding<@m, [{}]>} : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----
// Permutes.
hypershard.mesh @m = <["a"=2, "b"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected the same axes on both sides, reordered}}
  %0 = hypershard.permute %x over @m {"a"} to {"b"} : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=2, "b"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected the same axes on both sides, reordered}}
  %0 = hypershard.permute %x over @m {"a", "b"} to {"b"} : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----
// Halos.
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected no sharding: it exists in local programs only}}
  %0 = hypershard.halo_exchange %x over @m {"a"} dim 0 of 8 window 0 step 4 size 4 {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>} : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected global size, step and window size of at least 0}}
  %0 = hypershard.halo_exchange %x over @m {"a"} dim 0 of 8 window 0 step -4 size 4 : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected dimension 0 to have the block size 5 of 9 over 2 devices but got 4}}
  %0 = hypershard.halo_exchange %x over @m {"a"} dim 0 of 9 window 0 step 4 size 4 : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected the result of a group of 2 to be 'tensor<6xf32>' but got 'tensor<4xf32>'}}
  %0 = hypershard.halo_exchange %x over @m {"a"} dim 0 of 8 window -1 step 4 size 6 : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected global size, step and window size of at least 0}}
  %0 = hypershard.halo_exchange %x over @m {"a"} dim 0 of 8 window 0 step 4 size -1 : tensor<4xf32> -> tensor<4xf32>
  return
}
