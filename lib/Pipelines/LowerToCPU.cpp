//===- LowerToCPU.cpp - Phase 7 for the CPU -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contract in:  the program of one device (phase 5): func, linalg on tensors,
//   tensor, arith, math, scf, cf.assert, local collectives.
// Contract out: the LLVM dialect; entries `hp_entry_*`; calls of `hp_rt_*`.
//
//   tensors   collectives to runtime calls, matmuls made to read in place,
//             elementwise chains fused
//   buffers   one-shot bufferization, results to the caller's buffers, kernels
//             formed, buffers freed after their last use, collectives and
//             messages put on streams, then buffers placed in one piece of
//             memory
//   loops     contractions to the runtime, math to polynomials, LLVM
//
//===----------------------------------------------------------------------===//

#include "lib/Pipelines/LowerToCPU.h"

#include "lib/Conversion/Passes.h"
#include "lib/Transforms/Offload/Passes.h"
#include "lib/Transforms/Stream/Passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/BufferizationToMemRef/BufferizationToMemRef.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/Tensor/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace mlir::hyperparallel {

static void cleanUp(OpPassManager &manager) {
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}

void buildFusePipeline(OpPassManager &manager) {
  manager.addPass(createConvertConvolutionsToContractions());
  // Elementwise ops on tensors are written as arith and math, too.
  manager.addPass(createConvertElementwiseToLinalgPass());
  cleanUp(manager);
  manager.addPass(createFoldViewsIntoContractions());
  manager.addPass(createLinalgFoldUnitExtentDimsPass());
  manager.addPass(createFuseElementwise());
  cleanUp(manager);
  // Fusion moved reshapes; what they hid may fold now.
  manager.addPass(createFoldViewsIntoContractions());
  manager.addPass(createFuseElementwise());
  cleanUp(manager);
}

void addTensorPasses(OpPassManager &manager, KernelKind kernels) {
  ConvertHyperShardToRuntimeOptions collectives;
  collectives.blocksFirst = kernels != KernelKind::Loops; // NCCL and HCCL do
  manager.addPass(createConvertHyperShardToRuntime(collectives));
  manager.addPass(createConvertHyperMPMDToRuntime());
  manager.addPass(createConvertOffloadToRuntime());
  if (kernels == KernelKind::Fragments) {
    OutlineOperatorsOptions operators;
    operators.leaveAttention = true;
    manager.addPass(createOutlineOperators(operators));
  }
  buildFusePipeline(manager);
}

void addBufferPasses(OpPassManager &manager, KernelKind kernels) {
  manager.addPass(createConvertIndexingToLoops());
  manager.addPass(bufferization::createEmptyTensorEliminationPass());
  manager.addPass(createPrepareBufferization());
  bufferization::OneShotBufferizePassOptions bufferize;
  bufferize.bufferizeFunctionBoundaries = true;
  bufferize.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  bufferize.allowReturnAllocsFromLoops = true;
  bufferize.useEncodingForMemorySpace = true;
  manager.addPass(bufferization::createOneShotBufferizePass(bufferize));
  // A function that updates its argument returns nothing new.
  manager.addPass(bufferization::createDropEquivalentBufferResultsPass());
  cleanUp(manager);
  manager.addPass(createReturnAllocations());
  bufferization::BufferResultsToOutParamsPassOptions outParams;
  outParams.hoistStaticAllocs = true;
  outParams.modifyPublicFunctions = true;
  manager.addPass(bufferization::createBufferResultsToOutParamsPass(outParams));
  cleanUp(manager);
  manager.addPass(createPackContractionOperands());
  switch (kernels) {
  case KernelKind::Loops:
    manager.addPass(createFormKernels());
    break;
  case KernelKind::Device:
    manager.addPass(createFormDeviceKernels());
    break;
  case KernelKind::Fragments:
    manager.addPass(createCallLibrary());
    manager.addPass(createChooseOperators());
    manager.addPass(createFormFragments());
    break;
  }
  cleanUp(manager);
  bufferization::BufferDeallocationPipelineOptions deallocation;
  bufferization::buildBufferDeallocationPipeline(manager, deallocation);
  manager.addPass(createInlineDynamicCallees());
  manager.addNestedPass<func::FuncOp>(
      bufferization::createOptimizeAllocationLivenessPass());
  manager.addPass(createConvertBufferizationToMemRefPass());
  // How long buffers live follows from who waits for whom.
  manager.addPass(stream::createAssignStreamsPass());
  if (kernels != KernelKind::Loops)
    manager.addPass(createReserveWorkspace());
  manager.addPass(offload::createAssignMemoryPass());
  manager.addPass(offload::createVerifyMemoryPass());
  manager.addPass(stream::createVerifyStreamsPass());
  manager.addPass(createConvertStreamToRuntime());
}

void addLoopPasses(OpPassManager &manager) {
  manager.addPass(createConvertContractionsToRuntime());
  manager.addPass(math::createMathExtendToSupportedTypes());
  ExpandMathOptions expandMath;
  expandMath.extrema = true;
  manager.addPass(createExpandMath(expandMath));
  arith::ArithEmulateUnsupportedFloatsOptions floats;
  floats.sourceTypeStrs = {"bf16"};
  floats.targetTypeStr = "f32";
  manager.addPass(arith::createArithEmulateUnsupportedFloats(floats));
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  manager.addPass(arith::createArithExpandOpsPass(expand));
  manager.addPass(memref::createExpandStridedMetadataPass());
  manager.addPass(createLowerAffinePass());
  cleanUp(manager);
  manager.addPass(createMeasureBuffers());
  manager.addPass(createSCFToControlFlowPass());
  // What LLVM has an instruction for must not become a call.
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createConvertMathToLibmPass());
  manager.addPass(createConvertToLLVM());
  cleanUp(manager);
}

/// As far as everything that is allocated is there.
static void buildMeasureMemoryPipeline(OpPassManager &manager) {
  addTensorPasses(manager, KernelKind::Loops);
  addBufferPasses(manager, KernelKind::Loops);
  manager.addPass(createConvertContractionsToRuntime());
  manager.addPass(createMeasureBuffers());
}

void buildLowerToCPUPipeline(OpPassManager &manager) {
  addTensorPasses(manager, KernelKind::Loops);
  addBufferPasses(manager, KernelKind::Loops);
  addLoopPasses(manager);
}

void registerLowerToCPUPipeline() {
  PassPipelineRegistration<>(
      "hp-fuse", "Make one op of what will be one kernel",
      [](OpPassManager &manager) { buildFusePipeline(manager); });
  PassPipelineRegistration<>(
      "hp-measure-memory",
      "Lower the program of one device until it is known what it allocates",
      [](OpPassManager &manager) { buildMeasureMemoryPipeline(manager); });
  PassPipelineRegistration<>(
      "hp-lower-to-cpu",
      "Lower the program of one device to the LLVM dialect and the runtime",
      [](OpPassManager &manager) { buildLowerToCPUPipeline(manager); });
}

} // namespace mlir::hyperparallel
