// A convolution becomes a contraction: of gathered patches, or of the image itself where the filter is one pixel.
// RUN: hp-opt %s --convert-convolutions-to-contractions --split-input-file | FileCheck %s

// With stride 1 the image loops are innermost in the patches, as they are in the image.
// CHECK-DAG: #[[$WINDOW:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2 + d4, d3 + d5)>
// CHECK-DAG: #[[$PATCHES:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d5, d6, d2, d3)>
// CHECK-LABEL: func.func @overlapping(
// CHECK-SAME: %[[X:.*]]: tensor<1x2x6x7xf32>, %[[W:.*]]: tensor<3x2x3x3xf32>
func.func @overlapping(%x: tensor<1x2x6x7xf32>, %w: tensor<3x2x3x3xf32>, %y: tensor<1x3x4x5xf32>)
    -> tensor<1x3x4x5xf32> {
  // CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<1x2x3x3x4x5xf32>
  // CHECK: %[[P:.*]] = linalg.generic {indexing_maps = [#[[$WINDOW]], #{{.*}}], iterator_types = ["parallel"
  // CHECK-SAME: ins(%[[X]] : tensor<1x2x6x7xf32>) outs(%[[EMPTY]] :
  // CHECK: linalg.generic {indexing_maps = [#[[$PATCHES]],
  // CHECK-SAME: ins(%[[P]], %[[W]] : tensor<1x2x3x3x4x5xf32>, tensor<3x2x3x3xf32>)
  // CHECK: arith.mulf
  // CHECK: arith.addf
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%x, %w : tensor<1x2x6x7xf32>, tensor<3x2x3x3xf32>) outs(%y : tensor<1x3x4x5xf32>) -> tensor<1x3x4x5xf32>
  return %0 : tensor<1x3x4x5xf32>
}

// -----

// With a stride the filter's loops are innermost.
// CHECK-LABEL: func.func @strided
func.func @strided(%x: tensor<1x2x8x8xf32>, %w: tensor<3x2x4x4xf32>, %y: tensor<1x3x2x2xf32>) -> tensor<1x3x2x2xf32> {
  // CHECK: tensor.empty() : tensor<1x2x2x2x4x4xf32>
  // CHECK-NOT: linalg.conv
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<4> : vector<2xi64>}
      ins(%x, %w : tensor<1x2x8x8xf32>, tensor<3x2x4x4xf32>) outs(%y : tensor<1x3x2x2xf32>) -> tensor<1x3x2x2xf32>
  return %0 : tensor<1x3x2x2xf32>
}

// -----

// CHECK-LABEL: func.func @pointwise(
// CHECK-SAME: %[[X:.*]]: tensor<1x2x6x7xf32>, %[[W:.*]]: tensor<3x2x1x1xf32>
func.func @pointwise(%x: tensor<1x2x6x7xf32>, %w: tensor<3x2x1x1xf32>, %y: tensor<1x3x6x7xf32>)
    -> tensor<1x3x6x7xf32> {
  // CHECK-NOT: tensor.empty
  // CHECK: linalg.generic
  // CHECK-SAME: ins(%[[X]], %[[W]] :
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%x, %w : tensor<1x2x6x7xf32>, tensor<3x2x1x1xf32>) outs(%y : tensor<1x3x6x7xf32>) -> tensor<1x3x6x7xf32>
  return %0 : tensor<1x3x6x7xf32>
}

// -----

// Nothing is reduced over channels: no matmul would pay.
// CHECK-LABEL: func.func @depthwise
func.func @depthwise(%x: tensor<1x2x6x7xf32>, %w: tensor<2x3x3xf32>, %y: tensor<1x2x4x5xf32>) -> tensor<1x2x4x5xf32> {
  // CHECK: linalg.depthwise_conv_2d_nchw_chw
  %0 = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%x, %w : tensor<1x2x6x7xf32>, tensor<2x3x3xf32>) outs(%y : tensor<1x2x4x5xf32>) -> tensor<1x2x4x5xf32>
  return %0 : tensor<1x2x4x5xf32>
}
