#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#map2 = affine_map<(d0, d1, d2) -> (d2)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map4 = affine_map<(d0, d1, d2, d3) -> (0, 0, d2, d3)>
#map5 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>
#map6 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map7 = affine_map<(d0, d1, d2, d3) -> (d0, 0, d2, d3)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map9 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
#map10 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map11 = affine_map<(d0) -> (d0)>
#map12 = affine_map<(d0, d1) -> (d1)>
#map13 = affine_map<(d0, d1) -> (d0, d1)>
#map14 = affine_map<(d0, d1, d2) -> (d0, d2)>
#map15 = affine_map<(d0, d1, d2, d3) -> (d0, 0, 0, 0)>
#map16 = affine_map<(d0, d1, d2, d3) -> (0, 0, d2, 0)>
#map17 = affine_map<(d0, d1, d2, d3) -> (0, 0, 0, d3)>
#map18 = affine_map<(d0, d1, d2, d3) -> (d0, d1, 0, d3)>
#map19 = affine_map<(d0, d1, d2, d3) -> ()>
module {
  func.func private @LlamaDecoderLayer(%arg0: tensor<4x16x64xf32>, %arg1: tensor<1x16x16xf32>, %arg2: tensor<1x16x16xf32>, %arg3: tensor<4x1x16x16xf32>, %arg4: tensor<64xf32>, %arg5: tensor<64x64xf32>, %arg6: tensor<32x64xf32>, %arg7: tensor<32x64xf32>, %arg8: tensor<64x64xf32>, %arg9: tensor<64xf32>, %arg10: tensor<160x64xf32>, %arg11: tensor<160x64xf32>, %arg12: tensor<64x160xf32>) -> tensor<4x16x64xf32> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant 1.000000e+00 : f32
    %cst_2 = arith.constant 9.99999997E-7 : f32
    %cst_3 = arith.constant 6.400000e+01 : f32
    %cst_4 = arith.constant 2.500000e-01 : f32
    %0 = tensor.empty() : tensor<4x16x64xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %arg0 : tensor<4x16x64xf32>, tensor<4x16x64xf32>) outs(%0 : tensor<4x16x64xf32>) {
    ^bb0(%in: f32, %in_39: f32, %out: f32):
      %70 = arith.mulf %in, %in_39 : f32
      linalg.yield %70 : f32
    } -> tensor<4x16x64xf32>
    %2 = tensor.empty() : tensor<4x16x1xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%1 : tensor<4x16x64xf32>) outs(%3 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %70 = arith.addf %in, %out : f32
      linalg.yield %70 : f32
    } -> tensor<4x16x1xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%4 : tensor<4x16x1xf32>) outs(%2 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %70 = arith.divf %in, %cst_3 : f32
      linalg.yield %70 : f32
    } -> tensor<4x16x1xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%5 : tensor<4x16x1xf32>) outs(%2 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %70 = arith.addf %in, %cst_2 : f32
      linalg.yield %70 : f32
    } -> tensor<4x16x1xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6 : tensor<4x16x1xf32>) outs(%2 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %70 = math.rsqrt %in : f32
      linalg.yield %70 : f32
    } -> tensor<4x16x1xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %7 : tensor<4x16x64xf32>, tensor<4x16x1xf32>) outs(%0 : tensor<4x16x64xf32>) {
    ^bb0(%in: f32, %in_39: f32, %out: f32):
      %70 = arith.mulf %in, %in_39 : f32
      linalg.yield %70 : f32
    } -> tensor<4x16x64xf32>
    %9 = linalg.generic {indexing_maps = [#map2, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg4, %8 : tensor<64xf32>, tensor<4x16x64xf32>) outs(%0 : tensor<4x16x64xf32>) {
    ^bb0(%in: f32, %in_39: f32, %out: f32):
      %70 = arith.mulf %in, %in_39 : f32
      linalg.yield %70 : f32
    } -> tensor<4x16x64xf32>
    %collapsed = tensor.collapse_shape %9 [[0, 1], [2]] : tensor<4x16x64xf32> into tensor<64x64xf32>
    %10 = tensor.empty() : tensor<64x64xf32>
    %transposed = linalg.transpose ins(%arg5 : tensor<64x64xf32>) outs(%10 : tensor<64x64xf32>) permutation = [1, 0] 
    %11 = linalg.fill ins(%cst : f32) outs(%10 : tensor<64x64xf32>) -> tensor<64x64xf32>
    %12 = linalg.matmul ins(%collapsed, %transposed : tensor<64x64xf32>, tensor<64x64xf32>) outs(%11 : tensor<64x64xf32>) -> tensor<64x64xf32>
    %expanded = tensor.expand_shape %12 [[0, 1], [2, 3]] output_shape [4, 16, 4, 16] : tensor<64x64xf32> into tensor<4x16x4x16xf32>
    %13 = tensor.empty() : tensor<4x4x16x16xf32>
    %transposed_5 = linalg.transpose ins(%expanded : tensor<4x16x4x16xf32>) outs(%13 : tensor<4x4x16x16xf32>) permutation = [0, 2, 1, 3] 
    %14 = tensor.empty() : tensor<64x32xf32>
    %transposed_6 = linalg.transpose ins(%arg6 : tensor<32x64xf32>) outs(%14 : tensor<64x32xf32>) permutation = [1, 0] 
    %15 = linalg.fill ins(%cst : f32) outs(%14 : tensor<64x32xf32>) -> tensor<64x32xf32>
    %16 = linalg.matmul ins(%collapsed, %transposed_6 : tensor<64x64xf32>, tensor<64x32xf32>) outs(%15 : tensor<64x32xf32>) -> tensor<64x32xf32>
    %expanded_7 = tensor.expand_shape %16 [[0, 1], [2, 3]] output_shape [4, 16, 2, 16] : tensor<64x32xf32> into tensor<4x16x2x16xf32>
    %17 = tensor.empty() : tensor<4x2x16x16xf32>
    %transposed_8 = linalg.transpose ins(%expanded_7 : tensor<4x16x2x16xf32>) outs(%17 : tensor<4x2x16x16xf32>) permutation = [0, 2, 1, 3] 
    %transposed_9 = linalg.transpose ins(%arg7 : tensor<32x64xf32>) outs(%14 : tensor<64x32xf32>) permutation = [1, 0] 
    %18 = linalg.matmul ins(%collapsed, %transposed_9 : tensor<64x64xf32>, tensor<64x32xf32>) outs(%15 : tensor<64x32xf32>) -> tensor<64x32xf32>
    %expanded_10 = tensor.expand_shape %18 [[0, 1], [2, 3]] output_shape [4, 16, 2, 16] : tensor<64x32xf32> into tensor<4x16x2x16xf32>
    %transposed_11 = linalg.transpose ins(%expanded_10 : tensor<4x16x2x16xf32>) outs(%17 : tensor<4x2x16x16xf32>) permutation = [0, 2, 1, 3] 
    %expanded_12 = tensor.expand_shape %arg1 [[0], [1, 2], [3]] output_shape [1, 1, 16, 16] : tensor<1x16x16xf32> into tensor<1x1x16x16xf32>
    %expanded_13 = tensor.expand_shape %arg2 [[0], [1, 2], [3]] output_shape [1, 1, 16, 16] : tensor<1x16x16xf32> into tensor<1x1x16x16xf32>
    %19 = linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_5, %expanded_12 : tensor<4x4x16x16xf32>, tensor<1x1x16x16xf32>) outs(%13 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: f32, %in_39: f32, %out: f32):
      %70 = arith.mulf %in, %in_39 : f32
      linalg.yield %70 : f32
    } -> tensor<4x4x16x16xf32>
    %extracted_slice = tensor.extract_slice %transposed_5[0, 0, 0, 0] [4, 4, 16, 8] [1, 1, 1, 1] : tensor<4x4x16x16xf32> to tensor<4x4x16x8xf32>
    %extracted_slice_14 = tensor.extract_slice %transposed_5[0, 0, 0, 8] [4, 4, 16, 8] [1, 1, 1, 1] : tensor<4x4x16x16xf32> to tensor<4x4x16x8xf32>
    %20 = tensor.empty() : tensor<4x4x16x8xf32>
    %21 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice_14 : tensor<4x4x16x8xf32>) outs(%20 : tensor<4x4x16x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %70 = arith.negf %in : f32
      linalg.yield %70 : f32
    } -> tensor<4x4x16x8xf32>
    %concat = tensor.concat dim(3) %21, %extracted_slice : (tensor<4x4x16x8xf32>, tensor<4x4x16x8xf32>) -> tensor<4x4x16x16xf32>
    %22 = linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%concat, %expanded_13 : tensor<4x4x16x16xf32>, tensor<1x1x16x16xf32>) outs(%13 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: f32, %in_39: f32, %out: f32):
      %70 = arith.mulf %in, %in_39 : f32
      linalg.yield %70 : f32
    } -> tensor<4x4x16x16xf32>
    %23 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%19, %22 : tensor<4x4x16x16xf32>, tensor<4x4x16x16xf32>) outs(%13 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: f32, %in_39: f32, %out: f32):
      %70 = arith.addf %in, %in_39 : f32
      linalg.yield %70 : f32
    } -> tensor<4x4x16x16xf32>
    %24 = linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_8, %expanded_12 : tensor<4x2x16x16xf32>, tensor<1x1x16x16xf32>) outs(%17 : tensor<4x2x16x16xf32>) {
    ^bb0(%in: f32, %in_39: f32, %out: f32):
      %70 = arith.mulf %in, %in_39 : f32
      linalg.yield %70 : f32
    } -> tensor<4x2x16x16xf32>
    %extracted_slice_15 = tensor.extract_slice %transposed_8[0, 0, 0, 0] [4, 2, 16, 8] [1, 1, 1, 1] : tensor<4x2x16x16xf32> to tensor<4x2x16x8xf32>
    %extracted_slice_16 = tensor.extract_slice %transposed_8[0, 0, 0, 8] [4, 2, 16, 8] [1, 1, 1, 1] : tensor<4x2x16x16xf32> to tensor<4x2x16x8xf32>
    %25 = tensor.empty() : tensor<4x2x16x8xf32>
    %26 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice_16 : tensor<4x2x16x8xf32>) outs(%25 : tensor<4x2x16x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %70 = arith.negf %in : f32
      linalg.yield %70 : f32
    } -> tensor<4x2x16x8xf32>
    %concat_17 = tensor.concat dim(3) %26, %extracted_slice_15 : (tensor<4x2x16x8xf32>, tensor<4x2x16x8xf32>) -> tensor<4x2x16x16xf32>
    %27 = linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%concat_17, %expanded_13 : tensor<4x2x16x16xf32>, tensor<1x1x16x16xf32>) outs(%17 : tensor<4x2x16x16xf32>) {
    ^bb0(%in: f32, %in_39: f32, %out: f32):
      %70 = arith.mulf %in, %in_39 : f32
      linalg.yield %70 : f32
    } -> tensor<4x2x16x16xf32>
    %28 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%24, %27 : tensor<4x2x16x16xf32>, tensor<4x2x16x16xf32>) outs(%17 : tensor<4x2x16x16xf32>) {
    ^bb0(%in: f32, %in_39: f32, %out: f32):
      %70 = arith.addf %in, %in_39 : f32
      linalg.yield %70 : f32
    } -> tensor<4x2x16x16xf32>
    %29 = tensor.empty() : tensor<4x2x2x16x16xf32>
    %30 = linalg.generic {indexing_maps = [#map5, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%28 : tensor<4x2x16x16xf32>) outs(%29 : tensor<4x2x2x16x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<4x2x2x16x16xf32>
    %collapsed_18 = tensor.collapse_shape %30 [[0], [1, 2], [3], [4]] : tensor<4x2x2x16x16xf32> into tensor<4x4x16x16xf32>
    %31 = linalg.generic {indexing_maps = [#map5, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%transposed_11 : tensor<4x2x16x16xf32>) outs(%29 : tensor<4x2x2x16x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<4x2x2x16x16xf32>
    %transposed_19 = linalg.transpose ins(%collapsed_18 : tensor<4x4x16x16xf32>) outs(%13 : tensor<4x4x16x16xf32>) permutation = [0, 1, 3, 2] 
    %collapsed_20 = tensor.collapse_shape %23 [[0, 1], [2], [3]] : tensor<4x4x16x16xf32> into tensor<16x16x16xf32>
    %collapsed_21 = tensor.collapse_shape %transposed_19 [[0, 1], [2], [3]] : tensor<4x4x16x16xf32> into tensor<16x16x16xf32>
    %32 = tensor.empty() : tensor<16x16x16xf32>
    %33 = linalg.fill ins(%cst : f32) outs(%32 : tensor<16x16x16xf32>) -> tensor<16x16x16xf32>
    %34 = linalg.batch_matmul ins(%collapsed_20, %collapsed_21 : tensor<16x16x16xf32>, tensor<16x16x16xf32>) outs(%33 : tensor<16x16x16xf32>) -> tensor<16x16x16xf32>
    %expanded_22 = tensor.expand_shape %34 [[0, 1], [2], [3]] output_shape [4, 4, 16, 16] : tensor<16x16x16xf32> into tensor<4x4x16x16xf32>
    %35 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_22 : tensor<4x4x16x16xf32>) outs(%13 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %70 = arith.mulf %in, %cst_4 : f32
      linalg.yield %70 : f32
    } -> tensor<4x4x16x16xf32>
    %36 = linalg.generic {indexing_maps = [#map3, #map7, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%35, %arg3 : tensor<4x4x16x16xf32>, tensor<4x1x16x16xf32>) outs(%13 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: f32, %in_39: f32, %out: f32):
      %70 = arith.addf %in, %in_39 : f32
      linalg.yield %70 : f32
    } -> tensor<4x4x16x16xf32>
    %37 = tensor.empty() : tensor<4x4x16xi64>
    %38 = linalg.fill ins(%c0_i64 : i64) outs(%37 : tensor<4x4x16xi64>) -> tensor<4x4x16xi64>
    %39 = tensor.empty() : tensor<4x4x16xf32>
    %40 = linalg.fill ins(%cst_0 : f32) outs(%39 : tensor<4x4x16xf32>) -> tensor<4x4x16xf32>
    %41:2 = linalg.generic {indexing_maps = [#map3, #map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%36 : tensor<4x4x16x16xf32>) outs(%40, %38 : tensor<4x4x16xf32>, tensor<4x4x16xi64>) {
    ^bb0(%in: f32, %out: f32, %out_39: i64):
      %70 = linalg.index 3 : index
      %71 = arith.index_cast %70 : index to i64
      %72 = arith.maximumf %in, %out : f32
      %73 = arith.cmpf ogt, %in, %out : f32
      %74 = arith.select %73, %71, %out_39 : i64
      linalg.yield %72, %74 : f32, i64
    } -> (tensor<4x4x16xf32>, tensor<4x4x16xi64>)
    %expanded_23 = tensor.expand_shape %41#0 [[0], [1], [2, 3]] output_shape [4, 4, 16, 1] : tensor<4x4x16xf32> into tensor<4x4x16x1xf32>
    %42 = linalg.generic {indexing_maps = [#map3, #map9, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%36, %expanded_23 : tensor<4x4x16x16xf32>, tensor<4x4x16x1xf32>) outs(%13 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: f32, %in_39: f32, %out: f32):
      %70 = arith.subf %in, %in_39 : f32
      linalg.yield %70 : f32
    } -> tensor<4x4x16x16xf32>
    %43 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%42 : tensor<4x4x16x16xf32>) outs(%13 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %70 = math.exp %in : f32
      linalg.yield %70 : f32
    } -> tensor<4x4x16x16xf32>
    %44 = tensor.empty() : tensor<4x4x16x1xf32>
    %45 = linalg.fill ins(%cst : f32) outs(%44 : tensor<4x4x16x1xf32>) -> tensor<4x4x16x1xf32>
    %46 = linalg.generic {indexing_maps = [#map3, #map9], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%43 : tensor<4x4x16x16xf32>) outs(%45 : tensor<4x4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %70 = arith.addf %in, %out : f32
      linalg.yield %70 : f32
    } -> tensor<4x4x16x1xf32>
    %47 = linalg.generic {indexing_maps = [#map3, #map9, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%43, %46 : tensor<4x4x16x16xf32>, tensor<4x4x16x1xf32>) outs(%13 : tensor<4x4x16x16xf32>) {
    ^bb0(%in: f32, %in_39: f32, %out: f32):
      %70 = arith.divf %in, %in_39 : f32
      linalg.yield %70 : f32
    } -> tensor<4x4x16x16xf32>
    %collapsed_24 = tensor.collapse_shape %47 [[0, 1], [2], [3]] : tensor<4x4x16x16xf32> into tensor<16x16x16xf32>
    %collapsed_25 = tensor.collapse_shape %31 [[0, 1, 2], [3], [4]] : tensor<4x2x2x16x16xf32> into tensor<16x16x16xf32>
    %48 = linalg.batch_matmul ins(%collapsed_24, %collapsed_25 : tensor<16x16x16xf32>, tensor<16x16x16xf32>) outs(%33 : tensor<16x16x16xf32>) -> tensor<16x16x16xf32>
    %expanded_26 = tensor.expand_shape %48 [[0, 1], [2], [3]] output_shape [4, 4, 16, 16] : tensor<16x16x16xf32> into tensor<4x4x16x16xf32>
    %49 = tensor.empty() : tensor<4x16x4x16xf32>
    %transposed_27 = linalg.transpose ins(%expanded_26 : tensor<4x4x16x16xf32>) outs(%49 : tensor<4x16x4x16xf32>) permutation = [0, 2, 1, 3] 
    %collapsed_28 = tensor.collapse_shape %transposed_27 [[0, 1], [2, 3]] : tensor<4x16x4x16xf32> into tensor<64x64xf32>
    %transposed_29 = linalg.transpose ins(%arg8 : tensor<64x64xf32>) outs(%10 : tensor<64x64xf32>) permutation = [1, 0] 
    %50 = linalg.matmul ins(%collapsed_28, %transposed_29 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%11 : tensor<64x64xf32>) -> tensor<64x64xf32>
    %expanded_30 = tensor.expand_shape %50 [[0, 1], [2]] output_shape [4, 16, 64] : tensor<64x64xf32> into tensor<4x16x64xf32>
    %51 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %expanded_30 : tensor<4x16x64xf32>, tensor<4x16x64xf32>) outs(%0 : tensor<4x16x64xf32>) {
    ^bb0(%in: f32, %in_39: f32, %out: f32):
      %70 = arith.addf %in, %in_39 : f32
      linalg.yield %70 : f32
    } -> tensor<4x16x64xf32>
    %52 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%51, %51 : tensor<4x16x64xf32>, tensor<4x16x64xf32>) outs(%0 : tensor<4x16x64xf32>) {
    ^bb0(%in: f32, %in_39: f32, %out: f32):
      %70 = arith.mulf %in, %in_39 : f32
      linalg.yield %70 : f32
    } -> tensor<4x16x64xf32>
    %53 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%52 : tensor<4x16x64xf32>) outs(%3 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %70 = arith.addf %in, %out : f32
      linalg.yield %70 : f32
    } -> tensor<4x16x1xf32>
    %54 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%53 : tensor<4x16x1xf32>) outs(%2 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %70 = arith.divf %in, %cst_3 : f32
      linalg.yield %70 : f32
    } -> tensor<4x16x1xf32>
    %55 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%54 : tensor<4x16x1xf32>) outs(%2 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %70 = arith.addf %in, %cst_2 : f32
      linalg.yield %70 : f32
    } -> tensor<4x16x1xf32>
    %56 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%55 : tensor<4x16x1xf32>) outs(%2 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %70 = math.rsqrt %in : f32
      linalg.yield %70 : f32
    } -> tensor<4x16x1xf32>
    %57 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%51, %56 : tensor<4x16x64xf32>, tensor<4x16x1xf32>) outs(%0 : tensor<4x16x64xf32>) {
    ^bb0(%in: f32, %in_39: f32, %out: f32):
      %70 = arith.mulf %in, %in_39 : f32
      linalg.yield %70 : f32
    } -> tensor<4x16x64xf32>
    %58 = linalg.generic {indexing_maps = [#map2, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg9, %57 : tensor<64xf32>, tensor<4x16x64xf32>) outs(%0 : tensor<4x16x64xf32>) {
    ^bb0(%in: f32, %in_39: f32, %out: f32):
      %70 = arith.mulf %in, %in_39 : f32
      linalg.yield %70 : f32
    } -> tensor<4x16x64xf32>
    %collapsed_31 = tensor.collapse_shape %58 [[0, 1], [2]] : tensor<4x16x64xf32> into tensor<64x64xf32>
    %59 = tensor.empty() : tensor<64x160xf32>
    %transposed_32 = linalg.transpose ins(%arg10 : tensor<160x64xf32>) outs(%59 : tensor<64x160xf32>) permutation = [1, 0] 
    %60 = linalg.fill ins(%cst : f32) outs(%59 : tensor<64x160xf32>) -> tensor<64x160xf32>
    %61 = linalg.matmul ins(%collapsed_31, %transposed_32 : tensor<64x64xf32>, tensor<64x160xf32>) outs(%60 : tensor<64x160xf32>) -> tensor<64x160xf32>
    %expanded_33 = tensor.expand_shape %61 [[0, 1], [2]] output_shape [4, 16, 160] : tensor<64x160xf32> into tensor<4x16x160xf32>
    %62 = tensor.empty() : tensor<4x16x160xf32>
    %63 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_33 : tensor<4x16x160xf32>) outs(%62 : tensor<4x16x160xf32>) {
    ^bb0(%in: f32, %out: f32):
      %70 = arith.negf %in : f32
      %71 = math.exp %70 : f32
      %72 = arith.addf %71, %cst_1 : f32
      %73 = arith.divf %cst_1, %72 : f32
      linalg.yield %73 : f32
    } -> tensor<4x16x160xf32>
    %64 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_33, %63 : tensor<4x16x160xf32>, tensor<4x16x160xf32>) outs(%62 : tensor<4x16x160xf32>) {
    ^bb0(%in: f32, %in_39: f32, %out: f32):
      %70 = arith.mulf %in, %in_39 : f32
      linalg.yield %70 : f32
    } -> tensor<4x16x160xf32>
    %transposed_34 = linalg.transpose ins(%arg11 : tensor<160x64xf32>) outs(%59 : tensor<64x160xf32>) permutation = [1, 0] 
    %65 = linalg.matmul ins(%collapsed_31, %transposed_34 : tensor<64x64xf32>, tensor<64x160xf32>) outs(%60 : tensor<64x160xf32>) -> tensor<64x160xf32>
    %expanded_35 = tensor.expand_shape %65 [[0, 1], [2]] output_shape [4, 16, 160] : tensor<64x160xf32> into tensor<4x16x160xf32>
    %66 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%64, %expanded_35 : tensor<4x16x160xf32>, tensor<4x16x160xf32>) outs(%62 : tensor<4x16x160xf32>) {
    ^bb0(%in: f32, %in_39: f32, %out: f32):
      %70 = arith.mulf %in, %in_39 : f32
      linalg.yield %70 : f32
    } -> tensor<4x16x160xf32>
    %collapsed_36 = tensor.collapse_shape %66 [[0, 1], [2]] : tensor<4x16x160xf32> into tensor<64x160xf32>
    %67 = tensor.empty() : tensor<160x64xf32>
    %transposed_37 = linalg.transpose ins(%arg12 : tensor<64x160xf32>) outs(%67 : tensor<160x64xf32>) permutation = [1, 0] 
    %68 = linalg.matmul ins(%collapsed_36, %transposed_37 : tensor<64x160xf32>, tensor<160x64xf32>) outs(%11 : tensor<64x64xf32>) -> tensor<64x64xf32>
    %expanded_38 = tensor.expand_shape %68 [[0, 1], [2]] output_shape [4, 16, 64] : tensor<64x64xf32> into tensor<4x16x64xf32>
    %69 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%51, %expanded_38 : tensor<4x16x64xf32>, tensor<4x16x64xf32>) outs(%0 : tensor<4x16x64xf32>) {
    ^bb0(%in: f32, %in_39: f32, %out: f32):
      %70 = arith.addf %in, %in_39 : f32
      linalg.yield %70 : f32
    } -> tensor<4x16x64xf32>
    return %69 : tensor<4x16x64xf32>
  }
  func.func @main(%arg0: tensor<4x16xi64> {hp.name = "input_ids", hp.role = "input"}, %arg1: tensor<8192x64xf32> {hp.name = "model.embed_tokens.weight", hp.role = "parameter"}, %arg2: tensor<64x64xf32> {hp.name = "model.layers.0.self_attn.q_proj.weight", hp.role = "parameter"}, %arg3: tensor<32x64xf32> {hp.name = "model.layers.0.self_attn.k_proj.weight", hp.role = "parameter"}, %arg4: tensor<32x64xf32> {hp.name = "model.layers.0.self_attn.v_proj.weight", hp.role = "parameter"}, %arg5: tensor<64x64xf32> {hp.name = "model.layers.0.self_attn.o_proj.weight", hp.role = "parameter"}, %arg6: tensor<160x64xf32> {hp.name = "model.layers.0.mlp.gate_proj.weight", hp.role = "parameter"}, %arg7: tensor<160x64xf32> {hp.name = "model.layers.0.mlp.up_proj.weight", hp.role = "parameter"}, %arg8: tensor<64x160xf32> {hp.name = "model.layers.0.mlp.down_proj.weight", hp.role = "parameter"}, %arg9: tensor<64xf32> {hp.name = "model.layers.0.input_layernorm.weight", hp.role = "parameter"}, %arg10: tensor<64xf32> {hp.name = "model.layers.0.post_attention_layernorm.weight", hp.role = "parameter"}, %arg11: tensor<64x64xf32> {hp.name = "model.layers.1.self_attn.q_proj.weight", hp.role = "parameter"}, %arg12: tensor<32x64xf32> {hp.name = "model.layers.1.self_attn.k_proj.weight", hp.role = "parameter"}, %arg13: tensor<32x64xf32> {hp.name = "model.layers.1.self_attn.v_proj.weight", hp.role = "parameter"}, %arg14: tensor<64x64xf32> {hp.name = "model.layers.1.self_attn.o_proj.weight", hp.role = "parameter"}, %arg15: tensor<160x64xf32> {hp.name = "model.layers.1.mlp.gate_proj.weight", hp.role = "parameter"}, %arg16: tensor<160x64xf32> {hp.name = "model.layers.1.mlp.up_proj.weight", hp.role = "parameter"}, %arg17: tensor<64x160xf32> {hp.name = "model.layers.1.mlp.down_proj.weight", hp.role = "parameter"}, %arg18: tensor<64xf32> {hp.name = "model.layers.1.input_layernorm.weight", hp.role = "parameter"}, %arg19: tensor<64xf32> {hp.name = "model.layers.1.post_attention_layernorm.weight", hp.role = "parameter"}, %arg20: tensor<64xf32> {hp.name = "model.norm.weight", hp.role = "parameter"}, %arg21: tensor<8192x64xf32> {hp.name = "lm_head.weight", hp.role = "parameter"}, %arg22: tensor<8xf32> {hp.name = "model.rotary_emb.inv_freq", hp.role = "buffer"}) -> (tensor<4x16x8192xf32> {hp.name = "logits"}) {
    %c4_i64 = arith.constant 4 : i64
    %c1_i64 = arith.constant 1 : i64
    %c16_i64 = arith.constant 16 : i64
    %c0_i64 = arith.constant 0 : i64
    %c8192 = arith.constant 8192 : index
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant dense<-3.40282347E+38> : tensor<f32>
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_2 = arith.constant dense<true> : tensor<i1>
    %cst_3 = arith.constant 9.99999997E-7 : f32
    %cst_4 = arith.constant 6.400000e+01 : f32
    %0 = tensor.empty() : tensor<4x16x64xf32>
    %1 = linalg.generic {indexing_maps = [#map10, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0 : tensor<4x16xi64>) outs(%0 : tensor<4x16x64xf32>) {
    ^bb0(%in: i64, %out: f32):
      %50 = arith.index_cast %in : i64 to index
      %51 = linalg.index 2 : index
      %52 = arith.cmpi slt, %50, %c8192 : index
      cf.assert %52, "index must be smaller than dim size"
      %53 = arith.cmpi sge, %in, %c0_i64 : i64
      cf.assert %53, "index must be larger or equal to 0"
      %extracted = tensor.extract %arg1[%50, %51] : tensor<8192x64xf32>
      linalg.yield %extracted : f32
    } -> tensor<4x16x64xf32>
    %2 = tensor.empty() : tensor<16xi64>
    %3 = linalg.generic {indexing_maps = [#map11], iterator_types = ["parallel"]} outs(%2 : tensor<16xi64>) {
    ^bb0(%out: i64):
      %50 = linalg.index 0 : index
      %51 = arith.index_cast %50 : index to i64
      linalg.yield %51 : i64
    } -> tensor<16xi64>
    %4 = tensor.empty() : tensor<4x16xi64>
    %5 = linalg.generic {indexing_maps = [#map12, #map13], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<16xi64>) outs(%4 : tensor<4x16xi64>) {
    ^bb0(%in: i64, %out: i64):
      linalg.yield %in : i64
    } -> tensor<4x16xi64>
    %extracted_slice = tensor.extract_slice %5[0, 0] [4, 1] [1, 1] : tensor<4x16xi64> to tensor<4x1xi64>
    %6 = tensor.empty() : tensor<4x1xi64>
    %7 = linalg.generic {indexing_maps = [#map13, #map13], iterator_types = ["parallel", "parallel"]} ins(%extracted_slice : tensor<4x1xi64>) outs(%6 : tensor<4x1xi64>) {
    ^bb0(%in: i64, %out: i64):
      %50 = arith.subi %in, %c1_i64 : i64
      linalg.yield %50 : i64
    } -> tensor<4x1xi64>
    %concat = tensor.concat dim(1) %7, %5 : (tensor<4x1xi64>, tensor<4x16xi64>) -> tensor<4x17xi64>
    %extracted_slice_5 = tensor.extract_slice %concat[0, 0] [4, 16] [1, 1] : tensor<4x17xi64> to tensor<4x16xi64>
    %extracted_slice_6 = tensor.extract_slice %concat[0, 1] [4, 16] [1, 1] : tensor<4x17xi64> to tensor<4x16xi64>
    %8 = linalg.generic {indexing_maps = [#map13, #map13, #map13], iterator_types = ["parallel", "parallel"]} ins(%extracted_slice_6, %extracted_slice_5 : tensor<4x16xi64>, tensor<4x16xi64>) outs(%4 : tensor<4x16xi64>) {
    ^bb0(%in: i64, %in_13: i64, %out: i64):
      %50 = arith.subi %in, %in_13 : i64
      linalg.yield %50 : i64
    } -> tensor<4x16xi64>
    %9 = tensor.empty() : tensor<4x16xi1>
    %10 = linalg.generic {indexing_maps = [#map13, #map13], iterator_types = ["parallel", "parallel"]} ins(%8 : tensor<4x16xi64>) outs(%9 : tensor<4x16xi1>) {
    ^bb0(%in: i64, %out: i1):
      %50 = arith.cmpi ne, %in, %c1_i64 : i64
      linalg.yield %50 : i1
    } -> tensor<4x16xi1>
    %c0_i64_7 = arith.constant 0 : i64
    %11 = tensor.empty() : tensor<4x16xi64>
    %12 = linalg.fill ins(%c0_i64_7 : i64) outs(%11 : tensor<4x16xi64>) -> tensor<4x16xi64>
    %13 = linalg.generic {indexing_maps = [#map14, #map10], iterator_types = ["parallel", "parallel", "reduction"]} ins(%10 : tensor<4x16xi1>) outs(%12 : tensor<4x16xi64>) {
    ^bb0(%in: i1, %out: i64):
      %50 = linalg.index 1 : index
      %51 = linalg.index 2 : index
      %52 = arith.cmpi ule, %51, %50 : index
      %53 = arith.extui %in : i1 to i64
      %54 = arith.select %52, %53, %c0_i64_7 : i64
      %55 = arith.addi %out, %54 : i64
      linalg.yield %55 : i64
    } -> tensor<4x16xi64>
    %14 = tensor.empty() : tensor<4xi64>
    %15 = linalg.generic {indexing_maps = [#map11], iterator_types = ["parallel"]} outs(%14 : tensor<4xi64>) {
    ^bb0(%out: i64):
      %50 = linalg.index 0 : index
      %51 = arith.index_cast %50 : index to i64
      linalg.yield %51 : i64
    } -> tensor<4xi64>
    %expanded = tensor.expand_shape %15 [[0, 1, 2, 3]] output_shape [4, 1, 1, 1] : tensor<4xi64> into tensor<4x1x1x1xi64>
    %expanded_8 = tensor.expand_shape %3 [[0, 1, 2, 3]] output_shape [1, 1, 16, 1] : tensor<16xi64> into tensor<1x1x16x1xi64>
    %expanded_9 = tensor.expand_shape %3 [[0, 1, 2, 3]] output_shape [1, 1, 1, 16] : tensor<16xi64> into tensor<1x1x1x16xi64>
    %16 = tensor.empty() : tensor<4x1x16x1xi64>
    %17 = linalg.generic {indexing_maps = [#map15, #map16, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded, %expanded_8 : tensor<4x1x1x1xi64>, tensor<1x1x16x1xi64>) outs(%16 : tensor<4x1x16x1xi64>) {
    ^bb0(%in: i64, %in_13: i64, %out: i64):
      %50 = arith.cmpi slt, %in, %c0_i64 : i64
      %51 = arith.addi %in, %c4_i64 : i64
      %52 = arith.select %50, %51, %in : i64
      %53 = arith.index_cast %52 : i64 to index
      %54 = arith.cmpi slt, %in_13, %c0_i64 : i64
      %55 = arith.addi %in_13, %c16_i64 : i64
      %56 = arith.select %54, %55, %in_13 : i64
      %57 = arith.index_cast %56 : i64 to index
      %extracted = tensor.extract %5[%53, %57] : tensor<4x16xi64>
      linalg.yield %extracted : i64
    } -> tensor<4x1x16x1xi64>
    %18 = tensor.empty() : tensor<4x1x1x16xi64>
    %19 = linalg.generic {indexing_maps = [#map15, #map17, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded, %expanded_9 : tensor<4x1x1x1xi64>, tensor<1x1x1x16xi64>) outs(%18 : tensor<4x1x1x16xi64>) {
    ^bb0(%in: i64, %in_13: i64, %out: i64):
      %50 = arith.cmpi slt, %in, %c0_i64 : i64
      %51 = arith.addi %in, %c4_i64 : i64
      %52 = arith.select %50, %51, %in : i64
      %53 = arith.index_cast %52 : i64 to index
      %54 = arith.cmpi slt, %in_13, %c0_i64 : i64
      %55 = arith.addi %in_13, %c16_i64 : i64
      %56 = arith.select %54, %55, %in_13 : i64
      %57 = arith.index_cast %56 : i64 to index
      %extracted = tensor.extract %5[%53, %57] : tensor<4x16xi64>
      linalg.yield %extracted : i64
    } -> tensor<4x1x1x16xi64>
    %20 = tensor.empty() : tensor<4x1x16x16xi1>
    %21 = linalg.generic {indexing_maps = [#map18, #map9, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%19, %17 : tensor<4x1x1x16xi64>, tensor<4x1x16x1xi64>) outs(%20 : tensor<4x1x16x16xi1>) {
    ^bb0(%in: i64, %in_13: i64, %out: i1):
      %50 = arith.cmpi sle, %in, %in_13 : i64
      linalg.yield %50 : i1
    } -> tensor<4x1x16x16xi1>
    %22 = linalg.generic {indexing_maps = [#map19, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%cst_2, %21 : tensor<i1>, tensor<4x1x16x16xi1>) outs(%20 : tensor<4x1x16x16xi1>) {
    ^bb0(%in: i1, %in_13: i1, %out: i1):
      %50 = arith.andi %in, %in_13 : i1
      linalg.yield %50 : i1
    } -> tensor<4x1x16x16xi1>
    %23 = linalg.generic {indexing_maps = [#map15, #map16, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded, %expanded_8 : tensor<4x1x1x1xi64>, tensor<1x1x16x1xi64>) outs(%16 : tensor<4x1x16x1xi64>) {
    ^bb0(%in: i64, %in_13: i64, %out: i64):
      %50 = arith.cmpi slt, %in, %c0_i64 : i64
      %51 = arith.addi %in, %c4_i64 : i64
      %52 = arith.select %50, %51, %in : i64
      %53 = arith.index_cast %52 : i64 to index
      %54 = arith.cmpi slt, %in_13, %c0_i64 : i64
      %55 = arith.addi %in_13, %c16_i64 : i64
      %56 = arith.select %54, %55, %in_13 : i64
      %57 = arith.index_cast %56 : i64 to index
      %extracted = tensor.extract %13[%53, %57] : tensor<4x16xi64>
      linalg.yield %extracted : i64
    } -> tensor<4x1x16x1xi64>
    %24 = linalg.generic {indexing_maps = [#map15, #map17, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded, %expanded_9 : tensor<4x1x1x1xi64>, tensor<1x1x1x16xi64>) outs(%18 : tensor<4x1x1x16xi64>) {
    ^bb0(%in: i64, %in_13: i64, %out: i64):
      %50 = arith.cmpi slt, %in, %c0_i64 : i64
      %51 = arith.addi %in, %c4_i64 : i64
      %52 = arith.select %50, %51, %in : i64
      %53 = arith.index_cast %52 : i64 to index
      %54 = arith.cmpi slt, %in_13, %c0_i64 : i64
      %55 = arith.addi %in_13, %c16_i64 : i64
      %56 = arith.select %54, %55, %in_13 : i64
      %57 = arith.index_cast %56 : i64 to index
      %extracted = tensor.extract %13[%53, %57] : tensor<4x16xi64>
      linalg.yield %extracted : i64
    } -> tensor<4x1x1x16xi64>
    %25 = linalg.generic {indexing_maps = [#map9, #map18, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%23, %24 : tensor<4x1x16x1xi64>, tensor<4x1x1x16xi64>) outs(%20 : tensor<4x1x16x16xi1>) {
    ^bb0(%in: i64, %in_13: i64, %out: i1):
      %50 = arith.cmpi eq, %in, %in_13 : i64
      linalg.yield %50 : i1
    } -> tensor<4x1x16x16xi1>
    %26 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%22, %25 : tensor<4x1x16x16xi1>, tensor<4x1x16x16xi1>) outs(%20 : tensor<4x1x16x16xi1>) {
    ^bb0(%in: i1, %in_13: i1, %out: i1):
      %50 = arith.andi %in, %in_13 : i1
      linalg.yield %50 : i1
    } -> tensor<4x1x16x16xi1>
    %27 = tensor.empty() : tensor<4x1x16x16xf32>
    %28 = linalg.generic {indexing_maps = [#map3, #map19, #map19, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%26, %cst_1, %cst_0 : tensor<4x1x16x16xi1>, tensor<f32>, tensor<f32>) outs(%27 : tensor<4x1x16x16xf32>) {
    ^bb0(%in: i1, %in_13: f32, %in_14: f32, %out: f32):
      %50 = arith.select %in, %in_13, %in_14 : f32
      linalg.yield %50 : f32
    } -> tensor<4x1x16x16xf32>
    %expanded_10 = tensor.expand_shape %3 [[0, 1, 2]] output_shape [1, 16, 1] : tensor<16xi64> into tensor<1x16x1xi64>
    %29 = tensor.empty() : tensor<1x16x1xf32>
    %30 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_10 : tensor<1x16x1xi64>) outs(%29 : tensor<1x16x1xf32>) {
    ^bb0(%in: i64, %out: f32):
      %50 = arith.sitofp %in : i64 to f32
      linalg.yield %50 : f32
    } -> tensor<1x16x1xf32>
    %31 = tensor.empty() : tensor<1x16x8xf32>
    %32 = linalg.generic {indexing_maps = [#map1, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%30, %arg22 : tensor<1x16x1xf32>, tensor<8xf32>) outs(%31 : tensor<1x16x8xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %50 = arith.mulf %in, %in_13 : f32
      linalg.yield %50 : f32
    } -> tensor<1x16x8xf32>
    %concat_11 = tensor.concat dim(2) %32, %32 : (tensor<1x16x8xf32>, tensor<1x16x8xf32>) -> tensor<1x16x16xf32>
    %33 = tensor.empty() : tensor<1x16x16xf32>
    %34 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%concat_11 : tensor<1x16x16xf32>) outs(%33 : tensor<1x16x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %50 = math.cos %in : f32
      linalg.yield %50 : f32
    } -> tensor<1x16x16xf32>
    %35 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%concat_11 : tensor<1x16x16xf32>) outs(%33 : tensor<1x16x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %50 = math.sin %in : f32
      linalg.yield %50 : f32
    } -> tensor<1x16x16xf32>
    %36 = call @LlamaDecoderLayer(%1, %34, %35, %28, %arg9, %arg2, %arg3, %arg4, %arg5, %arg10, %arg6, %arg7, %arg8) {hp.path = "model.layers.0"} : (tensor<4x16x64xf32>, tensor<1x16x16xf32>, tensor<1x16x16xf32>, tensor<4x1x16x16xf32>, tensor<64xf32>, tensor<64x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<160x64xf32>, tensor<160x64xf32>, tensor<64x160xf32>) -> tensor<4x16x64xf32>
    %37 = call @LlamaDecoderLayer(%36, %34, %35, %28, %arg18, %arg11, %arg12, %arg13, %arg14, %arg19, %arg15, %arg16, %arg17) {hp.path = "model.layers.1"} : (tensor<4x16x64xf32>, tensor<1x16x16xf32>, tensor<1x16x16xf32>, tensor<4x1x16x16xf32>, tensor<64xf32>, tensor<64x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<160x64xf32>, tensor<160x64xf32>, tensor<64x160xf32>) -> tensor<4x16x64xf32>
    %38 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%37, %37 : tensor<4x16x64xf32>, tensor<4x16x64xf32>) outs(%0 : tensor<4x16x64xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %50 = arith.mulf %in, %in_13 : f32
      linalg.yield %50 : f32
    } -> tensor<4x16x64xf32>
    %39 = tensor.empty() : tensor<4x16x1xf32>
    %40 = linalg.fill ins(%cst : f32) outs(%39 : tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %41 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%38 : tensor<4x16x64xf32>) outs(%40 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %50 = arith.addf %in, %out : f32
      linalg.yield %50 : f32
    } -> tensor<4x16x1xf32>
    %42 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%41 : tensor<4x16x1xf32>) outs(%39 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %50 = arith.divf %in, %cst_4 : f32
      linalg.yield %50 : f32
    } -> tensor<4x16x1xf32>
    %43 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%42 : tensor<4x16x1xf32>) outs(%39 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %50 = arith.addf %in, %cst_3 : f32
      linalg.yield %50 : f32
    } -> tensor<4x16x1xf32>
    %44 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%43 : tensor<4x16x1xf32>) outs(%39 : tensor<4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %50 = math.rsqrt %in : f32
      linalg.yield %50 : f32
    } -> tensor<4x16x1xf32>
    %45 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%37, %44 : tensor<4x16x64xf32>, tensor<4x16x1xf32>) outs(%0 : tensor<4x16x64xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %50 = arith.mulf %in, %in_13 : f32
      linalg.yield %50 : f32
    } -> tensor<4x16x64xf32>
    %46 = linalg.generic {indexing_maps = [#map2, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg20, %45 : tensor<64xf32>, tensor<4x16x64xf32>) outs(%0 : tensor<4x16x64xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %50 = arith.mulf %in, %in_13 : f32
      linalg.yield %50 : f32
    } -> tensor<4x16x64xf32>
    %collapsed = tensor.collapse_shape %46 [[0, 1], [2]] : tensor<4x16x64xf32> into tensor<64x64xf32>
    %47 = tensor.empty() : tensor<64x8192xf32>
    %transposed = linalg.transpose ins(%arg21 : tensor<8192x64xf32>) outs(%47 : tensor<64x8192xf32>) permutation = [1, 0] 
    %48 = linalg.fill ins(%cst : f32) outs(%47 : tensor<64x8192xf32>) -> tensor<64x8192xf32>
    %49 = linalg.matmul ins(%collapsed, %transposed : tensor<64x64xf32>, tensor<64x8192xf32>) outs(%48 : tensor<64x8192xf32>) -> tensor<64x8192xf32>
    %expanded_12 = tensor.expand_shape %49 [[0, 1], [2]] output_shape [4, 16, 8192] : tensor<64x8192xf32> into tensor<4x16x8192xf32>
    return %expanded_12 : tensor<4x16x8192xf32>
  }
}
