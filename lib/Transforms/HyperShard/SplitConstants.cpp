//===- SplitConstants.cpp - a copy of a constant for each use -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What: each use of a constant-like tensor gets its own copy.
// In: any program. Out: a constant-like tensor has at most one use.
// How: a value is constant-like if its op has no side effects and reads no
//   tensor but constant-like ones, nothing from memory, and no block argument
//   that is a tensor. Ops are visited in program order, so that chains (empty
//   -> fill) are known before their users; then in reverse order each value
//   with several uses is cloned, which gives its own operands more uses, which
//   are met later.
// Cost: linear in ops, times the length of constant-like chains (a handful).
//   Chains that are longer than `kMaxChain` are left alone: copying them would
//   cost more than a reshard of the result.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/HyperShard/Passes.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::hyperparallel::hypershard {
#define GEN_PASS_DEF_SPLITCONSTANTSPASS
#include "lib/Transforms/HyperShard/Passes.h.inc"
} // namespace mlir::hyperparallel::hypershard

using namespace mlir;
using namespace mlir::hyperparallel::hypershard;

/// Ops in the longest chain that is worth copying.
static constexpr unsigned kMaxChain = 8;

using ChainLengths = DenseMap<Operation *, unsigned>;

/// Length of the chain of constant-like ops that ends in `op`; 0 if it is none.
static unsigned chainLength(Operation *op, const ChainLengths &known) {
  if (op->getNumResults() != 1 ||
      !isa<RankedTensorType>(op->getResult(0).getType()) || !isPure(op) ||
      op->hasTrait<OpTrait::ConstantLike>())
    return op->hasTrait<OpTrait::ConstantLike>() &&
                   isa<RankedTensorType>(op->getResult(0).getType())
               ? 1
               : 0;
  unsigned length = 0;
  auto check = [&](Value operand) {
    if (!isa<RankedTensorType>(operand.getType()))
      return true;
    Operation *source = operand.getDefiningOp();
    auto it = source ? known.find(source) : known.end();
    if (it == known.end())
      return false;
    length = std::max(length, it->second);
    return true;
  };
  if (!llvm::all_of(op->getOperands(), check))
    return 0;
  bool capturesTensor = false;
  for (Region &region : op->getRegions())
    region.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        capturesTensor |=
            isa<RankedTensorType>(operand.getType()) &&
            !op->isProperAncestor(operand.getParentRegion()->getParentOp()) &&
            operand.getParentRegion() != &region;
    });
  return capturesTensor || length + 1 > kMaxChain ? 0 : length + 1;
}

/// Constant-like ops in program order.
static SmallVector<Operation *> findConstantLike(func::FuncOp function) {
  SmallVector<Operation *> ops;
  ChainLengths lengths;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == function)
      return WalkResult::advance();
    if (unsigned length = chainLength(op, lengths)) {
      lengths[op] = length;
      ops.push_back(op);
    }
    // The bodies of structured ops hold scalars.
    return isa<linalg::LinalgOp, tensor::GenerateOp>(op)
               ? WalkResult::skip()
               : WalkResult::advance();
  });
  return ops;
}

namespace {
struct SplitConstantsPass final
    : mlir::hyperparallel::hypershard::impl::SplitConstantsPassBase<
          SplitConstantsPass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      SmallVector<Operation *> constants = findConstantLike(function);
      for (Operation *op : llvm::reverse(constants)) {
        OpBuilder builder(op);
        builder.setInsertionPointAfter(op);
        SmallVector<OpOperand *> uses;
        for (OpOperand &use : op->getResult(0).getUses())
          uses.push_back(&use);
        // The first use in program order keeps the op itself.
        for (OpOperand *use : ArrayRef(uses).drop_back(!uses.empty())) {
          use->set(builder.clone(*op)->getResult(0));
          ++numSplit;
        }
      }
    }
  }
};
} // namespace
