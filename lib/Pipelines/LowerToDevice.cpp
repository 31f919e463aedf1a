//===- LowerToDevice.cpp - Phase 7 for a device with kernels --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contract in:  the program of one device (phase 5 or 6), as for the CPU.
// Contract out: the LLVM dialect. The module is the host's program: entries
//   `hp_entry_*`, and calls of `hp_rt_*` through slots that the back end sets.
//   The nested module @hp_device holds kernels for NVVM.
//
//   tensors   as for the CPU: the same ops fuse; then products take in biases
//             and the activations that cuBLASLt has
//   buffers   as for the CPU, but that groups become kernels of the device
//   kernels   launches on the host, kernels in @hp_device and lowered there;
//             f16 and bf16 are native, elementary functions are polynomials
//   host      as for the CPU, then the imports are bound
//
// `hp-lower-to-fragments` is the same, but that groups become texts in HFusion,
// which Ascend's compiler takes, and calls of CANN's operators: what is one is
// recognised on tensors, before fusion, and chosen on buffers.
//
//===----------------------------------------------------------------------===//

#include "lib/Pipelines/LowerToDevice.h"

#include "lib/Conversion/Passes.h"
#include "lib/Pipelines/LowerToCPU.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace mlir::hyperparallel {

static void addKernelPasses(OpPassManager &manager) {
  manager.addPass(math::createMathExtendToSupportedTypes());
  manager.addPass(createExpandMath());
  arith::ArithEmulateUnsupportedFloatsOptions floats;
  floats.sourceTypeStrs = {"bf16"};
  floats.targetTypeStr = "f32";
  manager.addPass(arith::createArithEmulateUnsupportedFloats(floats));
  manager.addPass(arith::createArithExpandOpsPass());
  manager.addPass(memref::createExpandStridedMetadataPass());
  manager.addPass(createLowerAffinePass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createSCFToControlFlowPass());
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createConvertDeviceToLLVM());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}

void buildLowerToDevicePipeline(OpPassManager &manager) {
  addTensorPasses(manager, KernelKind::Device);
  FoldEpiloguesOptions epilogues; // what hp_device_can says of libhp_cuda.so
  epilogues.activations = {"relu", "gelu_tanh"};
  manager.addPass(createFoldEpilogues(epilogues));
  manager.addPass(createFormAttention()); // libhp_cuda.so has no call for it
  addBufferPasses(manager, KernelKind::Device);
  manager.addPass(createLaunchDeviceKernels());
  addKernelPasses(manager.nest<ModuleOp>());
  addLoopPasses(manager);
  manager.addPass(createBindRuntimeImports());
}

void buildLowerToFragmentsPipeline(OpPassManager &manager) {
  addTensorPasses(manager, KernelKind::Fragments);
  FormAttentionOptions attention; // what hp_device_can says of libhp_ascend.so
  attention.types = {"f16", "bf16", "f32"};
  attention.mostWidth = 512;
  attention.equalWidths = true;
  manager.addPass(createFormAttention(attention));
  manager.addPass(createOutlineOperators()); // softmax that is in none
  manager.addPass(createUnifyProductTypes());
  addBufferPasses(manager, KernelKind::Fragments);
  manager.addPass(createLaunchDeviceKernels());
  addLoopPasses(manager);
  manager.addPass(createBindRuntimeImports());
}

void registerLowerToDevicePipelines() {
  PassPipelineRegistration<>(
      "hp-lower-to-fragments",
      "Lower the program of one device to fragments of HFusion, and a program "
      "of the host in the LLVM dialect",
      [](OpPassManager &manager) { buildLowerToFragmentsPipeline(manager); });
  PassPipelineRegistration<>(
      "hp-lower-to-device",
      "Lower the program of one device to kernels for NVVM, and a program of "
      "the host in the LLVM dialect",
      [](OpPassManager &manager) { buildLowerToDevicePipeline(manager); });
}

} // namespace mlir::hyperparallel
