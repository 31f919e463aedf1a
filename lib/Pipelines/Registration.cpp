//===- Registration.cpp - everything of ours, in one call -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/Pipelines/Registration.h"

#include "dialects/HyperShard/HyperShard.h"
#include "lib/ExternalModels/ExternalModels.h"
#include "lib/Pipelines/PhaseContracts.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Transforms/HyperShard/Passes.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;

void hyperparallel::registerDialects(DialectRegistry &registry) {
  registry.insert<hypershard::HyperShardDialect>();
  registerShardableModels(registry);
}

void hyperparallel::registerPasses() {
  hypershard::registerExpandBatchDimsPass();
  hypershard::registerSplitConstantsPass();
  hypershard::registerSpecializeFunctionsPass();
  hypershard::registerPropagateShardingsPass();
  hypershard::registerInsertReshardsPass();
  hypershard::registerLowerReshardsPass();
  registerPhaseContractsPasses();
  registerPhasePipelines();
}
