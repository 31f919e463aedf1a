//===- KernelTable.h - The kernels of a program, each once ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What passes that form kernels share: where they look for structured ops, and
// what they do with a kernel that is written.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_LINALGTOKERNELS_KERNELTABLE_H
#define HYPERPARALLEL_LIB_CONVERSION_LINALGTOKERNELS_KERNELTABLE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::hyperparallel {

/// Kernels by what they do: equal ones are in the module once.
class KernelTable {
public:
  explicit KernelTable(ModuleOp module) : symbols(module) {}

  struct Entry {
    func::FuncOp kernel;
    bool isNew;
  };
  /// Puts a kernel into the module, under a name of its own. Destroys it if an
  /// equal one is there, which takes its place.
  Entry insert(func::FuncOp kernel);

private:
  SymbolTable symbols;
  llvm::StringMap<func::FuncOp> known; ///< by text, without the name
};

/// The functions of a program in which kernels are formed.
SmallVector<func::FuncOp> getProgramFunctions(ModuleOp module);

/// Copies of buffers become structured ops: a copy is a kernel like any other.
void writeCopiesAsLinalg(func::FuncOp function);

/// The blocks that may hold structured ops; bodies of those are none.
SmallVector<Block *> getKernelBlocks(func::FuncOp function);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_LINALGTOKERNELS_KERNELTABLE_H
