//===- HyperMPMD.h - the HyperMPMD dialect ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_DIALECTS_HYPERMPMD_HYPERMPMD_H
#define HYPERPARALLEL_DIALECTS_HYPERMPMD_HYPERMPMD_H

#include "dialects/HyperShard/HyperShard.h"
#include "dialects/Interfaces/CostOpInterface.h"
#include "dialects/Interfaces/MovementOpInterface.h"
#include "dialects/Interfaces/ShardableOpInterface.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/HyperMPMD/HyperMPMDDialect.h.inc"
#include "dialects/HyperMPMD/HyperMPMDEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/HyperMPMD/HyperMPMDAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialects/HyperMPMD/HyperMPMDOps.h.inc"

namespace mlir::hyperparallel::hypermpmd {

/// The topology of the innermost module around `op` (or `op` itself) that has
/// one, or null.
TopologyAttr getTopology(Operation *op);

/// One block of a route: `mine` and `theirs` are ranks in the two groups, the
/// offsets are in the part that `mine` holds.
struct RouteBlock {
  int64_t mine, theirs;
  ArrayRef<int64_t> offsets, sizes;
};

/// The blocks of a route for a tensor of that many dimensions.
SmallVector<RouteBlock> readRoute(ArrayRef<int64_t> route, int64_t rank);

} // namespace mlir::hyperparallel::hypermpmd

#endif // HYPERPARALLEL_DIALECTS_HYPERMPMD_HYPERMPMD_H
