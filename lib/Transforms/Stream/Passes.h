//===- Passes.h - passes of the Stream dialect ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_TRANSFORMS_STREAM_PASSES_H
#define HYPERPARALLEL_LIB_TRANSFORMS_STREAM_PASSES_H

#include "dialects/Stream/Stream.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::hyperparallel::stream {

#define GEN_PASS_DECL
#include "lib/Transforms/Stream/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lib/Transforms/Stream/Passes.h.inc"

} // namespace mlir::hyperparallel::stream

#endif // HYPERPARALLEL_LIB_TRANSFORMS_STREAM_PASSES_H
