//===- FunctionParts.cpp - functions of some of another's ops -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/Transforms/HyperMPMD/FunctionParts.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;
using namespace mlir::hyperparallel;

SmallVector<Value> hypermpmd::readValues(Operation *op) {
  SmallVector<Value> values;
  op->walk([&](Operation *inner) {
    llvm::append_range(values, inner->getOperands());
  });
  return values;
}

llvm::SmallPtrSet<Operation *, 32> hypermpmd::sliceOf(Block &body,
                                                      ArrayRef<Value> values) {
  llvm::SmallPtrSet<Operation *, 32> slice;
  SmallVector<Value> open(values);
  while (!open.empty()) {
    Operation *maker = open.pop_back_val().getDefiningOp();
    if (maker)
      maker = body.findAncestorOpInBlock(*maker);
    if (maker && slice.insert(maker).second)
      llvm::append_range(open, readValues(maker));
  }
  return slice;
}

func::FuncOp hypermpmd::makePart(func::FuncOp original, StringRef suffix,
                                 ArrayRef<Value> arguments,
                                 ArrayRef<Value> results,
                                 function_ref<bool(Operation *)> keep) {
  OpBuilder builder(original);
  SmallVector<Type> inputs, outputs;
  for (Value value : arguments)
    inputs.push_back(value.getType());
  for (Value value : results)
    outputs.push_back(value.getType());
  auto part = func::FuncOp::create(builder, original.getLoc(),
                                   (original.getSymName() + suffix).str(),
                                   builder.getFunctionType(inputs, outputs));
  part.setPrivate();
  Block *block = part.addEntryBlock();
  IRMapping mapping;
  for (auto [value, argument] :
       llvm::zip_equal(arguments, block->getArguments()))
    mapping.map(value, argument);
  builder.setInsertionPointToEnd(block);
  for (Operation &op : original.getBody().front().without_terminator())
    if (keep(&op))
      builder.clone(op, mapping);
  SmallVector<Value> returned;
  for (Value value : results)
    returned.push_back(mapping.lookup(value));
  func::ReturnOp::create(builder, original.getLoc(), returned);
  return part;
}

void hypermpmd::dropUnreadArguments(func::FuncOp main,
                                    const CallsByFunction &calls) {
  SymbolTableCollection tables;
  SymbolUserMap users(tables, main->getParentOfType<ModuleOp>());
  for (auto [function, callers] : calls) {
    if (!function.isPrivate() ||
        users.getUsers(function).size() != callers.size())
      continue;
    llvm::BitVector unread(function.getNumArguments());
    for (BlockArgument argument : function.getArguments())
      unread[argument.getArgNumber()] = argument.use_empty();
    if (unread.none() || failed(function.eraseArguments(unread)))
      continue;
    for (func::CallOp call : callers)
      call->eraseOperands(unread);
  }
}
