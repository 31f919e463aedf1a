// With blocks-first a collective is given and gives one block for each member, one after the other, whatever its dimension;
// transposes arrange them. Along the outermost dimension nothing changes.
// RUN: hp-opt %s --convert-hypershard-to-runtime=blocks-first | FileCheck %s

hypershard.mesh @m = <["dp"=2, "tp"=3]>

// CHECK-LABEL: func.func @gather
func.func @gather(%x: tensor<4x5xf32>, %y: tensor<1x5xf32>) -> (tensor<4x15xf32>, tensor<1x15xf32>) {
  // CHECK: %[[BLOCKS:.*]] = memref.alloc() {{.*}}: memref<3x4x5xf32>
  // CHECK: call @[[$GATHER:.*]](%{{.*}}, %[[BLOCKS]]) : (memref<4x5xf32>, memref<3x4x5xf32>)
  // CHECK: %[[GATHERED:.*]] = bufferization.to_tensor %[[BLOCKS]]
  // CHECK: %[[PLACED:.*]] = linalg.transpose ins(%[[GATHERED]] : tensor<3x4x5xf32>) outs(%{{.*}} : tensor<4x3x5xf32>) permutation = [1, 0, 2]
  // CHECK: tensor.collapse_shape %[[PLACED]] {{\[\[}}0], [1, 2]] : tensor<4x3x5xf32> into tensor<4x15xf32>
  %a = hypershard.all_gather %x over @m {"tp"} dim 1 : tensor<4x5xf32> -> tensor<4x15xf32>
  // CHECK-NOT: linalg.transpose
  // CHECK: call @{{.*}} : (memref<1x5xf32>, memref<1x15xf32>)
  %b = hypershard.all_gather %y over @m {"tp"} dim 1 : tensor<1x5xf32> -> tensor<1x15xf32>
  return %a, %b : tensor<4x15xf32>, tensor<1x15xf32>
}

// CHECK-LABEL: func.func @scatter
func.func @scatter(%x: tensor<4x6xf32>) -> tensor<4x2xf32> {
  // CHECK: %[[PARTS:.*]] = tensor.expand_shape %{{.*}} {{\[\[}}0], [1, 2]] output_shape [4, 3, 2]
  // CHECK: %[[FIRST:.*]] = linalg.transpose ins(%[[PARTS]] : tensor<4x3x2xf32>) outs(%{{.*}} : tensor<3x4x2xf32>) permutation = [1, 0, 2]
  // CHECK: %[[IN:.*]] = bufferization.to_buffer %[[FIRST]]
  // CHECK: call @{{.*}}(%[[IN]], %{{.*}}) : (memref<3x4x2xf32>, memref<4x2xf32>)
  %y = hypershard.reduce_scatter %x over @m {"tp"} <sum> dim 1 : tensor<4x6xf32> -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// CHECK-LABEL: func.func @exchange
func.func @exchange(%x: tensor<4x6xf32>) -> tensor<12x2xf32> {
  // CHECK: linalg.transpose ins(%{{.*}} : tensor<4x3x2xf32>) outs(%{{.*}} : tensor<3x4x2xf32>)
  // CHECK: call @{{.*}} : (memref<3x4x2xf32>, memref<3x4x2xf32>)
  // CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0, 1], [2]] : tensor<3x4x2xf32> into tensor<12x2xf32>
  %y = hypershard.all_to_all %x over @m {"tp"} split 1 concat 0 : tensor<4x6xf32> -> tensor<12x2xf32>
  return %y : tensor<12x2xf32>
}

// A window of columns: columns are the outermost dimension on the way.
// CHECK-LABEL: func.func @halo
func.func @halo(%x: tensor<4x2xf32>) -> tensor<4x3xf32> {
  // CHECK: linalg.transpose ins(%{{.*}} : tensor<4x2xf32>) outs(%{{.*}} : tensor<2x4xf32>)
  // CHECK: call @{{.*}} : (memref<2x4xf32>, memref<3x4xf32>)
  // CHECK: linalg.transpose ins(%{{.*}} : tensor<3x4xf32>) outs(%{{.*}} : tensor<4x3xf32>)
  %y = hypershard.halo_exchange %x over @m {"tp"} dim 1 of 6 window -1 step 2 size 3 : tensor<4x2xf32> -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}
