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

