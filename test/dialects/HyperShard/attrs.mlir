// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Meshes and shardings survive text and bytecode.
// RUN: hp-opt %s | hp-opt | FileCheck %s
// RUN: hp-opt --emit-bytecode %s | hp-opt | FileCheck %s

// CHECK-DAG: hypershard.mesh @m = <["dp"=2, "tp"=4, "pp"=3]>
hypershard.mesh @m = <["dp"=2, "tp"=4, "pp"=3]>
// CHECK-DAG: hypershard.mesh @ring = <["x"=4], device_ids=[0, 1, 3, 2]>
hypershard.mesh @ring = <["x"=4], device_ids=[0, 1, 3, 2]>
// CHECK-DAG: hypershard.mesh @one = <[]>
hypershard.mesh @one = <[]>
// CHECK-DAG: hypershard.mesh @ones = <["a"=1, "b"=1]>
hypershard.mesh @ones = <["a"=1, "b"=1]>

// CHECK-LABEL: func.func private @open_and_closed(
// CHECK-SAME: #hypershard.sharding<@m, [{"dp"}, {"tp", ?}p1, {?}p2, {}]>
func.func private @open_and_closed(tensor<2x4x6x8xf32> {
    hypershard.sharding = #hypershard.sharding<@m, [{"dp"}, {"tp", ?}p1, {?}p2, {}]>})

// CHECK-LABEL: func.func private @sub_axes(
// CHECK-SAME: #hypershard.sharding<@m, [{"tp":(2)2, "dp"}, {"tp":(1)2}]>
func.func private @sub_axes(tensor<8x8xf32> {
    hypershard.sharding = #hypershard.sharding<@m, [{"tp":(2)2, "dp"}, {"tp":(1)2}]>})

// CHECK-LABEL: func.func private @replicated_and_partial(
// CHECK-SAME: #hypershard.sharding<@m, [{}], replicated={"dp", "pp"}, partial=<sum {"tp"}>>
func.func private @replicated_and_partial(tensor<8xf32> {
    hypershard.sharding = #hypershard.sharding<@m, [{}], partial=<sum {"tp"}>, replicated={"dp", "pp"}>})

// CHECK-LABEL: func.func private @kinds(
// CHECK-SAME: partial=<max {"dp"}>
// CHECK-SAME: partial=<min {"dp"}>
// CHECK-SAME: partial=<prod {"dp"}>
// CHECK-SAME: partial=<and {"dp"}>
// CHECK-SAME: partial=<or {"dp"}>
// CHECK-SAME: partial=<avg {"dp", "tp":(1)2}>
func.func private @kinds(
    tensor<i1> {hypershard.sharding = #hypershard.sharding<@m, [], partial=<max {"dp"}>>},
    tensor<i1> {hypershard.sharding = #hypershard.sharding<@m, [], partial=<min {"dp"}>>},
    tensor<i1> {hypershard.sharding = #hypershard.sharding<@m, [], partial=<prod {"dp"}>>},
    tensor<i1> {hypershard.sharding = #hypershard.sharding<@m, [], partial=<and {"dp"}>>},
    tensor<i1> {hypershard.sharding = #hypershard.sharding<@m, [], partial=<or {"dp"}>>},
    tensor<i1> {hypershard.sharding = #hypershard.sharding<@m, [], partial=<avg {"dp", "tp":(1)2}>>})

// CHECK-LABEL: func.func private @on_a_result(
// CHECK-SAME: -> (tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@ring, [{"x"}]>})
func.func private @on_a_result() -> (tensor<4xf32> {
    hypershard.sharding = #hypershard.sharding<@ring, [{"x"}]>})

// Each attribute stands on its own too.
// CHECK-LABEL: module @parts
// CHECK-SAME: hp.a = #hypershard.mesh_axis<"x"=4>
// CHECK-SAME: hp.b = #hypershard.axis<"x">
// CHECK-SAME: hp.c = #hypershard.axis<"x":(2)2>
// CHECK-SAME: hp.d = #hypershard.dim<{"x", ?}p3>
// CHECK-SAME: hp.e = #hypershard.partial<min {"x"}>
// CHECK-SAME: hp.f = #hypershard.mesh<["x"=4]>
module @parts attributes {
    hp.a = #hypershard.mesh_axis<"x"=4>, hp.b = #hypershard.axis<"x">, hp.c = #hypershard.axis<"x":(2)2>,
    hp.d = #hypershard.dim<{"x", ?}p3>, hp.e = #hypershard.partial<min {"x"}>, hp.f = #hypershard.mesh<["x"=4]>} {}
