// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tasks and movements survive text and bytecode, and are neither dropped, merged nor moved.
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

// CHECK-LABEL: @first
// CHECK-SAME: (%[[W:.*]]: tensor<8xi8> {supernode.tier = "pool"})
// CHECK-SAME: attributes {supernode.devices = [0, 4], supernode.program = "first"}
func.func @first(%w: tensor<8xi8> {supernode.tier = "pool"})
    attributes {supernode.program = "first", supernode.devices = [0, 4]} {
  // CHECK: %[[C:.*]] = supernode.copy %[[W]] from "pool" to "hbm" : tensor<8xi8>
  %0 = supernode.copy %w from "pool" to "hbm" : tensor<8xi8>
  // CHECK: supernode.send %[[C]] to "second" tag 7 : tensor<8xi8>
  supernode.send %0 to "second" tag 7 : tensor<8xi8>
  // CHECK: %{{.*}} = supernode.recv from "second" tag 0 : tensor<4xi8>
  %1 = supernode.recv from "second" tag 0 : tensor<4xi8>
  return
}
