//===- Supernode.h - the Supernode dialect ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_DIALECTS_SUPERNODE_SUPERNODE_H
#define HYPERPARALLEL_DIALECTS_SUPERNODE_SUPERNODE_H

#include "dialects/Supernode/Quantity.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dialect.h"
#include "llvm/ADT/StringMap.h"
#include <mutex>

#include "dialects/Supernode/SupernodeEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Supernode/SupernodeAttrs.h.inc"

#include "dialects/Supernode/SupernodeDialect.h.inc"

namespace mlir::hyperparallel::supernode {

/// The machine on which the nearest module around `op` runs, or null.
MachineAttr getMachine(Operation *op);

/// Names of the presets, sorted.
ArrayRef<StringRef> getPresetNames();

} // namespace mlir::hyperparallel::supernode

#endif // HYPERPARALLEL_DIALECTS_SUPERNODE_SUPERNODE_H
