//===- UnifyProductTypes.cpp - Products of one element type ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contract in:  linalg on tensors, fused.
// Contract out: the same; the operands of a contraction that hp_rt_matmul
//   computes have its result's element type.
//
//   CANN's products give what they are given, and sum in f32 whatever that is.
//
//   1. A sum of f16 or bf16 in f32 that others only read rounded to that type
//      is the product's result as it is: it rounds once, at the end.
//   2. Otherwise the operands are widened by ops of the program, which share a
//      fragment with what made them, or are an operator's call, and whose
//      buffers are in every plan of memory.
//
// Cost: linear in ops.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToRuntime/ContractionLayout.h"
#include "lib/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_UNIFYPRODUCTTYPES
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

/// True if all that a body does with an element is such an op, to the type.
template <typename Cast>
static bool isOnlyCast(BlockArgument element, Type type) {
  return llvm::all_of(element.getUsers(), [&](Operation *user) {
    return isa<Cast>(user) && user->getResult(0).getType() == type;
  });
}

/// The element has the type; what cast it to that ends.
static void dropCasts(BlockArgument element, Type type) {
  element.setType(type);
  for (Operation *user : llvm::make_early_inc_range(element.getUsers())) {
    user->getResult(0).replaceAllUsesWith(element);
    user->erase();
  }
}

/// Those who read a tensor, through reshapes; false if one does not round it to
/// the type first.
static bool collectReaders(Value tensor, Type narrow,
                           SmallVectorImpl<OpOperand *> &readers,
                           SmallVectorImpl<Operation *> &reshapes) {
  for (OpOperand &use : tensor.getUses()) {
    Operation *user = use.getOwner();
    if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(user)) {
      reshapes.push_back(user);
      if (!collectReaders(user->getResult(0), narrow, readers, reshapes))
        return false;
      continue;
    }
    auto reader = dyn_cast<GenericOp>(user);
    if (!reader || reader.isDpsInit(&use) ||
        !isOnlyCast<arith::TruncFOp>(reader.getMatchingBlockArgument(&use),
                                     narrow))
      return false;
    readers.push_back(&use);
  }
  return true;
}

static Type withElement(Type tensor, Type element) {
  return cast<RankedTensorType>(tensor).clone(element);
}

/// Whether the sum begins at zero, and its body is the product's alone.
static bool isPlainSum(GenericOp op) {
  auto fill = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  int64_t others = 0;
  for (Operation &inner : op.getBlock()->without_terminator())
    others += !isa<arith::ExtFOp, arith::MulFOp, arith::AddFOp>(inner);
  return fill && matchPattern(fill.getInputs()[0], m_AnyZeroFloat()) &&
         others == 0;
}

/// True if the product's result is what its readers round it to now.
static bool narrowResult(GenericOp op) {
  Type narrow =
      getElementTypeOrSelf(getContractionOperand(op, 0).get().getType());
  Type wide = getElementTypeOrSelf(op.getResult(0).getType());
  SmallVector<OpOperand *> readers;
  SmallVector<Operation *> reshapes;
  if (getElementTypeOrSelf(getContractionOperand(op, 1).get().getType()) !=
          narrow ||
      !isPlainSum(op) || op.getResult(0).use_empty() ||
      !collectReaders(op.getResult(0), narrow, readers, reshapes))
    return false;
  for (unsigned number : {0u, 1u})
    if (!isOnlyCast<arith::ExtFOp>(
            op.getMatchingBlockArgument(&getContractionOperand(op, number)),
            wide))
      return false;
  OpBuilder builder(op);
  Location loc = op.getLoc();
  auto type =
      cast<RankedTensorType>(withElement(op.getResult(0).getType(), narrow));
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), narrow);
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getZeroAttr(narrow));
  OpOperand *init = op.getDpsInitOperand(0);
  init->set(linalg::FillOp::create(builder, loc, zero, empty).getResult(0));
  for (unsigned number : {0u, 1u})
    dropCasts(op.getMatchingBlockArgument(&getContractionOperand(op, number)),
              narrow);
  op.getMatchingBlockArgument(init).setType(narrow);
  for (Operation &inner : op.getBlock()->without_terminator())
    inner.getResult(0).setType(narrow);
  op.getResult(0).setType(type);
  for (Operation *reshape : reshapes)
    reshape->getResult(0).setType(cast<RankedTensorType>(
        withElement(reshape->getResult(0).getType(), narrow)));
  for (OpOperand *reader : readers)
    dropCasts(
        cast<GenericOp>(reader->getOwner()).getMatchingBlockArgument(reader),
        narrow);
  return true;
}

namespace {
struct UnifyProductTypesPass
    : impl::UnifyProductTypesBase<UnifyProductTypesPass> {
  void runOnOperation() override {
    SmallVector<GenericOp> products;
    getOperation().walk([&](GenericOp op) {
      if (isRuntimeContraction(op) && op.hasPureTensorSemantics())
        products.push_back(op);
    });
    for (GenericOp op : products) {
      Type wide = getElementTypeOrSelf(op.getResult(0).getType());
      auto isNarrow = [&](unsigned number) {
        OpOperand &operand = getContractionOperand(op, number);
        return getElementTypeOrSelf(operand.get().getType()) != wide &&
               isOnlyCast<arith::ExtFOp>(op.getMatchingBlockArgument(&operand),
                                         wide);
      };
      if (isNarrow(0) && isNarrow(1) && narrowResult(op)) {
        ++numNarrowed;
        continue;
      }
      for (unsigned number : {0u, 1u}) {
        if (!isNarrow(number))
          continue;
        OpBuilder builder(op);
        OpOperand &operand = getContractionOperand(op, number);
        operand.set(widen(builder, op.getLoc(), operand.get(), wide));
        dropCasts(op.getMatchingBlockArgument(&operand), wide);
        ++numWidened;
      }
    }
  }
};
} // namespace

} // namespace mlir::hyperparallel
