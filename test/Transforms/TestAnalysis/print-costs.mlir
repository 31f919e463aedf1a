// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lines and JSON; the machine that is taken when the module names none; the program stays as it is.
// RUN: hp-opt %s --test-print-costs -o /dev/null | FileCheck %s --check-prefix=TEXT
// RUN: hp-opt %s --test-print-costs=json -o /dev/null | %python -m json.tool | FileCheck %s
// RUN: hp-opt %s -o %t.before && hp-opt %s --test-print-costs -o %t.after && diff %t.before %t.after

// TEXT: @body: flops=1000
// TEXT-NEXT: arith.addf: flops=1000 {{.*}} bound=memory
// TEXT-NEXT: @main: flops=1000
// TEXT-NEXT: func.call @body: flops=1000
// TEXT-NOT: @external

// CHECK: "machine": "cpu-supernode"
// CHECK: "name": "body"
// CHECK: "flops": 1000
// CHECK: "name": "main"
// CHECK: "op": "func.call"
// CHECK: "path": "layers.0"
// CHECK: "callee": "body"
// CHECK: "bytes_read": 8000
// CHECK: "bound": "memory"
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
