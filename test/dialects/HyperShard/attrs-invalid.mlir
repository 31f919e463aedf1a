// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every message about meshes and shardings.
// RUN: hp-opt %s -split-input-file -verify-diagnostics

// Meshes, C1: names.
// expected-error@+1 {{expected a mesh axis to have a name}}
hypershard.mesh @m = <[""=2]>

// -----
// expected-error@+1 {{expected mesh axes of different names but got "a" twice}}
hypershard.mesh @m = <["a"=2, "b"=2, "a"=3]>

// -----
// Meshes, C2: sizes.
// expected-error@+1 {{expected mesh axis "a" to have at least 1 device but got 0}}
hypershard.mesh @m = <["a"=0]>

// -----
// expected-error@+1 {{expected mesh axis "a" to have at least 1 device but got -2}}
hypershard.mesh @m = <["a"=-2]>

// -----
// expected-error@+1 {{expected a mesh of at most 2^20 devices}}
hypershard.mesh @m = <["a"=65536, "b"=65537]>

// -----
// Meshes, C3: the order of devices.
// expected-error@+1 {{expected device_ids to hold each of 0..3 once but got [0, 1, 1, 3]}}
hypershard.mesh @m = <["a"=2, "b"=2], device_ids=[0, 1, 1, 3]>

// -----
// expected-error@+1 {{expected device_ids to hold each of 0..3 once but got [0, 2, 1]}}
hypershard.mesh @m = <["a"=4], device_ids=[0, 2, 1]>

// -----
// expected-error@+1 {{expected no device_ids for the order 0, 1, ..., 3, which is the default}}
hypershard.mesh @m = <["a"=4], device_ids=[0, 1, 2, 3]>

// -----
// References to axes.
// expected-error@+1 {{expected an axis to have a name}}
func.func private @f(tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{""}]>})

// -----
// expected-error@+1 {{expected the pre-size of sub-axis of "a" to be at least 1}}
func.func private @f(tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a":(0)2}]>})

// -----
// expected-error@+1 {{expected the size of sub-axis of "a" to be at least 2 but got 1}}
func.func private @f(tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a":(2)1}]>})

// -----
// expected-error@+1 {{expected sub-axis of "a" to end within 2^32 devices}}
func.func private @f(tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a":(4294967296)4294967296}]>})

// -----
// Dimensions.
// expected-error@+1 {{expected `?` to come last in a dimension}}
func.func private @f(tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{?, "a"}]>})

// -----
// expected-error@+1 {{expected a priority such as `p1` after a dimension}}
func.func private @f(tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}q1]>})

// -----
// expected-error@+1 {{expected a priority of at least 0 but got -1}}
func.func private @f(tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}p-1]>})

// -----
// expected-error@+1 {{expected no priority on a closed dimension without axes}}
func.func private @f(tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}p1]>})

// -----
// Partial sums.
// expected-error@+1 {{expected one of sum, max, min, prod, and, or, avg but got `mean`}}
func.func private @f(tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}], partial=<mean {"a"}>>})

// -----
// expected-error@+1 {{expected `partial` to name at least one axis}}
func.func private @f(tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}], partial=<sum {}>>})

// -----
// expected-error@+1 {{expected `replicated` or `partial`, each at most once, but got `copied`}}
func.func private @f(tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}], copied={"a"}>})

// -----
// expected-error@+1 {{expected `replicated` or `partial`, each at most once, but got `replicated`}}
func.func private @f(tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}], replicated={"a"}, replicated={"b"}>})

// -----
// Shardings, C1.
// expected-error@+1 {{expected each axis once but got "a" twice}}
func.func private @f(tensor<4x4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {"a"}]>})

// -----
// expected-error@+1 {{expected each axis once but got "a" twice}}
func.func private @f(tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}], partial=<sum {"a"}>>})

// -----
// expected-error@+1 {{expected disjoint axes but "a" and "a":(1)2 overlap}}
func.func private @f(tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}], replicated={"a":(1)2}>})

// -----
// expected-error@+1 {{expected disjoint axes but "a":(1)4 and "a":(2)4 overlap}}
func.func private @f(tensor<4x4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a":(1)4}, {"a":(2)4}]>})

// -----
// Shardings, C2.
// expected-error@+1 {{expected sub-axes "a":(1)2 and "a":(2)2 to be written as one}}
func.func private @f(tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a":(1)2, "a":(2)2}]>})

// -----
// Shardings, C4.
hypershard.mesh @m = <["a"=2, "b"=8]>
// expected-error@+1 {{argument 0: expected an axis of the mesh #hypershard.mesh<["a"=2, "b"=8]> but got "c"}}
func.func private @f(tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"c"}]>})

// -----
hypershard.mesh @m = <["a"=2, "b"=8]>
// expected-error@+1 {{argument 0: expected sub-axis "a":(1)2 to be written as the whole axis}}
func.func private @f(tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a":(1)2}]>})

// -----
hypershard.mesh @m = <["a"=2, "b"=8]>
// expected-error@+1 {{argument 0: expected sub-axis "b":(2)3 to divide its axis of size 8}}
func.func private @f(tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}], replicated={"b":(2)3}>})

// -----
hypershard.mesh @m = <["a"=2, "b"=8]>
// expected-error@+1 {{argument 0: expected sub-axis "b":(4)4 to divide its axis of size 8}}
func.func private @f(tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}], partial=<sum {"b":(4)4}>>})

// -----
// Shardings, C5.
hypershard.mesh @m = <["a"=2, "b"=8]>
// expected-error@+1 {{argument 0: expected the axes of `replicated` in mesh order but got "b" before "a"}}
func.func private @f(tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}], replicated={"b", "a"}>})

// -----
hypershard.mesh @m = <["a"=2, "b"=8]>
// expected-error@+1 {{argument 0: expected the axes of `partial` in mesh order but got "b":(4)2 before "b":(1)2}}
func.func private @f(tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}], partial=<sum {"b":(4)2, "b":(1)2}>>})

// -----
// Shardings, C6.
hypershard.mesh @m = <["a"=2]>
// expected-error@+1 {{argument 0: expected 2 dimensions for 'tensor<4x4xf32>' but the sharding has 1}}
func.func private @f(tensor<4x4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>})

// -----
hypershard.mesh @m = <["a"=2]>
// expected-error@+1 {{argument 0: expected a sharding only on a ranked tensor of static shape but got 'tensor<?xf32>'}}
func.func private @f(tensor<?xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>})

// -----
hypershard.mesh @m = <["a"=2]>
// expected-error@+1 {{argument 0: expected a sharding only on a ranked tensor of static shape but got 'tensor<*xf32>'}}
func.func private @f(tensor<*xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>})

// -----
hypershard.mesh @m = <["a"=2]>
// expected-error@+1 {{result 0: expected a sharding only on a ranked tensor of static shape but got 'f32'}}
func.func private @f() -> (f32 {hypershard.sharding = #hypershard.sharding<@m, []>})

// -----
// Where the attribute hangs.
// expected-error@+1 {{argument 0: expected a mesh of the module but got @nowhere}}
func.func private @f(tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@nowhere, [{}]>})

// -----
// expected-error@+1 {{argument 0: expected a #hypershard.sharding but got "a"}}
func.func private @f(tensor<4xf32> {hypershard.sharding = "a"})

// -----
// expected-error@+1 {{unknown attribute `hypershard.layout` of the hypershard dialect}}
func.func private @f(tensor<4xf32> {hypershard.layout = "a"})

// -----
// expected-error@+1 {{unknown attribute `hypershard.layout` of the hypershard dialect}}
func.func private @f() -> (tensor<4xf32> {hypershard.layout = "a"})

// -----
// expected-error@+1 {{unknown attribute `hypershard.layout` of the hypershard dialect}}
module attributes {hypershard.layout = "a"} {}

// -----
hypershard.mesh @m = <["a"=2]>
// expected-error@+1 {{expected an array of 0 shardings, one per result}}
func.func private @f() attributes {hypershard.sharding = #hypershard.sharding<@m, []>}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{expected 1 shardings, one per result, but got 2}}
  %0 = arith.negf %x {hypershard.sharding = [#hypershard.sharding<@m, [{}]>, #hypershard.sharding<@m, [{}]>]} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----
hypershard.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // A unit is for results that are no tensors.
  // expected-error@+1 {{result 0: expected a #hypershard.sharding but got unit}}
  %0 = arith.negf %x {hypershard.sharding = [unit]} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
