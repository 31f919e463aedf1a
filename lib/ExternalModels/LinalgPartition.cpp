//===- LinalgPartition.cpp - local programs of structured ops -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The local program of a structured op is the op on local tensors. What must
// change besides the types:
//
//  1. `linalg.index` counts from the first iteration of this device.
//  2. A split reduction adds `outs` once: on device 0 of the group it is what
//     it was, elsewhere the neutral element (max, min, and, or: the same value
//     again changes nothing).
//  3. Where a split does not divide, the last devices iterate over padding.
//     - A reduction must not count it: a contraction gets zeros for both
//       operands there, so that it stays what it is; other bodies keep the
//       accumulator.
//     - It must not trap: divisors become 1, positions of captured tensors 0,
//       and assertions hold.
//  4. Captured tensors are read at local positions. Where the position is data
//     and the tensor is split along it, what other devices hold reads as zero.
//
// Cost: linear in the size of the op and its body.
//===----------------------------------------------------------------------===//
#include "lib/ExternalModels/Partitions.h"
#include "lib/ExternalModels/Rules.h"
#include "lib/ExternalModels/TensorEdits.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::hyperparallel;

//===----------------------------------------------------------------------===//
// What the op is
//===----------------------------------------------------------------------===//

/// Integer ops that fault on some right-hand sides, but never on 1.
static bool trapsOnSomeDivisors(Operation *op) {
  return isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
             arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp,
             math::IPowIOp>(op);
}

/// The body argument that a value is a conversion of, if any.
static BlockArgument throughConversions(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<CastOpInterface>(op) || op->getNumOperands() != 1)
      return {};
    value = op->getOperand(0);
  }
  return dyn_cast<BlockArgument>(value);
}

/// accumulator + (lhs * rhs): zeros in both operands add nothing.
static bool isMultiplyAccumulate(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1)
    return false;
  Block *body = op.getBlock();
  Operation *add = body->getTerminator()->getOperand(0).getDefiningOp();
  if (!isa_and_nonnull<arith::AddFOp, arith::AddIOp>(add))
    return false;
  Value accumulator = body->getArgument(2);
  Value product = add->getOperand(add->getOperand(0) == accumulator ? 1 : 0);
  Operation *multiply = product.getDefiningOp();
  if (!isa_and_nonnull<arith::MulFOp, arith::MulIOp>(multiply) ||
      !llvm::is_contained(add->getOperands(), accumulator))
    return false;
  BlockArgument lhs = throughConversions(multiply->getOperand(0));
  BlockArgument rhs = throughConversions(multiply->getOperand(1));
  return lhs && rhs && lhs != rhs && lhs.getOwner() == body &&
         rhs.getOwner() == body && lhs != accumulator && rhs != accumulator;
}

namespace {
/// The op, its loops, and the body of the local op while it is rewritten.
class LinalgPartitioner {
public:
  LinalgPartitioner(linalg::LinalgOp op, PartitionContext &context)
      : op(op), context(context), b(context.builder()), loc(op.getLoc()),
        sizes(op.getStaticLoopRanges()), iterators(op.getIteratorTypesArray()) {
  }

  LogicalResult run();

private:
  bool isSplit(unsigned factor) const { return context.shardCount(factor) > 1; }
  bool isReduction(unsigned loop) const {
    return linalg::isReductionIterator(iterators[loop]);
  }
  /// First iteration of this device; made once, before the op.
  Value offsetOf(unsigned factor) {
    auto [it, inserted] = offsets.try_emplace(factor);
    if (inserted)
      it->second = context.offset(factor);
    return it->second;
  }
  bool needsValidity();
  Value clearPadding(Value local, AffineMap map);
  Value addedOnce(unsigned init);
  void shiftIndices(Block &body);
  void readLocally(const CapturedRead &read, tensor::ExtractOp extract);
  void guardTraps(Block &body);
  void keepAccumulators(Block &body);
  Value inRange(OpBuilder &builder, ArrayRef<unsigned> loops);

  linalg::LinalgOp op;
  PartitionContext &context;
  OpBuilder &b;
  Location loc;
  SmallVector<int64_t> sizes;
  SmallVector<utils::IteratorType> iterators;
  SmallVector<unsigned> unevenLoops, unevenReductions;
  DenseMap<unsigned, Value> offsets;
  /// This iteration is not padding (null: none is).
  Value valid;
};
} // namespace

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// Zeros where a reduction loop that does not divide runs over padding.
Value LinalgPartitioner::clearPadding(Value local, AffineMap map) {
  SmallVector<std::pair<int64_t, unsigned>> dims;
  for (auto [dim, expr] : llvm::enumerate(map.getResults()))
    if (auto loop = dyn_cast<AffineDimExpr>(expr))
      if (llvm::is_contained(unevenReductions, loop.getPosition()))
        dims.push_back({dim, loop.getPosition()});
  if (dims.empty())
    return local;
  SmallVector<Value> starts;
  for (auto [dim, loop] : dims)
    starts.push_back(offsetOf(loop));
  auto element = [&](OpBuilder &body, Location at, ValueRange position,
                     ValueRange elements) {
    Value inside;
    for (auto [place, start] : llvm::zip_equal(dims, starts)) {
      Value index =
          arith::AddIOp::create(body, at, position[place.first], start);
      inside = andConditions(body, at, inside,
                             isBelow(body, at, index, sizes[place.second]));
    }
    Value zero = zeroScalar(body, at, elements[0].getType());
    return arith::SelectOp::create(body, at, inside, elements[0], zero)
        .getResult();
  };
  return mapElements(b, loc, cast<RankedTensorType>(local.getType()), local,
                     element);
}

/// Does every element have a value that adds nothing?
static bool isNeutral(Value init, Reduction kind) {
  if (auto fill = init.getDefiningOp<linalg::FillOp>())
    init = fill.getInputs()[0];
  Attribute value;
  if (!matchPattern(init, m_Constant(&value)))
    return false;
  if (auto splat = dyn_cast<SplatElementsAttr>(value))
    value = splat.getSplatValue<Attribute>();
  if (auto number = dyn_cast<FloatAttr>(value))
    return kind == Reduction::Sum ? number.getValue().isZero()
                                  : number.getValueAsDouble() == 1.0;
  if (auto number = dyn_cast<IntegerAttr>(value))
    return kind == Reduction::Sum ? number.getValue().isZero()
                                  : number.getValue().isOne();
  return false;
}

/// The init of a split reduction, on the first device of the group only.
Value LinalgPartitioner::addedOnce(unsigned init) {
  OpOperand *operand = op.getDpsInitOperand(init);
  Value local = context.local(operand->get());
  std::optional<Reduction> kind;
  Value isFirst;
  for (unsigned loop = 0; loop < sizes.size(); ++loop) {
    if (!isSplit(loop) || !isReduction(loop))
      continue;
    kind = context.rule().factors[loop].reduction;
    if (*kind != Reduction::Sum && *kind != Reduction::Prod)
      return local;
  }
  if (!kind || !op.payloadUsesValueFromOperand(operand) ||
      isNeutral(operand->get(), *kind))
    return local;
  for (unsigned loop = 0; loop < sizes.size(); ++loop)
    if (isSplit(loop) && isReduction(loop))
      isFirst = andConditions(b, loc, isFirst,
                              isBelow(b, loc, context.shardIndex(loop), 1));
  auto type = cast<RankedTensorType>(local.getType());
  TypedAttr neutral = neutralElement(*kind, type.getElementType());
  if (!neutral)
    return {};
  auto element = [&](OpBuilder &body, Location at, ValueRange,
                     ValueRange elements) {
    Value other = arith::ConstantOp::create(body, at, neutral);
    return arith::SelectOp::create(body, at, isFirst, elements[0], other)
        .getResult();
  };
  return mapElements(b, loc, type, local, element);
}

//===----------------------------------------------------------------------===//
// The body
//===----------------------------------------------------------------------===//

/// All of these loops are before their ends, globally.
Value LinalgPartitioner::inRange(OpBuilder &builder, ArrayRef<unsigned> loops) {
  Value inside;
  for (unsigned loop : loops) {
    Value index = linalg::IndexOp::create(builder, loc, loop);
    index = arith::AddIOp::create(builder, loc, index, offsetOf(loop));
    inside = andConditions(builder, loc, inside,
                           isBelow(builder, loc, index, sizes[loop]));
  }
  return inside;
}

/// Some iteration is padding, and the body has an op that padding could trap.
bool LinalgPartitioner::needsValidity() {
  if (unevenLoops.empty())
    return false;
  WalkResult result = op.getBlock()->walk([&](Operation *inner) {
    bool canTrap = trapsOnSomeDivisors(inner) ||
                   isa<cf::AssertOp, tensor::ExtractOp>(inner);
    return canTrap ? WalkResult::interrupt() : WalkResult::advance();
  });
  return result.wasInterrupted();
}

void LinalgPartitioner::shiftIndices(Block &body) {
  SmallVector<linalg::IndexOp> indices;
  body.walk([&](linalg::IndexOp index) {
    if (index->getBlock() == &body && isSplit(index.getDim()))
      indices.push_back(index);
  });
  for (linalg::IndexOp index : indices) {
    Value offset = offsetOf(index.getDim());
    OpBuilder builder(index->getContext());
    builder.setInsertionPointAfter(index);
    Value global = arith::AddIOp::create(builder, index.getLoc(),
                                         index.getResult(), offset);
    index.getResult().replaceAllUsesExcept(global, global.getDefiningOp());
  }
}

void LinalgPartitioner::readLocally(const CapturedRead &read,
                                    tensor::ExtractOp extract) {
  OpBuilder builder(extract);
  Location at = extract.getLoc();
  Value zero, isOwn;
  auto orZero = [&](Value condition, Value position) -> Value {
    if (!zero)
      zero = arith::ConstantIndexOp::create(builder, at, 0);
    return arith::SelectOp::create(builder, at, condition, position, zero);
  };
  for (auto [dim, factor] : llvm::enumerate(read.factors)) {
    OpOperand &position = extract.getIndicesMutable()[dim];
    // The loop and the dimension are cut alike, or both have one iteration.
    if (read.loops[dim] >= 0) {
      if (isSplit(read.loops[dim]))
        position.set(linalg::IndexOp::create(builder, at, read.loops[dim]));
      continue;
    }
    if (factor < 0 || !isSplit(factor)) {
      if (valid)
        position.set(orZero(valid, position.get()));
      continue;
    }
    Value local =
        arith::SubIOp::create(builder, at, position.get(), offsetOf(factor));
    Value size =
        arith::ConstantIndexOp::create(builder, at, context.localSize(factor));
    Value inside = arith::CmpIOp::create(builder, at, arith::CmpIPredicate::ult,
                                         local, size);
    position.set(orZero(inside, local));
    isOwn = andConditions(builder, at, isOwn, inside);
  }
  if (!isOwn)
    return;
  builder.setInsertionPointAfter(extract);
  Value none = zeroScalar(builder, at, extract.getType());
  Value own =
      arith::SelectOp::create(builder, at, isOwn, extract.getResult(), none);
  extract.getResult().replaceAllUsesExcept(own, own.getDefiningOp());
}

void LinalgPartitioner::guardTraps(Block &body) {
  SmallVector<Operation *> guarded;
  body.walk([&](Operation *inner) {
    if (trapsOnSomeDivisors(inner) || isa<cf::AssertOp>(inner))
      guarded.push_back(inner);
  });
  for (Operation *inner : guarded) {
    OpBuilder builder(inner);
    Location at = inner->getLoc();
    bool isAssert = isa<cf::AssertOp>(inner);
    OpOperand &operand = inner->getOpOperand(isAssert ? 0 : 1);
    Type type = operand.get().getType();
    Value harmless =
        arith::ConstantOp::create(builder, at, builder.getIntegerAttr(type, 1));
    operand.set(
        arith::SelectOp::create(builder, at, valid, operand.get(), harmless));
  }
}

void LinalgPartitioner::keepAccumulators(Block &body) {
  Operation *yield = body.getTerminator();
  OpBuilder builder(yield);
  Value inside = inRange(builder, unevenReductions);
  for (auto [index, operand] : llvm::enumerate(yield->getOpOperands())) {
    Value kept = body.getArgument(op.getNumDpsInputs() + index);
    operand.set(
        arith::SelectOp::create(builder, loc, inside, operand.get(), kept));
  }
}

//===----------------------------------------------------------------------===//
// The op
//===----------------------------------------------------------------------===//

LogicalResult LinalgPartitioner::run() {
  bool isOddReduction = false;
  for (unsigned loop = 0; loop < sizes.size(); ++loop) {
    if (!isSplit(loop) || !context.isUneven(loop))
      continue;
    unevenLoops.push_back(loop);
    if (isReduction(loop))
      unevenReductions.push_back(loop);
  }
  IRMapping mapping = mapValuesFromOutside(
      op, [&](Value value) { return context.local(value); });
  auto local = cast<linalg::LinalgOp>(b.clone(*op, mapping));
  SmallVector<tensor::ExtractOp> extracts;
  SmallVector<CapturedRead, 1> reads = capturedReads(op);
  for (CapturedRead &read : reads)
    extracts.push_back(
        cast<tensor::ExtractOp>(mapping.lookup(read.extract.getOperation())));

  b.setInsertionPoint(local);
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    Value init = addedOnce(index);
    if (!init)
      return op->emitOpError()
             << "cannot split the reduction of " << result.getType();
    local.getDpsInitOperand(index)->set(init);
    local->getResult(index).setType(context.localType(result));
  }
  bool allHavePadding = llvm::all_of(op.getDpsInputOperands(), [&](auto *in) {
    AffineMap map = op.getMatchingIndexingMap(in);
    return llvm::all_of(unevenReductions, [&](unsigned loop) {
      return llvm::is_contained(map.getResults(), b.getAffineDimExpr(loop));
    });
  });
  if (!unevenReductions.empty()) {
    isOddReduction = !isMultiplyAccumulate(op) || !allHavePadding;
    if (!isOddReduction)
      for (OpOperand *in : local.getDpsInputOperands())
        in->set(clearPadding(in->get(), local.getMatchingIndexingMap(in)));
  }

  bool hasTraps = needsValidity();
  if ((isOddReduction || hasTraps) && local.getRegionBuilder()) {
    IRRewriter rewriter(b);
    rewriter.setInsertionPoint(local);
    FailureOr<linalg::GenericOp> generic =
        linalg::generalizeNamedOp(rewriter, local);
    if (failed(generic))
      return op->emitOpError("cannot be split unevenly");
    local = *generic;
    b.setInsertionPoint(local);
  }
  Block &body = *local.getBlock();
  shiftIndices(body);
  if (hasTraps) {
    OpBuilder builder(&body, body.begin());
    valid = inRange(builder, unevenLoops);
    guardTraps(body);
  }
  for (auto [read, extract] : llvm::zip_equal(reads, extracts))
    readLocally(read, extract);
  if (isOddReduction)
    keepAccumulators(body);
  b.setInsertionPointAfter(local);
  for (auto [global, result] :
       llvm::zip_equal(op->getResults(), local->getResults()))
    context.setResult(global, result);
  return success();
}

LogicalResult mlir::hyperparallel::partitionLinalg(linalg::LinalgOp op,
                                                   PartitionContext &context) {
  return LinalgPartitioner(op, context).run();
}
