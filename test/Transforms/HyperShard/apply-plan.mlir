// Mesh, shardings and constraints go where the plan names them; parameters are gathered inside the block that uses them.
// RUN: split-file %s %t
// RUN: hp-opt %t/program.mlir --hypershard-apply-plan=plan=@%t/plan.json | FileCheck %t/program.mlir
// RUN: hp-opt %t/program.mlir --hypershard-apply-plan=plan=@%t/nothing.json | FileCheck %t/program.mlir --check-prefix=NOTHING
// RUN: hp-opt %t/differ.mlir --hypershard-apply-plan=plan=@%t/differ.json | FileCheck %t/differ.mlir
// RUN: hp-opt %t/nested.mlir --hypershard-apply-plan=plan=@%t/nested.json | FileCheck %t/nested.mlir

//--- plan.json
{"mesh": {"name": "m", "axes": [["dp", 2], ["tp", 3]], "device_ids": [5, 4, 3, 2, 1, 0]},
 "arguments": {"x": {"store": "[{\"dp\"}, {}]"},
               "blocks.0.w": {"store": "[{\"dp\"}, {}]", "use": "[{}, {\"tp\"}]"},
               "blocks.1.w": {"store": "[{\"dp\"}, {}]", "use": "[{}, {\"tp\"}]"},
               "table": {"store": "[{\"tp\", \"dp\"}, {}]", "use": "[{\"tp\"}, {?}p1], replicated={\"dp\"}"}},
 "results": {"y": "[{\"dp\"}, {}]"},
 "blocks": {"blocks.1": {"0": "[{\"dp\"}, {\"tp\"}]"}}}

//--- nothing.json
{"mesh": {"axes": [["dp", 2]]}}

//--- program.mlir
// CHECK: hypershard.mesh @m = <["dp"=2, "tp"=3], device_ids=[5, 4, 3, 2, 1, 0]>
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[X:.*]]: tensor<6x6xf32> {hp.name = "x", hypershard.sharding = #hypershard.sharding<@m, [{"dp"}, {}]>}
// CHECK-SAME:    %[[W0:.*]]: tensor<6x6xf32> {hp.name = "blocks.0.w", hypershard.sharding = #hypershard.sharding<@m, [{"dp"}, {}]>}
// CHECK-SAME:    %[[W1:.*]]: tensor<6x6xf32> {hp.name = "blocks.1.w", hypershard.sharding = #hypershard.sharding<@m, [{"dp"}, {}]>}
// CHECK-SAME:    %[[T:.*]]: tensor<12x6xf32> {hp.name = "table", hypershard.sharding = #hypershard.sharding<@m, [{"tp", "dp"}, {}]>}
// CHECK-SAME:    -> (tensor<6x6xf32> {hp.name = "y", hypershard.sharding = #hypershard.sharding<@m, [{"dp"}, {}]>})
// CHECK:         %[[A:.*]] = call @block(%[[X]], %[[W0]])
// CHECK-NEXT:    %[[B:.*]] = call @block(%[[A]], %[[W1]])
// CHECK-NEXT:    %[[C:.*]] = hypershard.constraint %[[B]] <@m, [{"dp"}, {"tp"}]> : tensor<6x6xf32>
// CHECK-NEXT:    tensor.empty
// CHECK-NEXT:    %[[G:.*]] = hypershard.constraint %[[T]] <@m, [{"tp"}, {?}p1], replicated={"dp"}> : tensor<12x6xf32>
// CHECK-NEXT:    linalg.generic {{.*}} ins(%[[C]] :
// CHECK:           tensor.extract %[[G]]
// CHECK-LABEL: func.func private @block(
// CHECK-SAME:    %[[BX:.*]]: tensor<6x6xf32>,
// CHECK-SAME:    %[[BW:.*]]: tensor<6x6xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"dp"}, {}]>}
// CHECK:         tensor.empty
// CHECK-NEXT:    %[[U:.*]] = hypershard.constraint %[[BW]] <@m, [{}, {"tp"}]> : tensor<6x6xf32>
// CHECK-NEXT:    linalg.add ins(%[[BX]], %[[U]]
// CHECK-NOT:   func.func

// NOTHING: hypershard.mesh @mesh = <["dp"=2]>
// NOTHING-NOT: hypershard.

#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%x: tensor<6x6xf32> {hp.name = "x"}, %w0: tensor<6x6xf32> {hp.name = "blocks.0.w"},
                %w1: tensor<6x6xf32> {hp.name = "blocks.1.w"}, %table: tensor<12x6xf32> {hp.name = "table"})
    -> (tensor<6x6xf32> {hp.name = "y"}) {
  %0 = call @block(%x, %w0) {hp.path = "blocks.0"} : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
  %1 = call @block(%0, %w1) {hp.path = "blocks.1"} : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
  %2 = tensor.empty() : tensor<6x6xf32>
  %3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%1 : tensor<6x6xf32>) outs(%2 : tensor<6x6xf32>) {
  ^bb0(%in: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %row = tensor.extract %table[%i, %j] : tensor<12x6xf32>
    %sum = arith.addf %in, %row : f32
    linalg.yield %sum : f32
  } -> tensor<6x6xf32>
  return %3 : tensor<6x6xf32>
}

func.func private @block(%x: tensor<6x6xf32>, %w: tensor<6x6xf32>) -> tensor<6x6xf32> {
  %0 = tensor.empty() : tensor<6x6xf32>
  %1 = linalg.add ins(%x, %w : tensor<6x6xf32>, tensor<6x6xf32>) outs(%0 : tensor<6x6xf32>) -> tensor<6x6xf32>
  return %1 : tensor<6x6xf32>
}

//--- differ.json
{"mesh": {"name": "m", "axes": [["dp", 2]]},
 "arguments": {"w0": {"store": "[{\"dp\"}]", "use": "[{}]"}, "w1": {"store": "[{}]"},
               "w2": {"store": "[{\"dp\"}]", "use": "[{}]"}}}

//--- differ.mlir
// Calls whose arguments are stored differently get functions of their own; calls that agree share one.
// CHECK-LABEL: func.func @main(
// CHECK:         call @block(%{{.*}})
// CHECK-NEXT:    call @[[OTHER:block_.*]](%
// CHECK-NEXT:    call @block(%
// CHECK:       func.func private @block(%[[W:.*]]: tensor<4xf32> {hypershard.sharding
// CHECK-NEXT:    %[[U:.*]] = hypershard.constraint %[[W]] <@m, [{}]>
// CHECK-NEXT:    return %[[U]]
// CHECK:       func.func private @[[OTHER]](%[[V:.*]]: tensor<4xf32>)
// CHECK-NEXT:    return %[[V]]
func.func @main(%w0: tensor<4xf32> {hp.name = "w0"}, %w1: tensor<4xf32> {hp.name = "w1"}, %w2: tensor<4xf32> {hp.name = "w2"})
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = call @block(%w0) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @block(%w1) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = call @block(%w2) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
func.func private @block(%w: tensor<4xf32>) -> tensor<4xf32> {
  return %w : tensor<4xf32>
}

//--- nested.json
{"mesh": {"name": "m", "axes": [["dp", 2]]}, "arguments": {"w": {"store": "[{\"dp\"}]", "use": "[{}]"}}}

//--- nested.mlir
// The constraint stands in the innermost function that uses the argument; one that only hands it on has none.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT:    call @outer
// CHECK-NEXT:    return
// CHECK:       func.func private @outer(%{{.*}}: tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"dp"}]>})
// CHECK-NEXT:    call @inner
// CHECK-NEXT:    return
// CHECK:       func.func private @inner(%[[W:.*]]: tensor<4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"dp"}]>})
// CHECK-NEXT:    hypershard.constraint %[[W]] <@m, [{}]>
func.func @main(%w: tensor<4xf32> {hp.name = "w"}) -> tensor<4xf32> {
  %0 = call @outer(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @outer(%w: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @inner(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @inner(%w: tensor<4xf32>) -> tensor<4xf32> {
  return %w : tensor<4xf32>
}
