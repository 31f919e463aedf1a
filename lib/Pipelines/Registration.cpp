//===- Registration.cpp - everything of ours, in one call -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/Pipelines/Registration.h"

#include "dialects/HyperShard/HyperShard.h"
#include "lib/Conversion/Passes.h"
#include "lib/Pipelines/LowerToCPU.h"
#include "lib/ExternalModels/ExternalModels.h"
#include "lib/Transforms/HyperShard/Passes.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;

void hyperparallel::registerDialects(DialectRegistry &registry) {
  registry.insert<hypershard::HyperShardDialect>();
  registerShardableModels(registry);
}

void hyperparallel::registerPasses() {
  registerHyperParallelConversionPasses();
  registerLowerToCPUPipeline();
  hypershard::registerSplitConstantsPass();
}
