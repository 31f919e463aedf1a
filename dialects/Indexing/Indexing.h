//===- Indexing.h - the Indexing dialect ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_DIALECTS_INDEXING_INDEXING_H
#define HYPERPARALLEL_DIALECTS_INDEXING_INDEXING_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Indexing/IndexingDialect.h.inc"

#define GET_OP_CLASSES
#include "dialects/Indexing/IndexingOps.h.inc"

#endif // HYPERPARALLEL_DIALECTS_INDEXING_INDEXING_H
