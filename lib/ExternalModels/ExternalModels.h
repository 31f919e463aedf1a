//===- ExternalModels.h - answers for ops that we do not own ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_EXTERNALMODELS_EXTERNALMODELS_H
#define HYPERPARALLEL_LIB_EXTERNALMODELS_EXTERNALMODELS_H

#include "dialects/Interfaces/ShardableOpInterface.h"

namespace mlir {
class DialectRegistry;
namespace hyperparallel {

/// Attaches ShardableOpInterface to linalg, tensor, arith and our own ops.
void registerShardableModels(DialectRegistry &registry);

} // namespace hyperparallel
} // namespace mlir

#endif // HYPERPARALLEL_LIB_EXTERNALMODELS_EXTERNALMODELS_H
