// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Structured ops that share a kernel share its launch (1 ms, so that it counts) and its trips to memory (1 MB/s): a tensor
// that is made and used within it is neither written nor read, and one from outside is read once.
// RUN: hp-opt %s --test-print-costs -o /dev/null | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#turned = affine_map<(i, j) -> (j, i)>
module attributes {supernode.machine = #supernode.machine<"slow",
    groups = [<"npu" = 1, memory = "hbm", launch = 1.0e-3, vector = 1.0e15, rates = [f32 = 1.0e15]>],
    tiers = [<"hbm" in "device", capacity = 1.0e9, bandwidth = 1.0e6>]>} {

// A softmax without its division: the sum of the rows stays within, %u is handed out, the row sums too. 64 floats in, 64 and
// 8 out: 544 bytes, one launch. The fill is no kernel.
// CHECK-LABEL: @chain: flops={{[0-9]+}} contraction=0 read=256 written=288 received=0 seconds=0.001544
// CHECK-NOT: linalg.fill
// CHECK: linalg.generic: flops=64 contraction=0 read=256 written=0
// CHECK-NEXT: linalg.generic: flops=640 contraction=0 read=0 written=256
// CHECK-NEXT: linalg.generic: flops=64 contraction=0 read=0 written=32
func.func @chain(%a: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %a : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.mulf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<8x8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %s = math.exp %x : f32
    linalg.yield %s : f32
  } -> tensor<8x8xf32>
  %er = tensor.empty() : tensor<8xf32>
  %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<8xf32>) -> tensor<8xf32>
  %2 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%1 : tensor<8x8xf32>) outs(%fr : tensor<8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %x, %o : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %1, %2 : tensor<8x8xf32>, tensor<8xf32>
}

// What comes after a sum over the outermost dimension has to wait for all of it: two launches, and the sums go through memory.
// CHECK-LABEL: @columns: flops={{[0-9]+}} contraction=0 read=544 written=288 received=0 seconds=0.002832
func.func @columns(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %er = tensor.empty() : tensor<8xf32>
  %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<8xf32>) -> tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#turned, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<8x8xf32>) outs(%fr : tensor<8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %x, %o : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %e = tensor.empty() : tensor<8x8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %0 : tensor<8x8xf32>, tensor<8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.subf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// A contraction runs by itself and reads a transpose in place; the bias is another kernel, also through a view. 2 * 256 read and
// 256 written, then 256 + 16 read and 256 written.
// CHECK-LABEL: @product: flops={{[0-9]+}} contraction=1024 read=784 written=512 received=0 seconds=0.003296
// CHECK-NEXT: linalg.matmul: flops=1024 contraction=1024 read=512 written=256
// CHECK-NEXT: linalg.generic: flops=64 contraction=0 read=272 written=256
func.func @product(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %bias: tensor<4xf32>) -> tensor<16x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %t = linalg.transpose ins(%b : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) permutation = [1, 0]
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %0 = linalg.matmul ins(%a, %t : tensor<8x8xf32>, tensor<8x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = tensor.collapse_shape %0 [[0, 1]] : tensor<8x8xf32> into tensor<64xf32>
  %v = tensor.expand_shape %c [[0, 1]] output_shape [16, 4] : tensor<64xf32> into tensor<16x4xf32>
  %ev = tensor.empty() : tensor<16x4xf32>
  %1 = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%v, %bias : tensor<16x4xf32>, tensor<4xf32>) outs(%ev : tensor<16x4xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<16x4xf32>
  return %1 : tensor<16x4xf32>
}
}
