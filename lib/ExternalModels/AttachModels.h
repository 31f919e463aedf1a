//===- AttachModels.h - one model for several ops ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_EXTERNALMODELS_ATTACHMODELS_H
#define HYPERPARALLEL_LIB_EXTERNALMODELS_ATTACHMODELS_H

#include "mlir/IR/MLIRContext.h"

namespace mlir::hyperparallel {
/// Attaches `Model<Op>` to each of the ops.
template <template <typename> class Model, typename... OpTys>
void attachModels(MLIRContext *context) {
  (OpTys::template attachInterface<Model<OpTys>>(*context), ...);
}
} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_EXTERNALMODELS_ATTACHMODELS_H
