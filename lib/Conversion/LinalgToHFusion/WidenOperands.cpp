//===- WidenOperands.cpp - Products of one element type -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contract in:  linalg on tensors, fused.
// Contract out: the same; the operands of a contraction that hp_rt_matmul
//   computes have its result's element type.
//
//   CANN's products give what they are given: those of f16 and bf16 with a sum
//   in f32 are products of f32. So the operands are widened by ops of the
//   program, which share a fragment with what made them, or are an operator's
//   call, and whose buffers are in every plan of memory.
//
// Cost: linear in ops.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToRuntime/ContractionLayout.h"
#include "lib/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_WIDENOPERANDS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;
using linalg::GenericOp;

namespace mlir::hyperparallel {

/// The tensor, each element as the wider type.
static Value widen(OpBuilder &builder, Location loc, Value tensor, Type wide) {
  auto type = cast<RankedTensorType>(tensor.getType());
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), wide);
  AffineMap map =
      AffineMap::getMultiDimIdentityMap(type.getRank(), builder.getContext());
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  return GenericOp::create(
             builder, loc, empty.getType(), tensor, empty,
             ArrayRef<AffineMap>{map, map}, loops,
             [&](OpBuilder &nested, Location, ValueRange arguments) {
               Value element =
                   arith::ExtFOp::create(nested, loc, wide, arguments[0]);
               linalg::YieldOp::create(nested, loc, element);
             })
      .getResult(0);
}

/// True if all that a body does with an element is to widen it to the type.
static bool isOnlyWidened(BlockArgument element, Type wide) {
  return llvm::all_of(element.getUsers(), [&](Operation *user) {
    return isa<arith::ExtFOp>(user) && user->getResult(0).getType() == wide;
  });
}

namespace {
struct WidenOperandsPass : impl::WidenOperandsBase<WidenOperandsPass> {
  void runOnOperation() override {
    SmallVector<GenericOp> products;
    getOperation().walk([&](GenericOp op) {
      if (isRuntimeContraction(op) && op.hasPureTensorSemantics())
        products.push_back(op);
    });
    for (GenericOp op : products) {
      Type wide = getElementTypeOrSelf(op.getResult(0).getType());
      for (unsigned number : {0u, 1u}) {
        OpOperand &operand = getContractionOperand(op, number);
        BlockArgument element = op.getMatchingBlockArgument(&operand);
        if (element.getType() == wide || !isOnlyWidened(element, wide))
          continue;
        OpBuilder builder(op);
        operand.set(widen(builder, op.getLoc(), operand.get(), wide));
        element.setType(wide);
        for (Operation *user : llvm::make_early_inc_range(element.getUsers())) {
          user->getResult(0).replaceAllUsesWith(element);
          user->erase();
        }
        ++numWidened;
      }
    }
  }
};
} // namespace

} // namespace mlir::hyperparallel
