//===- SerialLoops.h - Loops that read the device, as kernels ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_LINALGTODEVICE_SERIALLOOPS_H
#define HYPERPARALLEL_LIB_CONVERSION_LINALGTODEVICE_SERIALLOOPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::hyperparallel {

/// A loop whose iterations follow one another, while their elements do not
/// depend on each other.
struct SerialLoop {
  scf::ForOp loop;
  SmallVector<int64_t> extents; ///< of the elements that an iteration does
  /// The row of a table that an iteration writes, if that is all it writes.
  Value row;
  /// Rows are dealt out to so many threads for each element.
  int64_t parts = 1;
  int64_t blocks = 1, threads = 1;
};

/// The outermost loops of a function that can be kernels, and would else be run
/// by the host, which waits for what they read.
SmallVector<SerialLoop> findSerialLoops(func::FuncOp function);

/// Writes the loop as a kernel, which is not in the module yet; `arguments` are
/// what the call has to give.
func::FuncOp writeSerialLoop(ModuleOp module, const SerialLoop &serial,
                             StringRef name, SmallVector<Value> &arguments);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_LINALGTODEVICE_SERIALLOOPS_H
