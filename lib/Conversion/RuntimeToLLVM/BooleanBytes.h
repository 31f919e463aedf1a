//===- BooleanBytes.h - Booleans in memory ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_RUNTIMETOLLVM_BOOLEANBYTES_H
#define HYPERPARALLEL_LIB_CONVERSION_RUNTIMETOLLVM_BOOLEANBYTES_H

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::hyperparallel {

/// Loads and stores of booleans, each of which takes a byte, 0 or 1: what the
/// runtime's ABI says. (Upstream's patterns assert on such elements.)
void populateBooleanBytePatterns(const LLVMTypeConverter &converter,
                                 RewritePatternSet &patterns);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_RUNTIMETOLLVM_BOOLEANBYTES_H
