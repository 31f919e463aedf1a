//===- Passes.h - passes of the Offload dialect -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_TRANSFORMS_OFFLOAD_PASSES_H
#define HYPERPARALLEL_LIB_TRANSFORMS_OFFLOAD_PASSES_H

#include "dialects/Offload/Offload.h"
#include "dialects/Supernode/Supernode.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::hyperparallel::offload {

/// On an argument, or on an allocation: it is an arena.
constexpr llvm::StringLiteral kArenaAttrName = "hp.arena";
/// What offsets in an arena are multiples of.
constexpr int64_t kArenaAlignment = 64;

#define GEN_PASS_DECL
#include "lib/Transforms/Offload/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lib/Transforms/Offload/Passes.h.inc"

} // namespace mlir::hyperparallel::offload

#endif // HYPERPARALLEL_LIB_TRANSFORMS_OFFLOAD_PASSES_H
