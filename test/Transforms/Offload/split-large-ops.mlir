// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A parameter that is too large for an op comes in parts or by rows; one that fits stays.
// RUN: hp-opt %s --split-input-file --offload-split-large-ops --offload-verify-tiers | FileCheck %s
// RUN: hp-opt %s --split-input-file --offload-split-large-ops=capacity=1000000 | FileCheck %s --check-prefix=FITS

#machine = #supernode.machine<"box",
  groups = [<"npu" = 1, memory = "hbm", launch = 1.0e-6, vector = 1.0e9, rates = [f32 = 1.0e9]>],
  tiers = [<"hbm" in "device", capacity = 300000, bandwidth = 1.0e9>, <"dram" in "device", capacity = 1000000, bandwidth = 1.0e9>],
  links = [<"dram" -> "hbm", latency = 1.0e-6, bandwidth = 1.0e9>, <"hbm" -> "dram", latency = 1.0e-6, bandwidth = 1.0e9>]>

// 6001 rows of 64 bytes; (300000 - 256 - 96064) / 3 bytes are 1061, but a part has 2560 at least, from a multiple of 512
// on, so that the runtime adds up in the same order: two parts, written in place.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<4x16xf32> {hp.role = "input"}, %[[W:.*]]: tensor<6001x16xf32, #offload.tier<dram>>
// CHECK: %[[OUT:.*]] = tensor.empty() : tensor<4x6001xf32>
// CHECK: %[[P:.*]] = tensor.extract_slice %[[W]][0, 0] [2560, 16] [1, 1]
// CHECK: %[[F:.*]] = offload.prefetch %[[P]]
// CHECK: %[[D:.*]] = offload.wait %[[F]] : <tensor<2560x16xf32>>
// CHECK: %[[S:.*]] = tensor.extract_slice %[[OUT]][0, 0] [4, 2560] [1, 1]
// CHECK: %[[Z:.*]] = linalg.fill {{.*}} outs(%[[S]]
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[D]] : {{.*}}) outs(%[[Z]]
// CHECK: tensor.insert_slice %[[R]] into %[[OUT]][0, 0] [4, 2560] [1, 1]
// CHECK: tensor.extract_slice %[[W]][2560, 0] [3441, 16]
// CHECK: %[[LAST:.*]] = tensor.insert_slice {{.*}}[0, 2560] [4, 3441] [1, 1]
// CHECK: return %[[LAST]]

// FITS-LABEL: func.func @main(
// FITS-NOT: offload.
// FITS: return
module attributes {supernode.machine = #machine} {
  func.func @main(%x: tensor<4x16xf32> {hp.role = "input"}, %w: tensor<6001x16xf32> {hp.role = "parameter"}) -> tensor<4x6001xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4x6001xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6001xf32>) -> tensor<4x6001xf32>
    %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
        iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : tensor<4x16xf32>, tensor<6001x16xf32>) outs(%z : tensor<4x6001xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %p, %c : f32
      linalg.yield %s : f32
    } -> tensor<4x6001xf32>
    return %y : tensor<4x6001xf32>
  }
}

// -----

#machine = #supernode.machine<"box",
  groups = [<"npu" = 1, memory = "hbm", launch = 1.0e-6, vector = 1.0e9, rates = [f32 = 1.0e9]>],
  tiers = [<"hbm" in "device", capacity = 6000, bandwidth = 1.0e9>, <"dram" in "device", capacity = 100000, bandwidth = 1.0e9>],
  links = [<"dram" -> "hbm", latency = 1.0e-6, bandwidth = 1.0e9>, <"hbm" -> "dram", latency = 1.0e-6, bandwidth = 1.0e9>]>

// Parts of 100 rows would be narrow products, which the runtime adds up in another order: it stays whole.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: offload.
// CHECK: return
// FITS-LABEL: func.func @main(
// FITS: return
module attributes {supernode.machine = #machine} {
  func.func @main(%x: tensor<4x16xf32> {hp.role = "input"}, %w: tensor<100x16xf32> {hp.role = "parameter"}) -> tensor<4x100xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4x100xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x100xf32>) -> tensor<4x100xf32>
    %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
        iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : tensor<4x16xf32>, tensor<100x16xf32>) outs(%z : tensor<4x100xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %p, %c : f32
      linalg.yield %s : f32
    } -> tensor<4x100xf32>
    return %y : tensor<4x100xf32>
  }
}

// -----

#machine = #supernode.machine<"box",
  groups = [<"npu" = 1, memory = "hbm", launch = 1.0e-6, vector = 1.0e9, rates = [f32 = 1.0e9]>],
  tiers = [<"hbm" in "device", capacity = 6000, bandwidth = 1.0e9>, <"dram" in "device", capacity = 100000, bandwidth = 1.0e9>],
  links = [<"dram" -> "hbm", latency = 1.0e-6, bandwidth = 1.0e9>, <"hbm" -> "dram", latency = 1.0e-6, bandwidth = 1.0e9>]>

// An embedding fetches its rows; the assertion is about all of them and comes before.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[I:.*]]: tensor<2x3xi64> {hp.role = "input"}, %[[S:.*]]: tensor<2x3x16xf32> {hp.role = "input"}, %[[T:.*]]: tensor<100x16xf32, #offload.tier<dram>>
// CHECK: %[[ROWS:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%[[I]]
// CHECK: cf.assert
// CHECK-NOT: tensor.extract
// CHECK: linalg.yield %{{.*}} : i64
// CHECK: %[[F:.*]] = offload.prefetch_rows %[[T]] at %[[ROWS]]
// CHECK: %[[D:.*]] = offload.wait %[[F]] : <tensor<2x3x16xf32>>
// CHECK: linalg.generic {{.*}} ins(%[[I]], %[[S]], %[[D]]
// CHECK-NOT: cf.assert
// CHECK: arith.mulf
// FITS-LABEL: func.func @main(
// FITS-NOT: offload.
// FITS: return
module attributes {supernode.machine = #machine} {
  func.func @main(%i: tensor<2x3xi64> {hp.role = "input"}, %scale: tensor<2x3x16xf32> {hp.role = "input"},
                  %t: tensor<100x16xf32> {hp.role = "parameter"}) -> tensor<2x3x16xf32> {
    %c100 = arith.constant 100 : index
    %e = tensor.empty() : tensor<2x3x16xf32>
    %y = linalg.generic {indexing_maps = [affine_map<(b, s, d) -> (b, s)>, affine_map<(b, s, d) -> (b, s, d)>, affine_map<(b, s, d) -> (b, s, d)>],
        iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%i, %scale : tensor<2x3xi64>, tensor<2x3x16xf32>) outs(%e : tensor<2x3x16xf32>) {
    ^bb0(%n: i64, %f: f32, %o: f32):
      %row = arith.index_cast %n : i64 to index
      %d = linalg.index 2 : index
      %ok = arith.cmpi slt, %row, %c100 : index
      cf.assert %ok, "index must be smaller than dim size"
      %v = tensor.extract %t[%row, %d] : tensor<100x16xf32>
      %r = arith.mulf %v, %f : f32
      linalg.yield %r : f32
    } -> tensor<2x3x16xf32>
    return %y : tensor<2x3x16xf32>
  }
}

// -----

#machine = #supernode.machine<"box",
  groups = [<"npu" = 1, memory = "hbm", launch = 1.0e-6, vector = 1.0e9, rates = [f32 = 1.0e9]>],
  tiers = [<"hbm" in "device", capacity = 6000, bandwidth = 1.0e9>, <"dram" in "device", capacity = 100000, bandwidth = 1.0e9>],
  links = [<"dram" -> "hbm", latency = 1.0e-6, bandwidth = 1.0e9>, <"hbm" -> "dram", latency = 1.0e-6, bandwidth = 1.0e9>]>

// A sum over the first dimension cannot be done in parts: nothing changes, and the planner says what is missing.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: offload.
// CHECK: return
module attributes {supernode.machine = #machine} {
  func.func @main(%w: tensor<100x16xf32> {hp.role = "parameter"}) -> tensor<16xf32> {
    %e = tensor.empty() : tensor<16xf32>
    %y = linalg.reduce { arith.addf } ins(%w : tensor<100x16xf32>) outs(%e : tensor<16xf32>) dimensions = [0]
    return %y : tensor<16xf32>
  }
}
