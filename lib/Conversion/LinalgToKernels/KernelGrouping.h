//===- KernelGrouping.h - Which linalg ops share one loop -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decides which linalg ops of a block (on buffers) become one kernel: ops whose
// outer parallel loops visit shared buffers at the same place, so that one pass
// over the outer iterations can do all of them while the data is in cache.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_LINALGTOKERNELS_KERNELGROUPING_H
#define HYPERPARALLEL_LIB_CONVERSION_LINALGTOKERNELS_KERNELGROUPING_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::hyperparallel {

/// One linalg op of a kernel. `outer[t]` is the op's loop that runs with the
/// t-th outer loop of the kernel.
struct KernelMember {
  mlir::linalg::LinalgOp op;
  llvm::SmallVector<unsigned> outer;
};

/// A kernel: members in program order, all moved to the last member's place.
struct KernelGroup {
  llvm::SmallVector<KernelMember> members;

  size_t getNumOuterLoops() const { return members.front().outer.size(); }
};

/// The buffer that `view` is a part of: an allocation, a function argument, a
/// global, or a value about which nothing is known.
mlir::Value getBufferRoot(mlir::Value view);

/// True if the two roots may share memory. Allocations share with nothing but
/// themselves; distinct function arguments do not overlap where one of them is
/// written (the convention of compiled functions).
bool mayAlias(mlir::Value rootA, mlir::Value rootB);

/// The loop of `op` best run innermost: most operands (results counted twice)
/// move by one element with it.
unsigned getInnermostLoop(mlir::linalg::LinalgOp op);

/// Outer loops of a group that begins with `op`.
llvm::SmallVector<unsigned> getInitialOuterLoops(mlir::linalg::LinalgOp op);

/// An error at the first structured op (linalg, fused) that has tensors:
/// kernels are formed of ops on buffers.
llvm::LogicalResult verifyOnBuffers(mlir::Operation *root);

/// Groups of `block`, in the order of their last members. Ops that
/// `isRuntimeContraction` accepts are left out.
llvm::SmallVector<KernelGroup> formKernelGroups(mlir::Block &block);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_LINALGTOKERNELS_KERNELGROUPING_H
