//===- KernelFusion.h - which ops become one kernel -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Code generators do not run a structured op as it stands: chains of them share
// one loop, and what only prepares an operand is no kernel at all. The cost
// model has to know, or it counts every intermediate as a trip to memory.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_ANALYSIS_KERNELFUSION_H
#define HYPERPARALLEL_LIB_ANALYSIS_KERNELFUSION_H

#include "dialects/Interfaces/CostOpInterface.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::hyperparallel {

struct KernelMember {
  Operation *op;
  /// Its part of the kernel's work: a tensor that stays within the kernel is
  /// neither read nor written.
  OpCost work;
};

struct FusedKernel {
  SmallVector<KernelMember, 4> members;
  OpCost work;
};

/// What the structured ops of a block become.
struct KernelPlan {
  std::vector<FusedKernel> kernels;
  /// The kernel of an op. An op with a negative number is no kernel: another
  /// reads through it.
  DenseMap<Operation *, int> kernelOf;
};

/// Decides for the ops of the block itself, not for what lies in their regions.
KernelPlan planKernels(Block &block);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_ANALYSIS_KERNELFUSION_H
