//===- Passes.h - passes of the HyperShard dialect --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_TRANSFORMS_HYPERSHARD_PASSES_H
#define HYPERPARALLEL_LIB_TRANSFORMS_HYPERSHARD_PASSES_H

#include "dialects/HyperShard/HyperShard.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/Pass.h"

namespace mlir::hyperparallel::hypershard {

#define GEN_PASS_DECL
#include "lib/Transforms/HyperShard/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lib/Transforms/HyperShard/Passes.h.inc"

} // namespace mlir::hyperparallel::hypershard

#endif // HYPERPARALLEL_LIB_TRANSFORMS_HYPERSHARD_PASSES_H
