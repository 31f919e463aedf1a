//===- FunctionParts.h - functions of some of a function's ops -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What passes share that cut called functions: slices of a body, a function of
// a slice, and signatures without what nobody reads.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_TRANSFORMS_HYPERMPMD_FUNCTIONPARTS_H
#define HYPERPARALLEL_LIB_TRANSFORMS_HYPERMPMD_FUNCTIONPARTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace mlir::hyperparallel::hypermpmd {

using CallsByFunction =
    llvm::MapVector<func::FuncOp, SmallVector<func::CallOp>>;

/// What the op reads, in its regions, too.
SmallVector<Value> readValues(Operation *op);

/// The ops of the body that the values need.
llvm::SmallPtrSet<Operation *, 32> sliceOf(Block &body, ArrayRef<Value> values);

/// A private function beside `original`, of the arguments and results given,
/// with the ops of its body that `keep` wants. It is in the module, and not in
/// a symbol table yet.
func::FuncOp makePart(func::FuncOp original, StringRef suffix,
                      ArrayRef<Value> arguments, ArrayRef<Value> results,
                      function_ref<bool(Operation *)> keep);

/// Drops the arguments that private functions do not read, if the calls given
/// are all that there are: operands keep others alive, and would be moved.
void dropUnreadArguments(func::FuncOp main, const CallsByFunction &calls);

} // namespace mlir::hyperparallel::hypermpmd

#endif // HYPERPARALLEL_LIB_TRANSFORMS_HYPERMPMD_FUNCTIONPARTS_H
