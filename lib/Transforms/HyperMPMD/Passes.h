//===- Passes.h - passes of the HyperMPMD dialect ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_TRANSFORMS_HYPERMPMD_PASSES_H
#define HYPERPARALLEL_LIB_TRANSFORMS_HYPERMPMD_PASSES_H

#include "dialects/HyperMPMD/HyperMPMD.h"
#include "dialects/Supernode/Supernode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::hyperparallel::hypermpmd {

#define GEN_PASS_DECL
#include "lib/Transforms/HyperMPMD/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lib/Transforms/HyperMPMD/Passes.h.inc"

} // namespace mlir::hyperparallel::hypermpmd

#endif // HYPERPARALLEL_LIB_TRANSFORMS_HYPERMPMD_PASSES_H
