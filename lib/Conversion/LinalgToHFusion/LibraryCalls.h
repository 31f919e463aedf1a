//===- LibraryCalls.h - Calls of a vendor's operators -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A call of an operator is a call of a private function without a body, which
// says in `hp.library` which one, and in `hp.words` what its buffers are:
// element type, rank, sizes and strides of each, then numbers of the operator,
// as `hp_rt_library` takes them.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_LINALGTOHFUSION_LIBRARYCALLS_H
#define HYPERPARALLEL_LIB_CONVERSION_LINALGTOHFUSION_LIBRARYCALLS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::hyperparallel {

/// How an operator sees a buffer.
struct LibraryView {
  Value buffer;
  SmallVector<int64_t> sizes, strides;
};

class LibraryCalls {
public:
  explicit LibraryCalls(ModuleOp module) : symbols(module) {}

  /// `word`, if there is one, comes before the buffers; `numbers` come behind
  /// the words that say what these are.
  void call(OpBuilder &builder, Location loc, StringRef operation,
            ArrayRef<LibraryView> views, Value word = {},
            ArrayRef<int64_t> numbers = {});
  /// From one buffer to another of the same shape.
  void copy(OpBuilder &builder, Location loc, Value source, Value target);

private:
  SymbolTable symbols;
  llvm::StringMap<func::FuncOp> known;
};

/// Says what a call does to an argument, for those that order it with others.
void setAccess(func::FuncOp function, unsigned argument, bool writes);
/// A new buffer of the device.
Value allocateBuffer(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape,
                     Type element);
/// A buffer of static shape as it is.
LibraryView viewOf(Value buffer);
/// Sizes with the strides of a whole, row-major buffer.
LibraryView packedView(Value buffer, ArrayRef<int64_t> sizes);
/// True if its elements are one after the other, wherever they begin.
bool isContiguous(MemRefType type);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_LINALGTOHFUSION_LIBRARYCALLS_H
