//===- PhaseContracts.h - what holds after each phase -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_PIPELINES_PHASECONTRACTS_H
#define HYPERPARALLEL_LIB_PIPELINES_PHASECONTRACTS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::hyperparallel {

#define GEN_PASS_DECL
#include "lib/Pipelines/PhaseContracts.h.inc"

#define GEN_PASS_REGISTRATION
#include "lib/Pipelines/PhaseContracts.h.inc"

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_PIPELINES_PHASECONTRACTS_H
