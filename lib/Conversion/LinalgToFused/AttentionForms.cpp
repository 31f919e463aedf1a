//===- AttentionForms.cpp - Which ops are an attention --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads fused tensors backwards, from the probabilities to the scores: division
// by sums of rows, exponentials of differences to greatest elements of rows, a
// scale and a mask, a product. Conversions between floats may be anywhere, and
// so may reshapes: every op visits elements in their order, and rows stay one
// dimension (RowLoop), so that it is all the same how the others are cut.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToFused/AttentionForms.h"
#include "lib/Conversion/LinalgToRuntime/ContractionLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
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

static bool isReshape(Operation *op) {
  return isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op) &&
         cast<RankedTensorType>(op->getResult(0).getType()).hasStaticShape();
}

static Value skipReshapes(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isReshape(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// Readers of a value, in any shape.
static void collectReaders(Value value, SmallVectorImpl<Operation *> &readers) {
  for (Operation *user : value.getUsers())
    if (isReshape(user))
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

/// The dimension of a tensor that rows lie along, if it is one.
static std::optional<unsigned> findDimension(Value tensor, RowLoop along) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tensor.getType()).getShape();
  int64_t inner = 1;
  for (unsigned position = shape.size(); position-- > 0;) {
    if (shape[position] == along.size && inner == along.inner)
      return position;
    inner *= shape[position];
  }
  return std::nullopt;
}

/// Whether all dimensions of a tensor are visited in order.
static bool isInOrder(GenericOp op, OpOperand *operand) {
  return op.getMatchingIndexingMap(operand).isIdentity();
}

/// A reduction of all rows of its only input along one dimension by `Combiner`,
/// beginning with `neutral`.
template <typename Combiner>
static bool reducesRows(GenericOp op, RowLoop along, double neutral) {
  if (!op || op.getNumDpsInputs() != 1 || op.getNumResults() != 1 ||
      !op.hasPureTensorSemantics() ||
      !isInOrder(op, op.getDpsInputOperand(0)) ||
      !isFilled(op.getDpsInitOperand(0)->get(), neutral))
    return false;
  Value yielded = getYielded(op);
  auto combiner = dyn_cast_or_null<Combiner>(yielded.getDefiningOp());
  std::optional<unsigned> reduced = findDimension(op.getInputs()[0], along);
  if (!combiner || !reduced)
    return false;
  bool hasInput = false, hasInit = false;
  for (Value operand : combiner->getOperands()) {
    auto argument = dyn_cast<BlockArgument>(skipCasts(operand));
    hasInput |= argument && argument.getArgNumber() == 0;
    hasInit |= argument && argument.getArgNumber() == 1;
  }
  SmallVector<AffineExpr> kept;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    if (loop != *reduced)
      kept.push_back(getAffineDimExpr(loop, op.getContext()));
  return hasInput && hasInit &&
         op.getMatchingIndexingMap(op.getDpsInitOperand(0)) ==
             AffineMap::get(op.getNumLoops(), 0, kept, op.getContext());
}

/// The two tensors of an elementwise op of a matrix and its rows' numbers.
template <typename Binary>
static std::optional<std::pair<Value, Value>>
matchOfRows(GenericOp op, Value value, RowLoop along) {
  auto binary = value ? value.getDefiningOp<Binary>() : Binary();
  if (!binary || op.getNumDpsInputs() != 2 || op.getNumReductionLoops() != 0 ||
      !op.hasPureTensorSemantics())
    return std::nullopt;
  OpOperand *left = getOperandOf(op, binary.getLhs());
  OpOperand *right = getOperandOf(op, binary.getRhs());
  if (!left || !right || !isInOrder(op, left) ||
      !isInOrder(op, op.getDpsInitOperand(0)))
    return std::nullopt;
  std::optional<unsigned> position = findDimension(left->get(), along);
  if (!position || op.getMatchingIndexingMap(right) !=
                       op.getMatchingIndexingMap(left).dropResult(*position))
    return std::nullopt;
  return std::make_pair(skipReshapes(left->get()), skipReshapes(right->get()));
}

/// What a product sums along, if that is one dimension of its operand.
static std::optional<RowLoop> getSummedLoop(GenericOp product,
                                            OpOperand &operand) {
  AffineMap map = product.getMatchingIndexingMap(&operand);
  if (!map.isProjectedPermutation())
    return std::nullopt;
  ContractionLoops loops = classifyLoops(product);
  std::optional<RowLoop> summed;
  int64_t inner = 1;
  auto type = cast<RankedTensorType>(operand.get().getType());
  for (unsigned position = type.getRank(); position-- > 0;) {
    int64_t size = type.getDimSize(position);
    if (size != 1 &&
        llvm::is_contained(loops.k, map.getDimPosition(position))) {
      if (summed)
        return std::nullopt;
      summed = RowLoop{size, inner};
    }
    inner *= size;
  }
  return summed;
}

/// The product that a matrix is, or that an elementwise op makes it of.
static GenericOp findScores(Value matrix, GenericOp &scaled) {
  auto made = skipReshapes(matrix).getDefiningOp<GenericOp>();
  if (made && !isRuntimeContraction(made)) {
    scaled = made;
    for (Value input : scaled.getInputs())
      if (auto product = skipReshapes(input).getDefiningOp<GenericOp>();
          product && isRuntimeContraction(product))
        made = product;
  }
  return made && isRuntimeContraction(made) ? made : GenericOp();
}

bool isOutlinedSoftmax(OpOperand &probabilities) {
  auto call = skipReshapes(probabilities.get()).getDefiningOp<func::CallOp>();
  if (!call || call.getNumOperands() != 1)
    return false;
  auto function = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
  auto name = function ? function->getAttrOfType<StringAttr>("hp.operator")
                       : StringAttr();
  if (!name || name.getValue() != "softmax")
    return false;
  std::optional<RowLoop> along =
      getSummedLoop(cast<GenericOp>(probabilities.getOwner()), probabilities);
  GenericOp scaled;
  return along && along->inner == 1 && findScores(call.getOperand(0), scaled);
}

/// From the quotient back to the scores; nothing if this is no softmax of a
/// product.
std::optional<Attention> findSoftmax(OpOperand &probabilities) {
  Attention found;
  found.values = cast<GenericOp>(probabilities.getOwner());
  found.quotient = skipReshapes(probabilities.get()).getDefiningOp<GenericOp>();
  if (!found.quotient)
    return std::nullopt;
  std::optional<RowLoop> along = getSummedLoop(found.values, probabilities);
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
      skipReshapes(found.sum.getInputs()[0]) != division->first)
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
      skipReshapes(found.most.getInputs()[0]) != difference->first)
    return std::nullopt;
  found.scores = findScores(difference->first, found.scaled);
  if (!found.scores)
    return std::nullopt;
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
    if (skipReshapes(input->get()) == found.scores->getResult(0)) {
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
