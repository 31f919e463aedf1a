// Reshards: where ops and values disagree, the cheapest way; partial results stay visible until they must be whole.
// RUN: hp-opt %s -split-input-file -hypershard-propagate-shardings -hypershard-insert-reshards | FileCheck %s

// A split contraction makes a partial value, which is reduced once.
hypershard.mesh @m = <["a"=2]>
// CHECK-LABEL: func @partial
func.func @partial(
    %l: tensor<8x4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}, {"a"}]>},
    %r: tensor<4x16xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {}]>},
    %z: tensor<8x16xf32>) -> (tensor<8x16xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}, {}]>}) {
  // CHECK: %[[P:.*]] = linalg.matmul {hypershard.sharding = #hypershard.sharding<@m, [{}, {}], partial=<sum {"a"}>>}
  // CHECK-NEXT: %[[R:.*]] = hypershard.reshard %[[P]] <@m, [{}, {}]>
  // CHECK-NEXT: return %[[R]]
  %0 = linalg.matmul ins(%l, %r : tensor<8x4xf32>, tensor<4x16xf32>) outs(%z : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// -----

// The result is wanted split: the reduction will scatter (one reshard, from partial to split).
hypershard.mesh @m = <["a"=2]>
// CHECK-LABEL: func @scatter
func.func @scatter(
    %l: tensor<8x4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}, {"a"}]>},
    %r: tensor<4x16xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {}]>},
    %v: f32) -> (tensor<8x16xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {}]>}) {
  %e = tensor.empty() : tensor<8x16xf32>
  %z = linalg.fill ins(%v : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  // CHECK: %[[P:.*]] = linalg.matmul {{.*}}partial=<sum {"a"}>
  // CHECK-NEXT: hypershard.reshard %[[P]] <@m, [{"a"}, {}]>
  // CHECK-NOT: reshard
  %0 = linalg.matmul ins(%l, %r : tensor<8x4xf32>, tensor<4x16xf32>) outs(%z : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// -----

// Everything agrees: nothing changes.
hypershard.mesh @m = <["a"=2]>
// CHECK-LABEL: func @agree
// CHECK-NOT: reshard
// CHECK: return
func.func @agree(%x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) -> tensor<8xf32> {
  %0 = math.exp %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// One axis for rows and for columns: only the smaller operand moves.
hypershard.mesh @m = <["a"=2]>
// CHECK-LABEL: func @smaller
// CHECK: %[[L:.*]] = hypershard.reshard %arg0 <@m, [{}, {}]>
// CHECK-NOT: reshard
// CHECK: linalg.matmul {{.*}} ins(%[[L]], %arg1
// CHECK-NOT: reshard
func.func @smaller(
    %l: tensor<8x4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {}]>},
    %r: tensor<4x16xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}, {"a"}]>},
    %z: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = linalg.matmul ins(%l, %r : tensor<8x4xf32>, tensor<4x16xf32>) outs(%z : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// -----

// Two partial sums that are added are reduced once, after the addition.
hypershard.mesh @m = <["a"=2]>
// CHECK-LABEL: func @delay
// CHECK-NOT: reshard
// CHECK: %[[S:.*]] = arith.addf {{.*}}partial=<sum {"a"}>
// CHECK-NEXT: hypershard.reshard %[[S]] <@m, [{}, {}]>
// CHECK-NOT: reshard
func.func @delay(
    %l: tensor<8x4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}, {"a"}]>},
    %r: tensor<4x16xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {}]>},
    %q: tensor<4x16xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {}]>},
    %z: tensor<8x16xf32>) -> (tensor<8x16xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}, {}]>}) {
  %0 = linalg.matmul ins(%l, %r : tensor<8x4xf32>, tensor<4x16xf32>) outs(%z : tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = linalg.matmul ins(%l, %q : tensor<8x4xf32>, tensor<4x16xf32>) outs(%z : tensor<8x16xf32>) -> tensor<8x16xf32>
  %2 = arith.addf %0, %1 : tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}

// -----

// A partial value is made whole before anything that is not a sum.
hypershard.mesh @m = <["a"=2]>
// CHECK-LABEL: func @nonlinear
// CHECK: linalg.matmul {{.*}}partial=<sum {"a"}>
// CHECK-NEXT: %[[R:.*]] = hypershard.reshard
// CHECK-NEXT: math.exp %[[R]]
func.func @nonlinear(
    %l: tensor<8x4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}, {"a"}]>},
    %r: tensor<4x16xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {}]>},
    %z: tensor<8x16xf32>) -> (tensor<8x16xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}, {}]>}) {
  %0 = linalg.matmul ins(%l, %r : tensor<8x4xf32>, tensor<4x16xf32>) outs(%z : tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = math.exp %0 : tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}

// -----

// A constraint is a reshard where it changes something, and nothing where not.
hypershard.mesh @m = <["a"=2]>
// CHECK-LABEL: func @constraint
// CHECK: %[[R:.*]] = hypershard.reshard %arg0 <@m, [{}]>
// CHECK-NEXT: math.exp %[[R]]
// CHECK-NOT: constraint
func.func @constraint(%x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) -> tensor<8xf32> {
  %0 = hypershard.constraint %x <@m, [{"a"}]> : tensor<8xf32>
  %1 = hypershard.constraint %0 <@m, [{}]> : tensor<8xf32>
  %2 = math.exp %1 : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

// One reshard serves two uses; a branch that captures the value has its own.
hypershard.mesh @m = <["a"=2]>
// CHECK-LABEL: func @shared
// CHECK: %[[R:.*]] = hypershard.reshard %arg0 <@m, [{}]>
// CHECK: tensor.extract %[[R]]
// CHECK: tensor.extract %[[R]]
func.func @shared(%x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}, %i: index) -> f32 {
  %0 = tensor.extract %x[%i] : tensor<8xf32>
  %c1 = arith.constant 1 : index
  %1 = tensor.extract %x[%c1] : tensor<8xf32>
  %2 = arith.addf %0, %1 : f32
  return %2 : f32
}

// -----

// The body of a loop wants the carried value split as its weight is: init, argument, yield and result are.
hypershard.mesh @m = <["a"=2]>
// CHECK-LABEL: func @loop
// CHECK: %[[I:.*]] = hypershard.reshard %arg0 <@m, [{"a"}, {}]>
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[I]])
// CHECK-NOT: reshard
func.func @loop(%x: tensor<8x8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}, {}]>},
                %w: tensor<8x8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {}]>},
                %lb: index, %ub: index, %st: index) -> tensor<8x8xf32> {
  %r = scf.for %i = %lb to %ub step %st iter_args(%acc = %x) -> tensor<8x8xf32> {
    %s = arith.addf %acc, %w : tensor<8x8xf32>
    scf.yield %s : tensor<8x8xf32>
  }
  return %r : tensor<8x8xf32>
}

// -----

// An embedding whose vocabulary is split: each device reads its rows, the result is a sum.
#idx = affine_map<(d0, d1) -> (d0)>
#id = affine_map<(d0, d1) -> (d0, d1)>
hypershard.mesh @m = <["a"=2]>
// CHECK-LABEL: func @embedding
// CHECK: linalg.generic
// CHECK-SAME: hypershard.sharding = #hypershard.sharding<@m, [{}, {}], partial=<sum {"a"}>>
// CHECK: hypershard.reshard
func.func @embedding(%ids: tensor<4xi64>, %table: tensor<1048576x8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {}]>},
                     %e: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = linalg.generic {indexing_maps = [#idx, #id], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<4xi64>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%in: i64, %out: f32):
    %i = arith.index_cast %in : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %table[%i, %j] : tensor<1048576x8xf32>
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// argmax: value and index are one reduction, which is not split.
#id = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>
hypershard.mesh @m = <["a"=2]>
// CHECK-LABEL: func @argmax
// CHECK: hypershard.reshard %arg0 <@m, [{}]>
func.func @argmax(%x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}, %m: tensor<f32>, %n: tensor<i64>) -> (tensor<f32>, tensor<i64>) {
  %0:2 = linalg.generic {indexing_maps = [#id, #none, #none], iterator_types = ["reduction"]} ins(%x : tensor<8xf32>) outs(%m, %n : tensor<f32>, tensor<i64>) {
  ^bb0(%in: f32, %max: f32, %at: i64):
    %i = linalg.index 0 : index
    %k = arith.index_cast %i : index to i64
    %gt = arith.cmpf ogt, %in, %max : f32
    %v = arith.select %gt, %in, %max : f32
    %w = arith.select %gt, %k, %at : i64
    linalg.yield %v, %w : f32, i64
  } -> (tensor<f32>, tensor<i64>)
  return %0#0, %0#1 : tensor<f32>, tensor<i64>
}
