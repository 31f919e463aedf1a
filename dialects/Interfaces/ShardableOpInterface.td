//===- ShardableOpInterface.td - how an op may be split ----*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_SHARDABLE_OP_INTERFACE
#define HYPERPARALLEL_SHARDABLE_OP_INTERFACE

include "mlir/IR/OpBase.td"

def ShardableOpInterface : OpInterface<"ShardableOpInterface"> {
  let cppNamespace = "::mlir::hyperparallel";
  let description = [{
    Asked of every op that reads or makes tensors: how do your dimensions
    relate, and what is your local program when they are split? Ops that we do
    not own answer through external models (lib/ExternalModels). An op without
    an answer is never guessed at: its tensors are kept whole.
  }];
  let methods = [
    InterfaceMethod<
      "The factors of the op and the dimensions that they make up.",
      "::mlir::hyperparallel::ShardingRule", "getShardingRule">,
    InterfaceMethod<[{
        Builds the op's local program. The operands and factors are read, and
        the results set, through `context`. Emits an error and fails for what
        cannot be split as asked.
      }],
      "::llvm::LogicalResult", "partition",
      (ins "::mlir::hyperparallel::PartitionContext &":$context)>,
  ];
}

#endif // HYPERPARALLEL_SHARDABLE_OP_INTERFACE
