// RUN: hp-opt %s --hypershard-partition-program --split-input-file | FileCheck %s
// Every function becomes the program of one device: local types, global indices,
// windows and masks where a dimension is cut or does not divide, no sharding left.

#a = #hypershard.sharding<@m, [{"a"}, {}]>
#whole = #hypershard.sharding<@m, [{}, {}]>
hypershard.mesh @m = <["a"=4]>

// main says how a runner cuts inputs and puts outputs together; hp.* stays.
// CHECK: hypershard.mesh @m
// CHECK-LABEL: func.func @slice(
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf32> {hp.global_type = tensor<8x3xf32>, hp.name = "x", hp.sharding = "#hypershard.sharding<@m, [{\22a\22}, {}]>"})
// CHECK-SAME: -> (tensor<1x3xf32> {hp.global_type = tensor<4x3xf32>, hp.sharding = "#hypershard.sharding<@m, [{\22a\22}, {}]>"})
// Element i of the result is element 1 + 2i of the operand.
// CHECK: %[[W:.*]] = hypershard.halo_exchange %[[X]] over @m {"a"} dim 0 of 8 window 1 step 2 size 1
// CHECK-SAME: tensor<2x3xf32> -> tensor<1x3xf32>
// CHECK-NEXT: return %[[W]] : tensor<1x3xf32>
func.func @slice(%x: tensor<8x3xf32> {hp.name = "x", hypershard.sharding = #a}) -> tensor<4x3xf32> {
  %s = tensor.extract_slice %x[1, 0] [4, 3] [2, 1] {hypershard.sharding = #a} : tensor<8x3xf32> to tensor<4x3xf32>
  return %s : tensor<4x3xf32>
}

// Five rows on four devices: two each, the tail is cut off.
// CHECK-LABEL: func.func private @gather(
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf32>) -> tensor<5x3xf32>
// CHECK: %[[G:.*]] = hypershard.all_gather %[[X]] over @m {"a"} dim 0 : tensor<2x3xf32> -> tensor<8x3xf32>
// CHECK: %[[C:.*]] = tensor.extract_slice %[[G]][0, 0] [5, 3] [1, 1]
// CHECK: return %[[C]]
func.func private @gather(%x: tensor<5x3xf32> {hypershard.sharding = #a}) -> tensor<5x3xf32> {
  %g = hypershard.all_gather %x over @m {"a"} dim 0 {hypershard.sharding = #whole} : tensor<5x3xf32> -> tensor<5x3xf32>
  return %g : tensor<5x3xf32>
}

// What is whole stays as it is; annotations that ask for nothing go away.
// CHECK-LABEL: func.func @untouched(
// CHECK-SAME: %[[X:.*]]: tensor<5x3xf32>
// CHECK-NEXT: %[[Y:.*]] = arith.negf %[[X]] : tensor<5x3xf32>
// CHECK-NEXT: return %[[Y]] : tensor<5x3xf32>
func.func @untouched(%x: tensor<5x3xf32>) -> tensor<5x3xf32> {
  %c = hypershard.constraint %x <@m, [{}, {}]> {hypershard.sharding = #whole} : tensor<5x3xf32>
  %b = hypershard.barrier %c allow none {hypershard.sharding = #whole} : tensor<5x3xf32>
  %y = arith.negf %b {hypershard.sharding = #whole} : tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}

// -----

// The index counts from this device's first iteration.
#row = #hypershard.sharding<@m, [{"a"}]>
hypershard.mesh @m = <["a"=4]>
// CHECK-LABEL: func.func @index
// CHECK: %[[I:.*]] = hypershard.axis_index @m {"a"}
// CHECK: %[[C2:.*]] = arith.constant 2 : index
// CHECK: %[[FIRST:.*]] = arith.muli %[[I]], %[[C2]]
// CHECK: %[[L:.*]] = linalg.index 0
// CHECK: %[[G:.*]] = arith.addi %[[L]], %[[FIRST]]
// CHECK: linalg.yield %[[G]]
func.func @index(%x: tensor<5xf32> {hypershard.sharding = #row}) -> tensor<5xindex> {
  %e = tensor.empty() {hypershard.sharding = #row} : tensor<5xindex>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
         outs(%e : tensor<5xindex>) attrs = {hypershard.sharding = #row} {
  ^bb0(%out: index):
    %i = linalg.index 0 : index
    linalg.yield %i : index
  } -> tensor<5xindex>
  return %r : tensor<5xindex>
}

// -----

// A zero init needs nothing; a matmul stays a matmul; zeros stand for padding.
#xs = #hypershard.sharding<@m, [{}, {"a"}]>
#ws = #hypershard.sharding<@m, [{"a"}, {}]>
#part = #hypershard.sharding<@m, [{}, {}], partial=<sum {"a"}>>
#full = #hypershard.sharding<@m, [{}, {}]>
hypershard.mesh @m = <["a"=2]>
// CHECK-LABEL: func.func @contraction
// CHECK: %[[F:.*]] = linalg.fill
// CHECK: arith.cmpi slt
// CHECK: arith.cmpi slt
// CHECK: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<4x3xf32>, tensor<3x2xf32>) outs(%[[F]] : tensor<4x2xf32>)
// CHECK: hypershard.all_reduce %{{.*}} over @m {"a"} <sum> : tensor<4x2xf32> -> tensor<4x2xf32>
func.func @contraction(%x: tensor<4x5xf32> {hypershard.sharding = #xs}, %w: tensor<5x2xf32> {hypershard.sharding = #ws})
    -> tensor<4x2xf32> {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x2xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
  %p = linalg.matmul {hypershard.sharding = #part} ins(%x, %w : tensor<4x5xf32>, tensor<5x2xf32>)
         outs(%f : tensor<4x2xf32>) -> tensor<4x2xf32>
  %y = hypershard.all_reduce %p over @m {"a"} <sum> {hypershard.sharding = #full} : tensor<4x2xf32> -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// -----

// Control flow and calls are followed; a manual region is inlined.
#a = #hypershard.sharding<@m, [{"a"}]>
hypershard.mesh @m = <["a"=2]>
// CHECK-LABEL: func.func private @block(
// CHECK-SAME: tensor<2xf32>) -> tensor<2xf32>
func.func private @block(%x: tensor<4xf32> {hypershard.sharding = #a}) -> tensor<4xf32> {
  %y = hypershard.manual (%x) in [#a] out [#a] {
  ^bb0(%l: tensor<2xf32>):
    // CHECK: math.exp %{{.*}} : tensor<2xf32>
    %n = math.exp %l : tensor<2xf32>
    hypershard.return %n : tensor<2xf32>
  } {hypershard.sharding = #a} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
// CHECK-LABEL: func.func @control
func.func @control(%x: tensor<4xf32> {hypershard.sharding = #a}, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: scf.for {{.*}} iter_args({{.*}}) -> (tensor<2xf32>) {
  // CHECK-NEXT: func.call @block(%{{.*}}) {hp.path = "layers.0"} : (tensor<2xf32>) -> tensor<2xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%v = %x) -> tensor<4xf32> {
    %w = func.call @block(%v) {hp.path = "layers.0", hypershard.sharding = #a} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %w : tensor<4xf32>
  } {hypershard.sharding = #a}
  return %r : tensor<4xf32>
}
// CHECK-NOT: hypershard.sharding ={{ }}
