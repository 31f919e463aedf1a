//===- Passes.td - passes that print analyses --------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_TRANSFORMS_TESTANALYSIS_PASSES
#define HYPERPARALLEL_TRANSFORMS_TESTANALYSIS_PASSES

include "mlir/Pass/PassBase.td"

def PrintCostsPass : Pass<"test-print-costs", "ModuleOp"> {
  let summary = "Print the cost of every task of the module";
  let description = [{
    One line per function and per task that takes time: operations, bytes,
    seconds on the module's `supernode.machine` (`cpu-supernode` if there is
    none), and what the time goes to. The program is not changed.
  }];
  let dependentDialects = ["::mlir::hyperparallel::supernode::SupernodeDialect"];
  let options = [
    Option<"json", "json", "bool", "false", "Print JSON instead of lines">,
  ];
}

#endif // HYPERPARALLEL_TRANSFORMS_TESTANALYSIS_PASSES
