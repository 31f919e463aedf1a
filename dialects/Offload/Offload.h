//===- Offload.h - the Offload dialect --------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_DIALECTS_OFFLOAD_OFFLOAD_H
#define HYPERPARALLEL_DIALECTS_OFFLOAD_OFFLOAD_H

#include "dialects/Interfaces/CostOpInterface.h"
#include "dialects/Interfaces/MovementOpInterface.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Offload/OffloadDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Offload/OffloadAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Offload/OffloadTypes.h.inc"

#define GET_OP_CLASSES
#include "dialects/Offload/OffloadOps.h.inc"

namespace mlir::hyperparallel::offload {

/// The tier that a tensor's type names; null for the device, and for what is no
/// ranked tensor.
TierAttr getTier(Type type);
/// The same tensor in a tier; on the device if `tier` is null.
RankedTensorType inTier(RankedTensorType type, TierAttr tier);

} // namespace mlir::hyperparallel::offload

#endif // HYPERPARALLEL_DIALECTS_OFFLOAD_OFFLOAD_H
