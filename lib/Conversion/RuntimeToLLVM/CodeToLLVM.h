//===- CodeToLLVM.h - What hosts and devices convert alike ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_RUNTIMETOLLVM_CODETOLLVM_H
#define HYPERPARALLEL_LIB_CONVERSION_RUNTIMETOLLVM_CODETOLLVM_H

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::hyperparallel {

/// Converts func, cf, arith, math, memref, index and ub to the LLVM dialect,
/// all of them: buffers are bare pointers, booleans in memory are bytes.
/// `prepare` adds what is the caller's own to the converter and the patterns.
LogicalResult convertCodeToLLVM(
    ModuleOp module,
    llvm::function_ref<void(LLVMTypeConverter &, RewritePatternSet &)> prepare);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_RUNTIMETOLLVM_CODETOLLVM_H
