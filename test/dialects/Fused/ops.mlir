// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every op survives text, generic text and bytecode, on tensors and on buffers.
// RUN: hp-opt %s | hp-opt | FileCheck %s
// RUN: hp-opt %s --mlir-print-op-generic | hp-opt | FileCheck %s
// RUN: hp-opt %s --emit-bytecode | hp-opt | FileCheck %s
// It bufferizes in place: the init is written where it lies, and no operand is copied.
// RUN: hp-opt %s --one-shot-bufferize=bufferize-function-boundaries | FileCheck %s --check-prefix=BUFFERS

#q = affine_map<(b, h, m, n, k, e) -> (b, m, h, k)>
#k = affine_map<(b, h, m, n, k, e) -> (b, n, k)>
#v = affine_map<(b, h, m, n, k, e) -> (b, n, e)>
#mask = affine_map<(b, h, m, n, k, e) -> (m, 0, n)>
#o = affine_map<(b, h, m, n, k, e) -> (b, h, m, e)>

// CHECK-LABEL: func.func @tensors(
// BUFFERS-LABEL: func.func @tensors(
func.func @tensors(%q: tensor<2x8x4x16xbf16>, %k: tensor<2x6x16xbf16>, %v: tensor<2x6x32xbf16>,
                   %mask: tensor<8x1x6xf32>) -> tensor<2x4x8x32xbf16> {
  %init = tensor.empty() : tensor<2x4x8x32xbf16>
  // CHECK: fused.attention {indexing_maps = [#{{.*}}, #{{.*}}, #{{.*}}, #{{.*}}, #{{.*}}], scale = 2.500000e-01 : f64}
  // CHECK-SAME: ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x8x4x16xbf16>, tensor<2x6x16xbf16>, tensor<2x6x32xbf16>, tensor<8x1x6xf32>)
  // CHECK-SAME: outs(%{{.*}} : tensor<2x4x8x32xbf16>) -> tensor<2x4x8x32xbf16>
  // BUFFERS: %[[INIT:.*]] = memref.alloc()
  // BUFFERS-NOT: memref.copy
  // BUFFERS: fused.attention {{.*}} outs(%[[INIT]] : memref<2x4x8x32xbf16>)
  // BUFFERS: return %[[INIT]]
  %0 = fused.attention {indexing_maps = [#q, #k, #v, #mask, #o], scale = 2.500000e-01 : f64}
    ins(%q, %k, %v, %mask : tensor<2x8x4x16xbf16>, tensor<2x6x16xbf16>, tensor<2x6x32xbf16>, tensor<8x1x6xf32>)
    outs(%init : tensor<2x4x8x32xbf16>) -> tensor<2x4x8x32xbf16>
  return %0 : tensor<2x4x8x32xbf16>
}

// CHECK-LABEL: func.func @buffers(
func.func @buffers(%q: memref<2x8x4x16xf32>, %k: memref<2x6x16xf32, strided<[200, 32, 1], offset: 16>>,
                   %v: memref<2x6x16xf32>, %o: memref<2x4x8x16xf32>) {
  // CHECK: fused.attention {{.*}} outs(%{{.*}} : memref<2x4x8x16xf32>){{$}}
  fused.attention {indexing_maps = [#q, #k, #v, #o], scale = 1.000000e+00 : f64}
    ins(%q, %k, %v : memref<2x8x4x16xf32>, memref<2x6x16xf32, strided<[200, 32, 1], offset: 16>>, memref<2x6x16xf32>)
    outs(%o : memref<2x4x8x16xf32>)
  return
}
