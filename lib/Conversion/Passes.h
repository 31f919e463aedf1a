//===- Passes.h - Conversions to kernels and the runtime --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_PASSES_H
#define HYPERPARALLEL_LIB_CONVERSION_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::hyperparallel {

#define GEN_PASS_DECL
#include "lib/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lib/Conversion/Passes.h.inc"

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_PASSES_H
