//===- Passes.h - passes about computed places ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_TRANSFORMS_INDEXING_PASSES_H
#define HYPERPARALLEL_LIB_TRANSFORMS_INDEXING_PASSES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::hyperparallel::indexing {

#define GEN_PASS_DECL
#include "lib/Transforms/Indexing/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lib/Transforms/Indexing/Passes.h.inc"

} // namespace mlir::hyperparallel::indexing

#endif // HYPERPARALLEL_LIB_TRANSFORMS_INDEXING_PASSES_H
