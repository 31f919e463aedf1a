// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// JSON, and the machine that is taken when the module names none.
// RUN: hp-opt %s --test-print-costs=json -o /dev/null | %python -m json.tool | FileCheck %s

// CHECK: "machine": "cpu-supernode"
// CHECK: "name": "body"
// CHECK: "flops": 1000
// CHECK: "name": "main"
// CHECK: "op": "func.call"
// CHECK: "path": "layers.0"
// CHECK: "callee": "body"
// CHECK: "bytes_read": 8000
// CHECK: "bound": "launch"
func.func private @body(%a: tensor<1000xf32>) -> tensor<1000xf32> {
  %0 = arith.addf %a, %a : tensor<1000xf32>
  return %0 : tensor<1000xf32>
}
func.func @main(%a: tensor<1000xf32>) -> tensor<1000xf32> {
  %0 = call @body(%a) {hp.path = "layers.0"} : (tensor<1000xf32>) -> tensor<1000xf32>
  return %0 : tensor<1000xf32>
}
// External functions have no cost of their own.
func.func private @external(tensor<1000xf32>)
