//===- Passes.h - passes that print analyses --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_TRANSFORMS_TESTANALYSIS_PASSES_H
#define HYPERPARALLEL_LIB_TRANSFORMS_TESTANALYSIS_PASSES_H

#include "dialects/Supernode/Supernode.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::hyperparallel {

#define GEN_PASS_DECL
#include "lib/Transforms/TestAnalysis/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lib/Transforms/TestAnalysis/Passes.h.inc"

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_TRANSFORMS_TESTANALYSIS_PASSES_H
