// Propagation: along factors, through control flow and calls, to a fixed point; conflicts are won by bytes.
// RUN: hp-opt %s -split-input-file -hypershard-propagate-shardings | FileCheck %s

// Column-parallel, then row-parallel: hidden values are split over tp, the result is not.
hypershard.mesh @m = <["dp"=2, "tp"=2]>
// CHECK-LABEL: func @mlp
// CHECK-SAME: -> (tensor<8x64xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"dp"}, {}]>})
func.func @mlp(
    %x: tensor<8x64xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"dp"}, {?}]>},
    %w1: tensor<64x256xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}, {"tp"}]>},
    %w2: tensor<256x64xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"tp"}, {}]>},
    %z1: tensor<8x256xf32>, %z2: tensor<8x64xf32>) -> tensor<8x64xf32> {
  // CHECK: linalg.matmul {hypershard.sharding = #hypershard.sharding<@m, [{"dp"}, {"tp"}]>}
  %h = linalg.matmul ins(%x, %w1 : tensor<8x64xf32>, tensor<64x256xf32>) outs(%z1 : tensor<8x256xf32>) -> tensor<8x256xf32>
  // CHECK: math.tanh {{.*}} {hypershard.sharding = #hypershard.sharding<@m, [{"dp"}, {"tp"}]>}
  %r = math.tanh %h : tensor<8x256xf32>
  // CHECK: linalg.matmul {hypershard.sharding = #hypershard.sharding<@m, [{"dp"}, {}]>}
  %y = linalg.matmul ins(%r, %w2 : tensor<8x256xf32>, tensor<256x64xf32>) outs(%z2 : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

// Nothing is annotated: everything is whole, nothing else changes.
hypershard.mesh @m = <["a"=4]>
// CHECK-LABEL: func @nothing
// CHECK-SAME: %{{.*}}: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}]>}
func.func @nothing(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: math.exp %{{.*}} {hypershard.sharding = #hypershard.sharding<@m, [{}]>}
  %0 = math.exp %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// From a result backward to the arguments.
hypershard.mesh @m = <["a"=4]>
// CHECK-LABEL: func @backward
// CHECK-SAME: %{{.*}}: tensor<8x4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {}]>}
func.func @backward(%x: tensor<8x4xf32>)
    -> (tensor<8x4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {}]>}) {
  %0 = math.exp %x : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

// One axis is wanted by rows of the left and columns of the right: the larger operand (right) keeps it.
hypershard.mesh @m = <["a"=2]>
// CHECK-LABEL: func @conflict
func.func @conflict(
    %l: tensor<8x4xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {}]>},
    %r: tensor<4x16xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}, {"a"}]>},
    %z: tensor<8x16xf32>) -> tensor<8x16xf32> {
  // CHECK: linalg.matmul {hypershard.sharding = #hypershard.sharding<@m, [{}, {"a"}]>}
  %0 = linalg.matmul ins(%l, %r : tensor<8x4xf32>, tensor<4x16xf32>) outs(%z : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// -----

// An open dimension may be split further, a closed one not, and an axis that is replicated on purpose is not used.
hypershard.mesh @m = <["a"=2, "b"=2]>
// CHECK-LABEL: func @open
func.func @open(
    %x: tensor<8x8x8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a", ?}, {}, {?}], replicated={}>},
    %y: tensor<8x8x8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a", "b"}, {}, {}]>}) -> tensor<8x8x8xf32> {
  // CHECK-SAME: %{{.*}}: tensor<8x8x8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a", "b"}, {}, {}]>}
  // CHECK: arith.addf {{.*}} {hypershard.sharding = #hypershard.sharding<@m, [{"a", "b"}, {}, {}]>}
  %0 = arith.addf %x, %y : tensor<8x8x8xf32>
  return %0 : tensor<8x8x8xf32>
}

// -----

hypershard.mesh @m = <["a"=2, "b"=2]>
// CHECK-LABEL: func @replicated
// CHECK-SAME: %{{.*}}: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}]>},
func.func @replicated(
    %x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{?}], replicated={"a"}>},
    %y: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) -> tensor<8xf32> {
  %0 = arith.addf %x, %y : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// User priority: what has priority 1 acts when priority 0 has reached its fixed point.
hypershard.mesh @m = <["a"=2]>
// CHECK-LABEL: func @priority
func.func @priority(
    %x: tensor<8x8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}p1, {}]>},
    %y: tensor<8x8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}, {"a"}]>}) -> tensor<8x8xf32> {
  // CHECK: arith.addf {{.*}} {hypershard.sharding = #hypershard.sharding<@m, [{}, {"a"}]>}
  %0 = arith.addf %x, %y : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// Sizes 0 and 1 are as if replicated.
hypershard.mesh @m = <["a"=2]>
// CHECK-LABEL: func @unit
// CHECK-SAME: tensor<1x0xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}, {}]>}
func.func @unit(%x: tensor<1x0xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {}]>}) -> tensor<1x0xf32> {
  %0 = math.exp %x : tensor<1x0xf32>
  return %0 : tensor<1x0xf32>
}

// -----

// Reshape 8 -> 2x4 over four devices: the axis is cut in two.
hypershard.mesh @m = <["a"=4]>
// CHECK-LABEL: func @reshape
func.func @reshape(%x: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) -> tensor<2x4xf32> {
  // CHECK: tensor.expand_shape {{.*}} {hypershard.sharding = #hypershard.sharding<@m, [{"a":(1)2}, {"a":(2)2}]>}
  %0 = tensor.expand_shape %x [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// A loop has one sharding for init, argument, yield and result.
hypershard.mesh @m = <["a"=2]>
// CHECK-LABEL: func @loop
func.func @loop(%x: tensor<8x8xf32>, %w: tensor<8x8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {}]>},
                %lb: index, %ub: index, %st: index) -> tensor<8x8xf32> {
  // CHECK: scf.for
  %r = scf.for %i = %lb to %ub step %st iter_args(%acc = %x) -> tensor<8x8xf32> {
    // CHECK: arith.addf {{.*}} {hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {}]>}
    %s = arith.addf %acc, %w : tensor<8x8xf32>
    scf.yield %s : tensor<8x8xf32>
  }
  // CHECK: } {hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {}]>}
  return %r : tensor<8x8xf32>
}

// -----

// Branches, and a while loop whose condition carries another tensor than its body.
hypershard.mesh @m = <["a"=2]>
// CHECK-LABEL: func @branches
// CHECK-SAME: %{{.*}}: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}, %{{.*}}: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}
func.func @branches(%c: i1, %x: tensor<8xf32>, %y: tensor<8xf32>)
    -> (tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) {
  %r = scf.if %c -> tensor<8xf32> {
    scf.yield %x : tensor<8xf32>
  } else {
    %e = math.exp %y : tensor<8xf32>
    scf.yield %e : tensor<8xf32>
  }
  %w = scf.while (%arg = %r) : (tensor<8xf32>) -> tensor<8xf32> {
    %t = math.tanh %arg : tensor<8xf32>
    scf.condition(%c) %t : tensor<8xf32>
  } do {
  ^bb0(%arg: tensor<8xf32>):
    scf.yield %arg : tensor<8xf32>
  }
  return %w : tensor<8xf32>
}

// -----

// Through a function that is called twice: its arguments and result are tied.
hypershard.mesh @m = <["a"=2]>
// CHECK-LABEL: func private @block
// CHECK-SAME: %{{.*}}: tensor<8x8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {}]>}
func.func private @block(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = math.exp %x : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
// CHECK-LABEL: func @calls
func.func @calls(%x: tensor<8x8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {}]>}) -> tensor<8x8xf32> {
  // CHECK: call @block({{.*}}) {hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {}]>}
  %0 = call @block(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = call @block(%0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// A barrier lets shardings pass forward only.
hypershard.mesh @m = <["a"=2]>
// CHECK-LABEL: func @barrier
// CHECK-SAME: %{{.*}}: tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{}]>}
func.func @barrier(%x: tensor<8xf32>) -> (tensor<8xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}]>}) {
  %0 = hypershard.barrier %x allow forward : tensor<8xf32>
  %1 = math.exp %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// A constant-0 map is a broadcast; a reduction is a factor that the result lacks; the rows of a table are a factor.
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0, 0)>
hypershard.mesh @m = <["a"=2, "b"=2]>
// CHECK-LABEL: func @generic
func.func @generic(%x: tensor<8x16xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {"b"}]>},
                   %r: tensor<8x1xf32>, %e: tensor<8x16xf32>) -> tensor<8x16xf32> {
  // CHECK: linalg.generic
  // CHECK-SAME: hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {}]>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x16xf32>) outs(%r : tensor<8x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = arith.maximumf %in, %out : f32
    linalg.yield %1 : f32
  } -> tensor<8x1xf32>
  // CHECK: linalg.generic
  // CHECK-SAME: hypershard.sharding = #hypershard.sharding<@m, [{"a"}, {"b"}]>
  %0 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %max : tensor<8x16xf32>, tensor<8x1xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%in: f32, %m: f32, %out: f32):
    %1 = arith.subf %in, %m : f32
    linalg.yield %1 : f32
  } -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
