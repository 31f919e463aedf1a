//===- Fused.h - the Fused dialect ------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_DIALECTS_FUSED_FUSED_H
#define HYPERPARALLEL_DIALECTS_FUSED_FUSED_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Fused/FusedDialect.h.inc"

#define GET_OP_CLASSES
#include "dialects/Fused/FusedOps.h.inc"

#endif // HYPERPARALLEL_DIALECTS_FUSED_FUSED_H
