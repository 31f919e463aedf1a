//===- LinalgRule.cpp - how the dimensions of structured ops relate -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The rule is derived, not listed: from indexing maps (which loop runs along
// which dimension), iterator types (parallel loops split freely, reduction
// loops leave partial results), and the body (which combiner reduces; which
// captured tensors are read, and at which positions).
//
// A loop may not be split when
//  - its reduction is not one associative combiner known to the collectives, or
//    the results of the op reduce differently (argmax: value and index);
//  - it runs along a dimension together with another loop (convolution windows)
//    or twice along one tensor (diagonals).
//
// Embedding and gather arrive as `tensor.extract %table[%i, %j]` in the body. A
// position that is the index of a loop ties that dimension to the loop. One
// that is data has a factor of its own: split, each device reads the rows that
// it has and zero for others, so that the result is a sum over devices, if the
// body yields what it reads; otherwise it must be whole.
//
// Cost: linear in the size of the op and its body.
//===----------------------------------------------------------------------===//
#include "lib/ExternalModels/Rules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::hyperparallel;

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

static std::optional<Reduction> reductionOf(Operation *combiner) {
  bool isBool = combiner->getResult(0).getType().isInteger(1);
  if (isa<arith::AddFOp>(combiner))
    return Reduction::Sum;
  if (isa<arith::MulFOp>(combiner))
    return Reduction::Prod;
  if (isa<arith::MaximumFOp>(combiner))
    return Reduction::Max;
  if (isa<arith::MinimumFOp>(combiner))
    return Reduction::Min;
  if (isa<arith::AndIOp>(combiner))
    return Reduction::And;
  if (isa<arith::OrIOp>(combiner))
    return Reduction::Or;
  // One bit: arithmetic of signed one-bit numbers is not what anyone means.
  if (isBool)
    return isa<arith::MaxUIOp>(combiner)   ? std::optional(Reduction::Or)
           : isa<arith::MinUIOp>(combiner) ? std::optional(Reduction::And)
                                           : std::nullopt;
  if (isa<arith::AddIOp>(combiner))
    return Reduction::Sum;
  if (isa<arith::MulIOp>(combiner))
    return Reduction::Prod;
  if (isa<arith::MaxSIOp>(combiner))
    return Reduction::Max;
  if (isa<arith::MinSIOp>(combiner))
    return Reduction::Min;
  return std::nullopt;
}

std::optional<Reduction> mlir::hyperparallel::combinerOf(linalg::LinalgOp op,
                                                         unsigned init) {
  Block *body = op.getBlock();
  Value accumulator = body->getArgument(op.getNumDpsInputs() + init);
  if (!accumulator.hasOneUse())
    return std::nullopt;
  Value yielded = body->getTerminator()->getOperand(init);
  Operation *combiner = yielded.getDefiningOp();
  // Some bodies round the accumulation (bf16 in, f32 combine): not associative
  // across devices in a way that can be undone, hence only the plain form.
  if (!combiner || combiner->getBlock() != body ||
      combiner->getNumOperands() != 2 ||
      *accumulator.getUsers().begin() != combiner)
    return std::nullopt;
  return reductionOf(combiner);
}

/// The one combiner of all results, or nullopt.
static std::optional<Reduction> commonCombiner(linalg::LinalgOp op) {
  std::optional<Reduction> common;
  for (unsigned init = 0; init < op.getNumDpsInits(); ++init) {
    std::optional<Reduction> kind = combinerOf(op, init);
    if (!kind || (common && *common != *kind))
      return std::nullopt;
    common = kind;
  }
  return common;
}

//===----------------------------------------------------------------------===//
// Captured tensors
//===----------------------------------------------------------------------===//

/// Does the body, with every loop parallel, yield just what `extract` reads?
static bool yieldsOnly(linalg::LinalgOp op, tensor::ExtractOp extract) {
  return op.getNumReductionLoops() == 0 && op.getNumDpsInits() == 1 &&
         extract->getBlock() == op.getBlock() && extract->hasOneUse() &&
         op.getBlock()->getTerminator()->getOperand(0) == extract.getResult() &&
         extract.getType().isIntOrFloat();
}

SmallVector<CapturedRead, 1>
mlir::hyperparallel::capturedReads(linalg::LinalgOp op) {
  SmallVector<CapturedRead, 1> reads;
  SmallVector<int64_t> loopSizes = op.getStaticLoopRanges();
  int64_t numFactors = loopSizes.size();
  op.getBlock()->walk([&](tensor::ExtractOp extract) {
    if (op->isAncestor(extract.getTensor().getParentRegion()->getParentOp()))
      return;
    CapturedRead read{extract, {}, {}, yieldsOnly(op, extract)};
    ArrayRef<int64_t> shape =
        cast<RankedTensorType>(extract.getTensor().getType()).getShape();
    for (auto [position, size] : llvm::zip(extract.getIndices(), shape)) {
      auto index = position.getDefiningOp<linalg::IndexOp>();
      bool isLoop = index && index->getBlock() == op.getBlock() &&
                    loopSizes[index.getDim()] == size;
      read.loops.push_back(isLoop ? static_cast<int64_t>(index.getDim()) : -1);
      read.factors.push_back(size == 1 ? -1
                             : isLoop  ? static_cast<int64_t>(index.getDim())
                                       : numFactors++);
    }
    reads.push_back(std::move(read));
  });
  // Two reads of one tensor would each add the parts of the other.
  for (CapturedRead &read : reads)
    read.isMaskable &= reads.size() == 1;
  return reads;
}

void mlir::hyperparallel::addWholeTensors(ShardingRule &rule, Operation *op,
                                          Operation *inner) {
  for (OpOperand &operand : inner->getOpOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    if (!type || op->isAncestor(operand.get().getParentRegion()->getParentOp()))
      continue;
    RuleTensor tensor{operand.get(), {&operand}, {}};
    for (int64_t size : type.getShape())
      tensor.dims.emplace_back().push_back(
          rule.addFactor(size, FactorKind::NeedReplication));
    rule.operands.push_back(std::move(tensor));
  }
}

/// Adds the captured tensors of the body to the rule, in the order of
/// `capturedReads`.
static void addCaptured(linalg::LinalgOp op, ShardingRule &rule) {
  SmallVector<CapturedRead, 1> reads = capturedReads(op);
  for (CapturedRead &read : reads) {
    auto type = cast<RankedTensorType>(read.extract.getTensor().getType());
    RuleTensor tensor{
        read.extract.getTensor(), {&read.extract.getTensorMutable()}, {}};
    Reduction kind =
        type.getElementType().isInteger(1) ? Reduction::Or : Reduction::Sum;
    for (auto [dim, factor] : llvm::enumerate(read.factors)) {
      auto &factors = tensor.dims.emplace_back();
      if (factor < 0)
        continue;
      if (read.loops[dim] < 0) {
        unsigned added = read.isMaskable
                             ? rule.addFactor(type.getDimSize(dim),
                                              FactorKind::Reduction, kind)
                             : rule.addFactor(type.getDimSize(dim),
                                              FactorKind::NeedReplication);
        rule.factors[added].isLoop = false;
      }
      factors.push_back(factor);
    }
    rule.operands.push_back(std::move(tensor));
  }
  // Other uses of captured tensors must see the whole tensor.
  op.getBlock()->walk([&](Operation *inner) {
    if (isa<tensor::ExtractOp>(inner))
      return;
    addWholeTensors(rule, op, inner);
  });
}

//===----------------------------------------------------------------------===//
// The rule
//===----------------------------------------------------------------------===//

/// Loops that more than one of a tensor's dimensions, or a dimension with other
/// loops, run along.
static void keepEntangledLoopsWhole(linalg::LinalgOp op, ShardingRule &rule) {
  for (AffineMap map : op.getIndexingMapsArray()) {
    SmallVector<unsigned> timesUsed(rule.factors.size(), 0);
    for (AffineExpr expr : map.getResults()) {
      bool isPlain = isa<AffineDimExpr>(expr);
      expr.walk([&](AffineExpr part) {
        auto dim = dyn_cast<AffineDimExpr>(part);
        if (!dim)
          return;
        if (!isPlain || ++timesUsed[dim.getPosition()] > 1)
          rule.factors[dim.getPosition()] = {
              rule.factors[dim.getPosition()].size,
              FactorKind::NeedReplication};
      });
    }
  }
}

static RuleTensor tensorOf(linalg::LinalgOp op, OpOperand &operand,
                           ShardingRule &rule) {
  RuleTensor tensor{operand.get(), {&operand}, {}};
  tensor.isRead = op.payloadUsesValueFromOperand(&operand);
  AffineMap map = op.getMatchingIndexingMap(&operand);
  ArrayRef<int64_t> shape =
      cast<RankedTensorType>(operand.get().getType()).getShape();
  for (auto [expr, size] : llvm::zip_equal(map.getResults(), shape)) {
    auto &factors = tensor.dims.emplace_back();
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      factors.push_back(dim.getPosition());
    else if (size != 1) {
      factors.push_back(rule.addFactor(size, FactorKind::NeedReplication));
      rule.factors.back().isLoop = false;
    }
  }
  return tensor;
}

/// Does the body only move, add, subtract and negate what it is given?
static bool isAdditive(linalg::LinalgOp op) {
  if (op.getNumReductionLoops() != 0)
    return false;
  Block *body = op.getBlock();
  auto isFromBody = [&](Value operand) {
    return operand.getParentBlock() == body;
  };
  for (Operation &inner : *body)
    if (!isa<arith::AddFOp, arith::AddIOp, arith::SubFOp, arith::SubIOp,
             arith::NegFOp, linalg::YieldOp>(inner) ||
        !llvm::all_of(inner.getOperands(), isFromBody))
      return false;
  return true;
}

ShardingRule mlir::hyperparallel::linalgRule(linalg::LinalgOp op) {
  ShardingRule rule;
  if (!op.hasPureTensorSemantics())
    return rule;
  rule.isAdditive = isAdditive(op);
  std::optional<Reduction> combiner = commonCombiner(op);
  for (auto [size, iterator] :
       llvm::zip_equal(op.getStaticLoopRanges(), op.getIteratorTypesArray())) {
    if (ShapedType::isDynamic(size))
      rule.addFactor(size, FactorKind::NeedReplication);
    else if (iterator == utils::IteratorType::parallel)
      rule.addFactor(size);
    else if (combiner)
      rule.addFactor(size, FactorKind::Reduction, combiner);
    else
      rule.addFactor(size, FactorKind::NeedReplication);
  }
  keepEntangledLoopsWhole(op, rule);
  // Factors of captured tensors follow the loops, those of windows come last.
  ShardingRule captured = rule;
  captured.operands.clear();
  addCaptured(op, captured);
  SmallVector<RuleTensor, 3> capturedTensors = std::move(captured.operands);
  rule.factors = std::move(captured.factors);
  for (OpOperand &operand : op->getOpOperands())
    if (isa<RankedTensorType>(operand.get().getType()))
      rule.operands.push_back(tensorOf(op, operand, rule));
  rule.operands.append(std::make_move_iterator(capturedTensors.begin()),
                       std::make_move_iterator(capturedTensors.end()));
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    RuleTensor tensor = tensorOf(op, *op.getDpsInitOperand(index), rule);
    rule.results.push_back({result, {}, std::move(tensor.dims)});
  }
  return rule;
}
