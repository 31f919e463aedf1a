// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every number of the cost model, on a machine that makes them countable by hand: 1e9 contraction operations a second in
// f32 (4e9 in bf16; half of the peaks), 1e8 others, 1e9 bytes a second, a launch of 1 us. A task takes the longer of
// operations and bytes, plus the launch.
// RUN: hp-opt %s --test-print-costs -o /dev/null | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i) -> (i)>
#rows = affine_map<(i, j) -> (i)>
#both = affine_map<(i, j) -> (i, j)>

module attributes {supernode.machine = #supernode.machine<"round",
    groups = [<"npu" = 8, memory = "hbm", launch = 1.0e-6, vector = 1.0e8, efficiency = 0.5,
               rates = [f32 = 2.0e9, bf16 = 8.0e9]>],
    levels = [<"package" = 2, latency = 1.0e-6, bandwidth = 1.0e9, algorithms = [ring]>,
              <"node" = 4, latency = 1.0e-5, bandwidth = 1.0e8>],
    tiers = [<"hbm" in "device", capacity = 1.0e9, bandwidth = 1.0e9>]>} {

// 2 M N K = 2*8*4*16 operations; reads 8*16 + 16*4 floats and the accumulator, writes 8*4.
// CHECK-LABEL: @matmul:
// CHECK-NEXT: linalg.matmul: flops=1024 contraction=1024 read=896 written=128 received=0 seconds=2.024e-06 bound=compute
func.func @matmul(%a: tensor<8x16xf32>, %b: tensor<16x4xf32>, %c: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x4xf32>) outs(%c : tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// The rate is that of the operands' type, wherever the sum is kept (2*16*16*64 operations at 4e9); conversions are free.
// f16 is not listed, and done as the narrowest float that is as wide, bf16; f64 has none, and is left to the vector units. A tensor that is two operands is read once.
// CHECK-LABEL: @types:
// CHECK-NEXT: linalg.generic: flops=32768 contraction=32768 read=5120 written=1024 received=0 seconds=9.192e-06 bound=compute
// CHECK-NEXT: linalg.generic: flops=32768 contraction=32768 read=5120 written=1024 received=0 seconds=9.192e-06 bound=compute
// CHECK-NEXT: linalg.dot: flops=2000 contraction=2000 read=8008 written=8 received=0 seconds=2.1e-05 bound=compute
func.func @types(%a: tensor<16x64xbf16>, %b: tensor<64x16xbf16>, %d: tensor<16x64xf16>, %e: tensor<64x16xf16>,
                 %c: tensor<16x16xf32>, %f: tensor<1000xf64>, %g: tensor<f64>) {
  %0 = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<16x64xbf16>, tensor<64x16xbf16>) outs(%c : tensor<16x16xf32>) {
  ^bb0(%x: bf16, %y: bf16, %z: f32):
    %xe = arith.extf %x : bf16 to f32
    %ye = arith.extf %y : bf16 to f32
    %p = arith.mulf %xe, %ye : f32
    %s = arith.addf %z, %p : f32
    linalg.yield %s : f32
  } -> tensor<16x16xf32>
  %1 = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%d, %e : tensor<16x64xf16>, tensor<64x16xf16>) outs(%c : tensor<16x16xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %xe = arith.extf %x : f16 to f32
    %ye = arith.extf %y : f16 to f32
    %p = arith.mulf %xe, %ye : f32
    %s = arith.addf %z, %p : f32
    linalg.yield %s : f32
  } -> tensor<16x16xf32>
  %2 = linalg.dot ins(%f, %f : tensor<1000xf64>, tensor<1000xf64>) outs(%g : tensor<f64>) -> tensor<f64>
  return
}

// An exponential counts ten and an addition one, per element; `outs` that the body does not use is not read.
// A transpose is only bytes, a fill only writes. An embedding reads the rows that it takes (640 floats), not the table.
// CHECK-LABEL: @elementwise:
// CHECK-NEXT: linalg.generic: flops=11264 contraction=0 read=4096 written=4096 received=0 seconds=0.00011364 bound=compute
// CHECK-NEXT: linalg.transpose: flops=0 contraction=0 read=262144 written=262144 received=0 seconds=0.000525288 bound=memory
// CHECK-NEXT: linalg.fill: flops=0 contraction=0 read=0 written=400 received=0 seconds=1.4e-06 bound=launch
// CHECK-NEXT: linalg.generic: flops=0 contraction=0 read=2640 written=2560 received=0 seconds=6.2e-06 bound=memory
// CHECK-NEXT: arith.addf: flops=1024 contraction=0 read=8192 written=4096 received=0 seconds=1.3288e-05 bound=memory
func.func @elementwise(%a: tensor<1024xf32>, %t: tensor<256x256xf32>, %ids: tensor<10xi64>, %table: tensor<1000x64xf32>) {
  %e = tensor.empty() : tensor<1024xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%a : tensor<1024xf32>) outs(%e : tensor<1024xf32>) {
  ^bb0(%x: f32, %out: f32):
    %one = arith.constant 1.0 : f32
    %p = math.exp %x : f32
    %s = arith.addf %p, %one : f32
    linalg.yield %s : f32
  } -> tensor<1024xf32>
  %et = tensor.empty() : tensor<256x256xf32>
  %1 = linalg.transpose ins(%t : tensor<256x256xf32>) outs(%et : tensor<256x256xf32>) permutation = [1, 0]
  %zero = arith.constant 0.0 : f32
  %ef = tensor.empty() : tensor<100xf32>
  %2 = linalg.fill ins(%zero : f32) outs(%ef : tensor<100xf32>) -> tensor<100xf32>
  %eg = tensor.empty() : tensor<10x64xf32>
  %3 = linalg.generic {indexing_maps = [#rows, #both], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<10xi64>) outs(%eg : tensor<10x64xf32>) {
  ^bb0(%id: i64, %out: f32):
    %row = arith.index_cast %id : i64 to index
    %column = linalg.index 1 : index
    %x = tensor.extract %table[%row, %column] : tensor<1000x64xf32>
    linalg.yield %x : f32
  } -> tensor<10x64xf32>
  %4 = arith.addf %a, %0 : tensor<1024xf32>
  return
}

// A convolution is work of the matrix unit, a pooling is not.
// CHECK-LABEL: @windows:
// CHECK-NEXT: linalg.conv_1d_nwc_wcf: flops=192 contraction=192 read=208 written=64 received=0
// CHECK-NEXT: linalg.pooling_nwc_sum: flops=12 contraction=0 read=72 written=24 received=0
func.func @windows(%x: tensor<1x6x2xf32>, %k: tensor<3x2x4xf32>, %y: tensor<1x4x4xf32>, %w: tensor<2xf32>,
                   %z: tensor<1x3x2xf32>, %p: tensor<1x6x2xf32>) {
  %0 = linalg.conv_1d_nwc_wcf ins(%x, %k : tensor<1x6x2xf32>, tensor<3x2x4xf32>) outs(%y : tensor<1x4x4xf32>)
      -> tensor<1x4x4xf32>
  %1 = linalg.pooling_nwc_sum {strides = dense<2> : tensor<1xi64>} ins(%p, %w : tensor<1x6x2xf32>, tensor<2xf32>)
      outs(%z : tensor<1x3x2xf32>) -> tensor<1x3x2xf32>
  return
}

// Views take no time, and are not listed; movers read what they take and write what they make. What the model does not
// know is one pass over operands and results, and says so.
// CHECK-LABEL: @movers:
// CHECK-NEXT: tensor.insert_slice: flops=0 contraction=0 read=128 written=128 received=0 seconds=1.256e-06 bound=launch
// CHECK-NEXT: tensor.pad: flops=0 contraction=0 read=128 written=400 received=0 seconds=1.528e-06
// CHECK-NEXT: tensor.concat: flops=0 contraction=0 read=384 written=384 received=0 seconds=1.768e-06
// CHECK-NEXT: linalg.pack: flops=0 contraction=0 read=512 written=256 received=0 seconds=1.768e-06 bound=launch estimated=1
// CHECK-NOT: tensor
func.func @movers(%a: tensor<8x8xf32>, %b: tensor<4x8xf32>) {
  %0 = tensor.insert_slice %b into %a[4, 0] [4, 8] [1, 1] : tensor<4x8xf32> into tensor<8x8xf32>
  %1 = tensor.extract_slice %a[0, 2] [8, 2] [1, 1] : tensor<8x8xf32> to tensor<8x2xf32>
  %2 = tensor.expand_shape %a [[0, 1], [2]] output_shape [2, 4, 8] : tensor<8x8xf32> into tensor<2x4x8xf32>
  %3 = tensor.collapse_shape %a [[0, 1]] : tensor<8x8xf32> into tensor<64xf32>
  %zero = arith.constant 0.0 : f32
  %4 = tensor.pad %b low[3, 1] high[3, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x8xf32> to tensor<10x10xf32>
  %5 = tensor.concat dim(0) %a, %b : (tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<12x8xf32>
  %6 = tensor.empty() : tensor<2x2x4x4xf32>
  %7 = linalg.pack %a inner_dims_pos = [0, 1] inner_tiles = [4, 4] into %6 : tensor<8x8xf32> -> tensor<2x2x4x4xf32>
  return
}

// A call is the sum of its callee; a loop its body, times its trip count (5, or once if that is unknown); a branch its
// dearest region. The body adds 1000 floats: 8000 + 4000 bytes in 12 us, and the launch.
// CHECK-LABEL: @body:
// CHECK-SAME: flops=1000 {{.*}}seconds=1.3e-05
func.func private @body(%a: tensor<1000xf32>) -> tensor<1000xf32> {
  %0 = arith.addf %a, %a : tensor<1000xf32>
  return %0 : tensor<1000xf32>
}
// CHECK-LABEL: @control:
// CHECK-SAME: flops=9000 {{.*}}seconds=0.000117 bound=memory
// CHECK-NEXT: func.call @body: flops=1000 {{.*}}seconds=1.3e-05
// CHECK-NEXT: scf.for: flops=5000 {{.*}}seconds=6.5e-05
// CHECK-NEXT: scf.for: flops=1000 {{.*}}seconds=1.3e-05
// CHECK-NEXT: scf.if: flops=2000 {{.*}}seconds=2.6e-05
func.func @control(%a: tensor<1000xf32>, %n: index, %p: i1) -> tensor<1000xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c10 = arith.constant 10 : index
  %0 = call @body(%a) : (tensor<1000xf32>) -> tensor<1000xf32>
  %1 = scf.for %i = %c0 to %c10 step %c2 iter_args(%x = %0) -> tensor<1000xf32> {
    %y = func.call @body(%x) : (tensor<1000xf32>) -> tensor<1000xf32>
    scf.yield %y : tensor<1000xf32>
  }
  %2 = scf.for %i = %c0 to %n step %c2 iter_args(%x = %1) -> tensor<1000xf32> {
    %y = func.call @body(%x) : (tensor<1000xf32>) -> tensor<1000xf32>
    scf.yield %y : tensor<1000xf32>
  }
  %3 = scf.if %p -> tensor<1000xf32> {
    %y = func.call @body(%2) : (tensor<1000xf32>) -> tensor<1000xf32>
    scf.yield %y : tensor<1000xf32>
  } else {
    %y = func.call @body(%2) : (tensor<1000xf32>) -> tensor<1000xf32>
    %z = func.call @body(%y) : (tensor<1000xf32>) -> tensor<1000xf32>
    scf.yield %z : tensor<1000xf32>
  }
  return %3 : tensor<1000xf32>
}

// All induction variables count: 2 * 3 times 4 floats are added (48 bytes) and put in their place (32 bytes).
// CHECK-LABEL: @forall:
// CHECK-NEXT: scf.forall: flops=24 contraction=0 read=288 written=192 received=0 seconds=1.248e-05 bound=launch
func.func @forall(%a: tensor<4xf32>, %b: tensor<6x4xf32>) -> tensor<6x4xf32> {
  %0 = scf.forall (%i, %j) in (2, 3) shared_outs(%out = %b) -> tensor<6x4xf32> {
    %k = affine.apply affine_map<(i, j) -> (i * 3 + j)>(%i, %j)
    %s = arith.addf %a, %a : tensor<4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %out[%k, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<6x4xf32>
    }
  }
  return %0 : tensor<6x4xf32>
}

// A function that calls itself is counted once, and ends.
// CHECK-LABEL: @recursive:
// CHECK-SAME: flops=1000 {{.*}}seconds=1.3e-05
func.func @recursive(%a: tensor<1000xf32>) -> tensor<1000xf32> {
  %0 = arith.addf %a, %a : tensor<1000xf32>
  %1 = call @recursive(%0) : (tensor<1000xf32>) -> tensor<1000xf32>
  return %1 : tensor<1000xf32>
}
}
