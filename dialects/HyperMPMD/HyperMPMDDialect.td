//===- HyperMPMDDialect.td - who runs what -----------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_HYPERMPMD_DIALECT
#define HYPERPARALLEL_HYPERMPMD_DIALECT

include "mlir/IR/OpBase.td"

def HyperMPMD_Dialect : Dialect {
  let name = "hypermpmd";
  let cppNamespace = "::mlir::hyperparallel::hypermpmd";
  let summary = "Which device group runs which part of a program, in what order";
  let description = [{
    A *topology* names groups of devices, each with a mesh of its own; sizes may
    differ. A *fragment* is a part of the program that one group runs, on global
    tensors. A *transfer* moves a value from one group to another, where it may
    be split differently.

    ```mlir
    module attributes {hypermpmd.topology =
        #hypermpmd.topology<"enc" = <["tp"=1]>, "dec" = <["tp"=3]>>} {
      func.func @main(%x: tensor<6x8xf32>) -> tensor<6x8xf32> {
        %a = hypermpmd.fragment on "enc" stage 0 forward (%x)
            : (tensor<6x8xf32>) -> tensor<6x8xf32> {
        ^bb0(%in: tensor<6x8xf32>):
          %e = math.exp %in : tensor<6x8xf32>
          hypermpmd.yield %e : tensor<6x8xf32>
        }
        %t = hypermpmd.transfer %a from "enc" to "dec" : tensor<6x8xf32>
        %b = hypermpmd.fragment on "dec" stage 1 forward (%t)
            : (tensor<6x8xf32>) -> tensor<6x8xf32> {
        ^bb0(%in: tensor<6x8xf32>):
          %e = math.tanh %in : tensor<6x8xf32>
          hypermpmd.yield %e : tensor<6x8xf32>
        }
        return %b : tensor<6x8xf32>
      }
    }
    ```

    **The life of a program.** `hypermpmd-form-fragments` makes fragments of the
    calls of an imported program, as the plan says; `hypermpmd-infer-transfers`
    moves what crosses groups; `hypermpmd-schedule` puts each group's fragments
    into order; `hypermpmd-split-programs` makes a nested module of each group,
    named after it and marked with `hypermpmd.group`, whose `@main` sends and
    receives. Each is sharded as any program of one mesh; when all layouts are
    known, `hypermpmd-resolve-transfers` says which block goes from which device
    to which. `hp-convert-hypermpmd-to-runtime` makes calls of that.

    **Devices** are numbered over all groups, in the order of the topology.

    An argument says in `hypermpmd.groups` which groups are handed its value, and
    a result in `hypermpmd.group` which group has it.
  }];
  let dependentDialects = ["::mlir::hyperparallel::hypershard::HyperShardDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    /// On a module: the device groups.
    static constexpr ::llvm::StringLiteral kTopologyAttrName =
        "hypermpmd.topology";
    /// On a nested module or a result: the group that it belongs to. On a call:
    /// the group that the plan wants to run it.
    static constexpr ::llvm::StringLiteral kGroupAttrName = "hypermpmd.group";
    /// On an op of the entry function: its microbatch.
    static constexpr ::llvm::StringLiteral kMicrobatchAttrName =
        "hypermpmd.microbatch";
    /// On an argument: the groups that are handed its value.
    static constexpr ::llvm::StringLiteral kGroupsAttrName = "hypermpmd.groups";
  }];
}

#endif // HYPERPARALLEL_HYPERMPMD_DIALECT
