//===- ExternalModels.cpp - registration
//------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/ExternalModels/ExternalModels.h"
#include "lib/ExternalModels/Models.h"

#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace mlir::hyperparallel;

void mlir::hyperparallel::registerShardableModels(DialectRegistry &registry) {
  registerLinalgModels(registry);
  registerTensorModels(registry);
  registerIndexingModels(registry);
  registerFusedModels(registry);
}
