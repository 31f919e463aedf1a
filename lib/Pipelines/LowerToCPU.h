//===- LowerToCPU.h - Phase 7 for the CPU -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_PIPELINES_LOWERTOCPU_H
#define HYPERPARALLEL_LIB_PIPELINES_LOWERTOCPU_H

#include "mlir/Pass/PassManager.h"

namespace mlir::hyperparallel {

/// Makes one op of what will be one kernel, so that who plans sees what runs. A
/// program that was fused stays as it is.
void buildFusePipeline(OpPassManager &manager);
/// From local functions on tensors to the LLVM dialect and calls of the
/// runtime.
void buildLowerToCPUPipeline(OpPassManager &manager);

/// What a group of structured ops becomes.
enum class KernelKind { Loops, Device, Fragments };
/// The parts of the pipeline, which devices share: down to fused ops on
/// tensors, to kernels on buffers, and from host code on buffers to the LLVM
/// dialect.
void addTensorPasses(OpPassManager &manager, KernelKind kernels);
void addBufferPasses(OpPassManager &manager, KernelKind kernels);
void addLoopPasses(OpPassManager &manager);
/// Registers them as `hp-fuse` and `hp-lower-to-cpu`.
void registerLowerToCPUPipeline();

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_PIPELINES_LOWERTOCPU_H
