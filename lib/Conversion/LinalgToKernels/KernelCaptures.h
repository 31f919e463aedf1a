//===- KernelCaptures.h - What a kernel function is given -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels are functions of the roots of their buffers and of scalars; views
// and constants are made anew inside. Shared by the writers of kernels for the
// CPU and for devices.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_LINALGTOKERNELS_KERNELCAPTURES_H
#define HYPERPARALLEL_LIB_CONVERSION_LINALGTOKERNELS_KERNELCAPTURES_H

#include "lib/Conversion/LinalgToKernels/KernelGrouping.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::hyperparallel {

/// The index positions of the buffer that the outer loops fix, if every use of
/// the buffer is by the group and at those positions; else nothing.
std::optional<SmallVector<bool>> getFixedPositions(memref::AllocOp alloc,
                                                   const KernelGroup &group);

/// A buffer of which a kernel needs the part of one outer iteration only.
struct LocalBuffer {
  memref::AllocOp alloc;
  SmallVector<bool> fixed; ///< positions that the outer loops fix
  MemRefType type;         ///< of the part
  int64_t bytes;
};

/// The buffers that only the group touches, at the place of the outer
/// iteration, in the order of their first use.
SmallVector<LocalBuffer> findLocalBuffers(const KernelGroup &group);

/// Collects the arguments of a kernel while it is written.
class KernelCaptures {
public:
  /// Writes in the kernel with `builder`, and at its call with `callSite`.
  KernelCaptures(func::FuncOp function, OpBuilder &builder, OpBuilder &callSite,
                 Location loc)
      : function(function), builder(builder), callSite(callSite), loc(loc) {}

  /// The value in the kernel that stands for one of the program.
  Value capture(Value outside);
  /// All operands of the members and of their bodies, but for local buffers.
  void captureOperands(const KernelGroup &group,
                       llvm::function_ref<bool(Value)> isLocal);
  /// Arguments whose roots are known to share no memory with the others' do not
  /// alias.
  void markDistinctBuffers();

  /// What the call has to give, in the order of the arguments.
  ArrayRef<Value> getValues() const { return values; }
  IRMapping &getMapping() { return mapping; }

private:
  Value addArgument(Value outside);
  Value rebuildStrided(Value root);

  func::FuncOp function;
  OpBuilder &builder;
  OpBuilder &callSite;
  Location loc;
  IRMapping mapping;
  SmallVector<Value> values;
};

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_LINALGTOKERNELS_KERNELCAPTURES_H
