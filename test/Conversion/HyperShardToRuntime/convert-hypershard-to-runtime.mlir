// Collectives become calls of the runtime, with the group as strides and sizes; equal ones share a function.
// RUN: hp-opt %s --convert-hypershard-to-runtime | FileCheck %s

// CHECK-NOT: hypershard.mesh
hypershard.mesh @m = <["dp"=2, "tp"=3]>

// The group along tp: stride 1, size 3.
// CHECK: llvm.mlir.global private constant @[[$TP:.*]](dense<[1, 3]> : tensor<2xi64>)

// CHECK-LABEL: func.func @reduce_twice
func.func @reduce_twice(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // CHECK: %[[IN:.*]] = bufferization.to_buffer %{{.*}} read_only
  // CHECK: %[[OUT:.*]] = memref.alloc()
  // CHECK: call @[[$REDUCE:.*]](%[[IN]], %[[OUT]])
  // CHECK: call @[[$REDUCE]](
  %y = hypershard.all_reduce %x over @m {"tp"} <sum> : tensor<4x6xf32> -> tensor<4x6xf32>
  %z = hypershard.all_reduce %y over @m {"tp"} <sum> : tensor<4x6xf32> -> tensor<4x6xf32>
  return %z : tensor<4x6xf32>
}

// dp is the major axis of a 2 x 3 mesh: (id / 3) mod 2.
// CHECK-LABEL: func.func @index
func.func @index() -> index {
  // CHECK: %[[ID:.*]] = llvm.call @hp_rt_device_id()
  // CHECK: %[[DEVICE:.*]] = arith.index_cast %[[ID]]
  // CHECK: %[[THREE:.*]] = arith.constant 3 : index
  // CHECK: %[[MAJOR:.*]] = arith.divui %[[DEVICE]], %[[THREE]]
  // CHECK: %[[TWO:.*]] = arith.constant 2 : index
  // CHECK: arith.remui %[[MAJOR]], %[[TWO]]
  %i = hypershard.axis_index @m {"dp"}
  return %i : index
}

// The own block is a slice; nothing is sent.
// CHECK-LABEL: func.func @slice
func.func @slice(%x: tensor<4x6xf32>) -> tensor<4x2xf32> {
  // CHECK-NOT: hp_rt_all
  // CHECK: tensor.extract_slice %{{.*}}[0, %{{.*}}] [4, 2] [1, 1]
  %y = hypershard.slice_local %x over @m {"tp"} dim 1 : tensor<4x6xf32> -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// CHECK: func.func private @[[$REDUCE]](
// CHECK: %[[GROUP:.*]] = llvm.mlir.addressof @[[$TP]]
// CHECK: llvm.call @hp_rt_all_reduce(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[GROUP]], %{{.*}})
