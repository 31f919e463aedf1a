// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plans that are malformed, or do not fit the program.
// RUN: not hp-opt %s --pass-pipeline='builtin.module(hypermpmd-form-fragments{plan=})' 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not hp-opt %s --pass-pipeline='builtin.module(hypermpmd-form-fragments{plan=@/nonexistent.json})' 2>&1 | FileCheck %s --check-prefix=FILE
// RUN: not hp-opt %s --pass-pipeline='builtin.module(hypermpmd-form-fragments{plan={{"groups":}}})' 2>&1 | FileCheck %s --check-prefix=SYNTAX
// RUN: not hp-opt %s --pass-pipeline='builtin.module(hypermpmd-form-fragments{plan={{"groups":[]}}})' 2>&1 | FileCheck %s --check-prefix=PARTS
// RUN: not hp-opt %s --pass-pipeline='builtin.module(hypermpmd-form-fragments{plan={{"groups":[],"stages":[]}}})' 2>&1 | FileCheck %s --check-prefix=NOGROUP
// RUN: not hp-opt %s --pass-pipeline='builtin.module(hypermpmd-form-fragments{plan={{"groups":[{"name":"a"}],"stages":[]}}})' 2>&1 | FileCheck %s --check-prefix=GROUP
// RUN: not hp-opt %s --pass-pipeline='builtin.module(hypermpmd-form-fragments{plan={{"groups":[{"name":"a","axes":[["tp"]]}],"stages":[]}}})' 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: not hp-opt %s --pass-pipeline='builtin.module(hypermpmd-form-fragments{plan={{"groups":[{"name":"a","axes":[["tp",0]]}],"stages":[]}}})' 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not hp-opt %s --pass-pipeline='builtin.module(hypermpmd-form-fragments{plan={{"groups":[{"name":"a","axes":[["tp",2]],"device_ids":["x"]}],"stages":[]}}})' 2>&1 | FileCheck %s --check-prefix=IDS
// RUN: not hp-opt %s --pass-pipeline='builtin.module(hypermpmd-form-fragments{plan={{"groups":[{"name":"a","axes":[["tp",2]]}],"stages":[]}}})' 2>&1 | FileCheck %s --check-prefix=NOSTAGE
// RUN: not hp-opt %s --pass-pipeline='builtin.module(hypermpmd-form-fragments{plan={{"groups":[{"name":"a","axes":[["tp",2]]}],"stages":[{"group":"b"}]}}})' 2>&1 | FileCheck %s --check-prefix=STAGE
// RUN: not hp-opt %s --pass-pipeline='builtin.module(hypermpmd-form-fragments{plan={{"groups":[{"name":"a","axes":[["tp",2]]}],"stages":[{"group":"a","blocks":[1]}]}}})' 2>&1 | FileCheck %s --check-prefix=PATHS
// RUN: not hp-opt %s --pass-pipeline='builtin.module(hypermpmd-form-fragments{plan={{"groups":[{"name":"a","axes":[["tp",2]]}],"stages":[{"group":"a","blocks":["h.0"]},{"group":"a","blocks":["h.0"]}]}}})' 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not hp-opt %s --pass-pipeline='builtin.module(hypermpmd-form-fragments{plan={{"groups":[{"name":"a","axes":[["tp",2]]}],"stages":[{"group":"a","blocks":["h.7"]}]}}})' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not hp-opt %s --pass-pipeline='builtin.module(hypermpmd-form-fragments{plan={{"groups":[{"name":"a","axes":[["tp",2]]}],"stages":[{"group":"a"},{"group":"a"}]}}})' 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: not hp-opt %s --pass-pipeline='builtin.module(hypermpmd-form-fragments{plan={{"groups":[{"name":"a","axes":[["tp",2]]}],"stages":[{"group":"a","blocks":["h.0"]}]}}})' 2>&1 | FileCheck %s --check-prefix=PHASE

// EMPTY: error: plan: expected JSON but got nothing; give the option plan
// FILE: error: plan: cannot read file `/nonexistent.json`: No such file or directory
// SYNTAX: error: plan: malformed JSON
// PARTS: error: plan: expected an object with groups and stages
// NOGROUP: error: plan: expected at least one device group
// GROUP: error: plan: expected a group such as {"name": "g0", "axes": {{\[\[}}"tp", 2{{\]\]}}}
// AXIS: error: plan: group "a": expected an axis such as {{\[}}"tp", 2{{\]}}
// SIZE: error: plan: group "a": expected mesh axis "tp" to have at least 1 device but got 0
// IDS: error: plan: group "a": expected device ids to be whole numbers
// NOSTAGE: error: plan: expected at least one stage
// STAGE: error: plan: expected each stage to name one of the groups, such as {"group": "g0", "blocks": {{\[}}"h.0"{{\]}}}
// PATHS: error: plan: expected the blocks of a stage to be paths
// TWICE: error: plan: block `h.0` is in stage 0 and in stage 1
// UNKNOWN: error: plan: the program has no block named `h.7`
// FEW: error: plan: expected at least 2 blocks to cut into as many stages but the program calls 0
// PHASE: error: expected hp.phase to be forward, backward, backward_input, backward_weight or update but got "sideways"

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = call @f(%x) {hp.path = "h.0", hp.phase = "sideways"} : (tensor<4xf32>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
