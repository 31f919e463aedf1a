//===- EntryProgram.h - the program before it is split ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What the passes on fragments share: the entry function, and on which group a
// value is.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_TRANSFORMS_HYPERMPMD_ENTRYPROGRAM_H
#define HYPERPARALLEL_LIB_TRANSFORMS_HYPERMPMD_ENTRYPROGRAM_H

#include "dialects/HyperMPMD/HyperMPMD.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::hyperparallel::hypermpmd {

/// @main of the module, of one block; fails with an error if there is none.
FailureOr<func::FuncOp> getEntry(ModuleOp module);

/// The same, and that it consists of fragments and transfers.
FailureOr<func::FuncOp> getFragmentedEntry(ModuleOp module);

/// The group on which a value is made: that of its fragment, or where it was
/// transferred to. Null for arguments.
StringAttr getMakingGroup(Value value);

/// The groups that are handed an argument; empty if that is not yet known.
ArrayRef<Attribute> getArgumentGroups(func::FuncOp main, unsigned argument);

} // namespace mlir::hyperparallel::hypermpmd

#endif // HYPERPARALLEL_LIB_TRANSFORMS_HYPERMPMD_ENTRYPROGRAM_H
