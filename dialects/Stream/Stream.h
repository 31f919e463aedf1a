//===- Stream.h - the Stream dialect ----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_DIALECTS_STREAM_STREAM_H
#define HYPERPARALLEL_DIALECTS_STREAM_STREAM_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Stream/StreamDialect.h.inc"
#include "dialects/Stream/StreamEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Stream/StreamAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Stream/StreamTypes.h.inc"

#define GET_OP_CLASSES
#include "dialects/Stream/StreamOps.h.inc"

#endif // HYPERPARALLEL_DIALECTS_STREAM_STREAM_H
