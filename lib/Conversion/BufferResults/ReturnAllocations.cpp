//===- ReturnAllocations.cpp - results without a copy ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contract in:  functions on buffers, right after bufferization.
// Contract out: the same; a returned reshape of a buffer that the function
//   allocates is that buffer itself, and each allocation is returned once.
//
// The pass that makes results the caller's memory replaces a returned
// allocation; of anything else it makes a copy. Here the allocation takes the
// shape that is returned, and what was allocated becomes the reshape:
//
//    %a = alloc : 6xf32                 %r = alloc : 2x3xf32
//    … %a …                       ──▶   %a = collapse_shape %r
//    %r = expand_shape %a               … %a …
//    return %r                          return %r
//
// That pass takes an allocation for one result only, and crashes at the second:
// what is returned again is a copy.
//
// Cost: linear in the results of functions and the reshapes behind them.
//===----------------------------------------------------------------------===//

#include "lib/Conversion/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_RETURNALLOCATIONS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;

namespace mlir::hyperparallel {

/// The opposite of a reshape, from `source`.
static Value undo(OpBuilder &builder, Operation *reshape, Value source) {
  if (auto expand = dyn_cast<memref::ExpandShapeOp>(reshape))
    return memref::CollapseShapeOp::create(builder, reshape->getLoc(),
                                           expand.getSrcType(), source,
                                           expand.getReassociationIndices());
  auto collapse = cast<memref::CollapseShapeOp>(reshape);
  return memref::ExpandShapeOp::create(builder, reshape->getLoc(),
                                       collapse.getSrcType(), source,
                                       collapse.getReassociationIndices());
}

/// Whether the reshapes behind a returned value end in an allocation that is
/// returned only here; they are listed from the value on.
static memref::AllocOp findAllocation(Value value,
                                      SmallVectorImpl<Operation *> &reshapes) {
  while (Operation *op = value.getDefiningOp()) {
    auto type = cast<MemRefType>(value.getType());
    if (!type.hasStaticShape() || !type.getLayout().isIdentity())
      return {};
    if (auto alloc = dyn_cast<memref::AllocOp>(op))
      return alloc;
    if (!isa<memref::ExpandShapeOp, memref::CollapseShapeOp>(op))
      return {};
    reshapes.push_back(op);
    value = op->getOperand(0);
  }
  return {};
}

/// True if it was rewritten.
static bool returnAllocation(OpOperand &returned) {
  SmallVector<Operation *> reshapes;
  memref::AllocOp alloc = findAllocation(returned.get(), reshapes);
  if (!alloc || reshapes.empty())
    return false;
  OpBuilder builder(alloc);
  Value result = memref::AllocOp::create(
      builder, alloc.getLoc(), cast<MemRefType>(returned.get().getType()),
      alloc.getAlignmentAttr());
  Value value = result;
  SmallVector<Value> undone;
  for (Operation *reshape : reshapes) {
    value = undo(builder, reshape, value);
    undone.push_back(value);
  }
  // Everything on the way is a reshape of the new allocation.
  alloc.getResult().replaceAllUsesWith(undone.back());
  for (size_t i = 0; i < reshapes.size(); ++i)
    reshapes[i]->getResult(0).replaceAllUsesWith(i == 0 ? result
                                                        : undone[i - 1]);
  for (Operation *reshape : reshapes)
    reshape->erase();
  alloc->erase();
  return true;
}

/// True if the allocation was returned before.
static bool returnCopy(OpOperand &returned,
                       llvm::SmallPtrSetImpl<Operation *> &known) {
  auto alloc = returned.get().getDefiningOp<memref::AllocOp>();
  if (!alloc || known.insert(alloc).second)
    return false;
  OpBuilder builder(returned.getOwner());
  Location loc = alloc.getLoc();
  auto copy = memref::AllocOp::create(
      builder, loc, alloc.getType(), alloc.getDynamicSizes(),
      alloc.getSymbolOperands(), alloc.getAlignmentAttr());
  memref::CopyOp::create(builder, loc, alloc, copy);
  returned.set(copy);
  return true;
}

namespace {
struct ReturnAllocationsPass
    : impl::ReturnAllocationsBase<ReturnAllocationsPass> {
  using ReturnAllocationsBase::ReturnAllocationsBase;

  void runOnOperation() override {
    getOperation().walk([&](func::ReturnOp op) {
      for (OpOperand &operand : op->getOpOperands())
        if (isa<MemRefType>(operand.get().getType()))
          numAvoided += returnAllocation(operand);
      llvm::SmallPtrSet<Operation *, 8> known;
      for (OpOperand &operand : op->getOpOperands())
        numCopied += returnCopy(operand, known);
    });
  }
};
} // namespace

} // namespace mlir::hyperparallel
