//===- Registration.cpp - everything of ours, in one call -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/Pipelines/Registration.h"

#include "dialects/Fused/Fused.h"
#include "dialects/HyperMPMD/HyperMPMD.h"
#include "dialects/HyperShard/HyperShard.h"
#include "dialects/Indexing/Indexing.h"
#include "dialects/Offload/Offload.h"
#include "dialects/Stream/Stream.h"
#include "dialects/Supernode/Supernode.h"
#include "lib/Conversion/Passes.h"
#include "lib/ExternalModels/Costs.h"
#include "lib/ExternalModels/ExternalModels.h"
#include "lib/Pipelines/LowerToCPU.h"
#include "lib/Pipelines/LowerToDevice.h"
#include "lib/Pipelines/PhaseContracts.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Transforms/HyperMPMD/Passes.h"
#include "lib/Transforms/HyperShard/Passes.h"
#include "lib/Transforms/Indexing/Passes.h"
#include "lib/Transforms/Offload/Passes.h"
#include "lib/Transforms/Stream/Passes.h"
#include "lib/Transforms/TestAnalysis/Passes.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;

void hyperparallel::registerDialects(DialectRegistry &registry) {
  registry.insert<fused::FusedDialect>();
  registry.insert<hypermpmd::HyperMPMDDialect>();
  registry.insert<hypershard::HyperShardDialect>();
  registry.insert<indexing::IndexingDialect>();
  registry.insert<offload::OffloadDialect>();
  registry.insert<stream::StreamDialect>();
  registry.insert<supernode::SupernodeDialect>();
  registerShardableModels(registry);
  registerCostModels(registry);
}

void hyperparallel::registerPasses() {
  hypershard::registerApplyPlanPass();
  hypershard::registerInlineSegmentsPass();
  hypershard::registerExpandBatchDimsPass();
  registerHyperParallelConversionPasses();
  registerLowerToCPUPipeline();
  registerLowerToDevicePipelines();
  hypershard::registerSplitConstantsPass();
  hypershard::registerSpecializeFunctionsPass();
  hypershard::registerPropagateShardingsPass();
  hypershard::registerInsertReshardsPass();
  hypershard::registerLowerReshardsPass();
  hypershard::registerOptimizeCollectivesPass();
  hypershard::registerCombineCollectivesPass();
  hypershard::registerLiftCollectivesPass();
  hypershard::registerReorderCollectivesPass();
  registerPhaseContractsPasses();
  registerPhasePipelines();
  hypershard::registerPartitionProgramPass();
  hypermpmd::registerHyperMPMDPasses();
  offload::registerPlanTransfersPass();
  offload::registerSplitCallsPass();
  offload::registerSplitLargeOpsPass();
  offload::registerUnrollLoopsPass();
  offload::registerInsertTransfersPass();
  offload::registerVerifyTiersPass();
  offload::registerAssignMemoryPass();
  offload::registerVerifyMemoryPass();
  indexing::registerIndexingPasses();
  stream::registerStreamPasses();
  registerPrintCostsPass();
}
