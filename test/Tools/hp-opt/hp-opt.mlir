// The driver knows upstream's dialects and ours.
// RUN: hp-opt %s | FileCheck %s
// RUN: hp-opt --show-dialects | FileCheck %s --check-prefix=DIALECTS

// DIALECTS: Available Dialects:
// DIALECTS-SAME: hypershard
// DIALECTS-SAME: linalg

// CHECK: hypershard.mesh @m = <["dp"=2, "tp"=3]>
hypershard.mesh @m = <["dp"=2, "tp"=3]>

// CHECK-LABEL: func.func @double
func.func @double(%x: tensor<4x6xf32> {hypershard.sharding = #hypershard.sharding<@m, [{"dp"}, {"tp"}]>}) -> tensor<4x6xf32> {
  // CHECK: arith.addf
  %y = arith.addf %x, %x : tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
