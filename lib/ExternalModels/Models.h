//===- Models.h - one registration per dialect ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_EXTERNALMODELS_MODELS_H
#define HYPERPARALLEL_LIB_EXTERNALMODELS_MODELS_H

namespace mlir {
class DialectRegistry;
namespace hyperparallel {

void registerLinalgModels(DialectRegistry &registry);
void registerTensorModels(DialectRegistry &registry);
void registerIndexingModels(DialectRegistry &registry);
void registerFusedModels(DialectRegistry &registry);

} // namespace hyperparallel
} // namespace mlir

#endif // HYPERPARALLEL_LIB_EXTERNALMODELS_MODELS_H
