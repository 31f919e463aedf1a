//===- KernelTable.cpp - The kernels of a program, each once --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToKernels/KernelTable.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

static std::string printWithoutName(func::FuncOp function) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  Attribute name = function.getSymNameAttr();
  function.setSymName("kernel");
  function->print(stream, OpPrintingFlags().useLocalScope());
  function.setSymNameAttr(cast<StringAttr>(name));
  return text;
}

KernelTable::Entry KernelTable::insert(func::FuncOp kernel) {
  auto [entry, isNew] = known.try_emplace(printWithoutName(kernel), kernel);
  if (isNew)
    symbols.insert(kernel);
  else
    kernel->destroy();
  return {entry->second, isNew};
}

SmallVector<func::FuncOp> getProgramFunctions(ModuleOp module) {
  SmallVector<func::FuncOp> functions;
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    if (!function.isExternal() && !function->hasAttr("hp.kernel"))
      functions.push_back(function);
  return functions;
}

void writeCopiesAsLinalg(func::FuncOp function) {
  function.walk([](memref::CopyOp copy) {
    OpBuilder builder(copy);
    linalg::CopyOp::create(builder, copy.getLoc(), copy.getSource(),
                           copy.getTarget());
    copy->erase();
  });
}

SmallVector<Block *> getKernelBlocks(func::FuncOp function) {
  SmallVector<Block *> blocks;
  function.walk([&](Block *block) {
    if (!isa<LinalgOp>(block->getParentOp()) &&
        !block->getParentOp()->getParentOfType<LinalgOp>())
      blocks.push_back(block);
  });
  return blocks;
}

} // namespace mlir::hyperparallel
