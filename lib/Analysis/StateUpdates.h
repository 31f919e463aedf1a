//===- StateUpdates.h - results that are an argument's next value -*- C++
//-*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_ANALYSIS_STATEUPDATES_H
#define HYPERPARALLEL_LIB_ANALYSIS_STATEUPDATES_H

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::hyperparallel {

/// On results of an entry: the `hp.name` of the argument that has this value in
/// the next step. The program may write it into the argument's memory.
inline constexpr llvm::StringLiteral kUpdatesAttrName = "hp.updates";

/// On calls: numbers of a result and of an operand that it may be written over,
/// pair by pair.
inline constexpr llvm::StringLiteral kWrittenOverAttrName = "hp.written_over";

/// By result: the number of the argument that it updates, if it does.
SmallVector<std::optional<unsigned>>
getUpdatedArguments(FunctionOpInterface function);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_ANALYSIS_STATEUPDATES_H
