//===- Supernode.h - the Supernode dialect ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_DIALECTS_SUPERNODE_SUPERNODE_H
#define HYPERPARALLEL_DIALECTS_SUPERNODE_SUPERNODE_H

#include "dialects/Interfaces/CostOpInterface.h"
#include "dialects/Interfaces/MovementOpInterface.h"
#include "dialects/Supernode/Quantity.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringMap.h"
#include <mutex>

#include "dialects/Supernode/SupernodeEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Supernode/SupernodeAttrs.h.inc"

#include "dialects/Supernode/SupernodeDialect.h.inc"

namespace mlir::hyperparallel::supernode {

/// What tasks change that is no tensor.
struct TaskResource : SideEffects::Resource::Base<TaskResource> {
  StringRef getName() override { return "supernode.task"; }
};

} // namespace mlir::hyperparallel::supernode

#define GET_OP_CLASSES
#include "dialects/Supernode/SupernodeOps.h.inc"

namespace mlir::hyperparallel::supernode {

/// The machine on which the nearest module around `op` runs, or null.
MachineAttr getMachine(Operation *op);

/// Names of the presets, sorted.
ArrayRef<StringRef> getPresetNames();

} // namespace mlir::hyperparallel::supernode

#endif // HYPERPARALLEL_DIALECTS_SUPERNODE_SUPERNODE_H
