//===- BufferAccess.h - which bytes an op reads and writes ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// For programs on buffers. An access is to a part of a root: an allocation or
// an argument of the function, seen through views. Calls are asked for what
// their functions do to each argument, which is found once.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_ANALYSIS_BUFFERACCESS_H
#define HYPERPARALLEL_LIB_ANALYSIS_BUFFERACCESS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::hyperparallel {

/// Bytes [from, to) of a root; all of it where `to` is kWhole.
struct BufferPart {
  static constexpr int64_t kWhole = -1;

  /// Null: it cannot be told, and may be any memory.
  Value root;
  int64_t from = 0;
  int64_t to = kWhole;
};

struct BufferAccess {
  BufferPart part;
  bool writes = false;
};

class BufferAccesses {
public:
  /// What the op does to memory from outside of it, callees and regions
  /// included. An access of memory that cannot be told has a null root.
  SmallVector<BufferAccess> get(Operation *op);

private:
  /// What a function does to an argument.
  struct ArgumentUse {
    bool reads = false, writes = false;
  };
  struct Summary {
    SmallVector<ArgumentUse> arguments;
    /// It touches memory that cannot be told.
    bool isOpaque = false;
  };

  const Summary &summarize(FunctionOpInterface function);
  void addCall(Operation *op, SmallVectorImpl<BufferAccess> &accesses);
  void addOp(Operation *op, SmallVectorImpl<BufferAccess> &accesses);

  SymbolTableCollection symbols;
  DenseMap<Operation *, Summary> functions;
};

/// The root of a buffer, and which part of that it is.
BufferPart getBufferPart(Value buffer);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_ANALYSIS_BUFFERACCESS_H
