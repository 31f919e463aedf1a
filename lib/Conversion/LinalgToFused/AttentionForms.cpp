//===- AttentionForms.cpp - Which ops are an attention --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads fused tensors backwards, from the probabilities to the scores: division
// by sums of rows, exponentials of differences to greatest elements of rows, a
// scale and a mask, a product. Conversions between floats, and reshapes by
// dimensions of size 1, may be anywhere.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToFused/AttentionForms.h"
#include "lib/Conversion/LinalgToRuntime/ContractionLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using linalg::GenericOp;

namespace mlir::hyperparallel {

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

static Value skipCasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::TruncFOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// What the op yields, where that is one value.
static Value getYielded(GenericOp op) {
  return op.getNumResults() == 1
             ? skipCasts(op.getBlock()->getTerminator()->getOperand(0))
             : Value();
}

/// The tensor behind an argument of the op's body; null for anything else.
OpOperand *getOperandOf(GenericOp op, Value value) {
  auto argument = dyn_cast<BlockArgument>(skipCasts(value));
  if (!argument || argument.getOwner() != op.getBlock() ||
      argument.getArgNumber() >= op.getNumDpsInputs())
    return nullptr;
  return &op->getOpOperand(argument.getArgNumber());
}

/// Reshapes that add or drop dimensions of size 1, and nothing else.
static Value skipUnitReshapes(Value value) {
  auto withoutOnes = [](Value tensor) {
    SmallVector<int64_t> sizes;
    for (int64_t size : cast<RankedTensorType>(tensor.getType()).getShape())
      if (size != 1)
        sizes.push_back(size);
    return sizes;
  };
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op) ||
        withoutOnes(op->getOperand(0)) != withoutOnes(value))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// Readers of a value, through such reshapes.
static void collectReaders(Value value, SmallVectorImpl<Operation *> &readers) {
  for (Operation *user : value.getUsers())
    if (user->getNumResults() == 1 &&
        isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(user) &&
        skipUnitReshapes(user->getResult(0)) == skipUnitReshapes(value))
      collectReaders(user->getResult(0), readers);
    else
      readers.push_back(user);
}

bool isReadBy(Value value, ArrayRef<Operation *> wanted) {
  SmallVector<Operation *> readers;
  collectReaders(value, readers);
  return llvm::all_of(readers, [&](Operation *reader) {
    return llvm::is_contained(wanted, reader);
  });
}

static bool isConstant(Value value, double wanted) {
  FloatAttr constant;
  return matchPattern(value, m_Constant(&constant)) &&
         constant.getValueAsDouble() == wanted;
}

/// Of an init, whether it is filled with a number.
bool isFilled(Value init, double wanted) {
  auto fill = init.getDefiningOp<linalg::FillOp>();
  return fill && isConstant(fill.getInputs()[0], wanted);
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

/// Whether all dimensions of a tensor are visited in order.
static bool isInOrder(GenericOp op, OpOperand *operand) {
  return op.getMatchingIndexingMap(operand).isIdentity();
}

/// A reduction of all rows of its only input along one dimension by `Combiner`,
/// beginning with `neutral`.
template <typename Combiner>
static bool reducesRows(GenericOp op, unsigned along, double neutral) {
  if (!op || op.getNumDpsInputs() != 1 || op.getNumResults() != 1 ||
      !op.hasPureTensorSemantics() ||
      !isInOrder(op, op.getDpsInputOperand(0)) ||
      !isFilled(op.getDpsInitOperand(0)->get(), neutral))
    return false;
  auto combiner = dyn_cast_or_null<Combiner>(getYielded(op).getDefiningOp());
  if (!combiner)
    return false;
  bool hasInput = false, hasInit = false;
  for (Value operand : combiner->getOperands()) {
    auto argument = dyn_cast<BlockArgument>(skipCasts(operand));
    hasInput |= argument && argument.getArgNumber() == 0;
    hasInit |= argument && argument.getArgNumber() == 1;
  }
  SmallVector<AffineExpr> kept;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    if (loop != along)
      kept.push_back(getAffineDimExpr(loop, op.getContext()));
  return hasInput && hasInit &&
         op.getMatchingIndexingMap(op.getDpsInitOperand(0)) ==
             AffineMap::get(op.getNumLoops(), 0, kept, op.getContext());
}

/// The two tensors of an elementwise op of a matrix and its rows' numbers.
template <typename Binary>
static std::optional<std::pair<Value, Value>>
matchOfRows(GenericOp op, Value value, unsigned along) {
  auto binary = value ? value.getDefiningOp<Binary>() : Binary();
  if (!binary || op.getNumDpsInputs() != 2 || op.getNumReductionLoops() != 0 ||
      !op.hasPureTensorSemantics())
    return std::nullopt;
  OpOperand *left = getOperandOf(op, binary.getLhs());
  OpOperand *right = getOperandOf(op, binary.getRhs());
  if (!left || !right || !isInOrder(op, left) ||
      !isInOrder(op, op.getDpsInitOperand(0)) ||
      op.getMatchingIndexingMap(right) !=
          op.getMatchingIndexingMap(left).dropResult(along))
    return std::nullopt;
  return std::make_pair(left->get(), right->get());
}

/// The dimension of a product's operand along which it sums, if it is one.
static std::optional<unsigned> getSummedDimension(GenericOp product,
                                                  OpOperand &operand) {
  ContractionLoops loops = classifyLoops(product);
  if (loops.k.size() != 1)
    return std::nullopt;
  AffineMap map = product.getMatchingIndexingMap(&operand);
  return map.getResultPosition(
      getAffineDimExpr(loops.k[0], product.getContext()));
}

/// From the quotient back to the scores; nothing if this is no softmax of a
/// product.
std::optional<Attention> findSoftmax(OpOperand &probabilities) {
  Attention found;
  found.values = cast<GenericOp>(probabilities.getOwner());
  found.quotient =
      skipUnitReshapes(probabilities.get()).getDefiningOp<GenericOp>();
  if (!found.quotient || probabilities.get() != found.quotient->getResult(0))
    return std::nullopt;
  std::optional<unsigned> along =
      getSummedDimension(found.values, probabilities);
  if (!along)
    return std::nullopt;
  found.along = *along;
  auto division = matchOfRows<arith::DivFOp>(
      found.quotient, getYielded(found.quotient), found.along);
  if (!division)
    return std::nullopt;
  found.exponential = division->first.getDefiningOp<GenericOp>();
  found.sum = division->second.getDefiningOp<GenericOp>();
  if (!found.exponential ||
      !reducesRows<arith::AddFOp>(found.sum, found.along, 0) ||
      found.sum.getInputs()[0] != division->first)
    return std::nullopt;
  Value yielded = getYielded(found.exponential);
  auto exp = yielded ? yielded.getDefiningOp<math::ExpOp>() : math::ExpOp();
  auto difference =
      exp ? matchOfRows<arith::SubFOp>(found.exponential,
                                       skipCasts(exp.getOperand()), found.along)
          : std::nullopt;
  if (!difference)
    return std::nullopt;
  found.most = difference->second.getDefiningOp<GenericOp>();
  double lowest = -std::numeric_limits<double>::infinity();
  if (!(reducesRows<arith::MaximumFOp>(found.most, found.along, lowest) ||
        reducesRows<arith::MaxNumFOp>(found.most, found.along, lowest)) ||
      found.most.getInputs()[0] != difference->first)
    return std::nullopt;
  Value before = skipUnitReshapes(difference->first);
  auto made = before.getDefiningOp<GenericOp>();
  if (made && !isRuntimeContraction(made)) {
    found.scaled = made;
    for (Value input : made.getInputs())
      if (auto product = skipUnitReshapes(input).getDefiningOp<GenericOp>();
          product && isRuntimeContraction(product))
        made = product;
  }
  if (!made || !isRuntimeContraction(made))
    return std::nullopt;
  found.scores = made;
  return found;
}

//===----------------------------------------------------------------------===//
// Scale and mask
//===----------------------------------------------------------------------===//

/// Whether `value` is computed from `from` inside of a body.
bool dependsOn(Value value, Value from) {
  SmallVector<Value> waiting = {value};
  DenseSet<Value> seen;
  while (!waiting.empty()) {
    Value next = waiting.pop_back_val();
    if (next == from)
      return true;
    Operation *op = next.getDefiningOp();
    if (op && op->getBlock() == from.getParentBlock() &&
        seen.insert(next).second)
      llvm::append_range(waiting, op->getOperands());
  }
  return false;
}

/// Reads `scaled` as score * scale + added.
bool matchScaled(Attention &found) {
  GenericOp op = found.scaled;
  OpOperand *score = nullptr;
  for (OpOperand *input : op.getDpsInputOperands())
    if (skipUnitReshapes(input->get()) == found.scores->getResult(0)) {
      if (score)
        return false;
      score = input;
    }
  if (!score || !isInOrder(op, score) || op.getNumReductionLoops() != 0 ||
      !op.hasPureTensorSemantics() || !isInOrder(op, op.getDpsInitOperand(0)))
    return false;
  BlockArgument argument = op.getMatchingBlockArgument(score);
  Value value = getYielded(op);
  if (!value)
    return false;
  if (auto sum = value.getDefiningOp<arith::AddFOp>()) {
    bool isLeft = dependsOn(sum.getLhs(), argument);
    if (isLeft && dependsOn(sum.getRhs(), argument))
      return false;
    found.added = isLeft ? sum.getRhs() : sum.getLhs();
    value = skipCasts(isLeft ? sum.getLhs() : sum.getRhs());
  }
  FloatAttr factor;
  if (auto product = value.getDefiningOp<arith::MulFOp>()) {
    Value other;
    for (auto [one, two] : {std::pair(product.getLhs(), product.getRhs()),
                            std::pair(product.getRhs(), product.getLhs())})
      if (matchPattern(one, m_Constant(&factor)))
        other = two;
    if (!other)
      return false;
    found.scale = factor.getValueAsDouble();
    value = skipCasts(other);
  } else if (auto quotient = value.getDefiningOp<arith::DivFOp>()) {
    if (!matchPattern(quotient.getRhs(), m_Constant(&factor)))
      return false;
    found.scale = 1 / factor.getValueAsDouble();
    value = skipCasts(quotient.getLhs());
  }
  return value == argument;
}

} // namespace mlir::hyperparallel
