// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tasks survive text and bytecode, and are neither dropped, merged nor moved.
// RUN: hp-opt %s | hp-opt | FileCheck %s
// RUN: hp-opt %s --emit-bytecode | hp-opt | FileCheck %s
// RUN: hp-opt %s --mlir-print-op-generic | hp-opt | FileCheck %s
// RUN: hp-opt %s --cse --canonicalize | FileCheck %s

// CHECK-LABEL: @tasks
// CHECK-SAME: (%[[X:.*]]: tensor<64xi8>, %[[W:.*]]: tensor<512xi8>)
func.func @tasks(%x: tensor<64xi8>, %w: tensor<512xi8>) -> tensor<512xi8> {
  // CHECK: %[[A:.*]] = tensor.empty() : tensor<64xi8>
  %a = tensor.empty() : tensor<64xi8>
  // CHECK: %[[R:.*]]:2 = supernode.task "conv1" ins(%[[X]] : tensor<64xi8>)
  // CHECK-SAME: outs(%[[A]], %[[W]] : tensor<64xi8>, tensor<512xi8>)
  // CHECK-SAME: {bytes = 6.400000e+01 : f64, flops = 1.000000e+09 : f64, seconds = 1.200000e-03 : f64}
  %r:2 = supernode.task "conv1" ins(%x : tensor<64xi8>) outs(%a, %w : tensor<64xi8>, tensor<512xi8>)
    {seconds = 1.2e-3 : f64, flops = 1.0e9 : f64, bytes = 64.0 : f64}
  // Equal, and without a result: both stay.
  // CHECK-COUNT-2: supernode.task "log" ins(%[[R]]#0 : tensor<64xi8>) {seconds = 1.000000e+00 : f64}
  supernode.task "log" ins(%r#0 : tensor<64xi8>) {seconds = 1.0 : f64}
  supernode.task "log" ins(%r#0 : tensor<64xi8>) {seconds = 1.0 : f64}
  // CHECK: supernode.task "" {seconds = 0.000000e+00 : f64}
  supernode.task "" {seconds = 0.0 : f64}
  return %r#1 : tensor<512xi8>
}
