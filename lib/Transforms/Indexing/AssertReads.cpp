//===- AssertReads.cpp - reads at computed places are within the tensor ---===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// torch-mlir asserts the indices of some operators (embedding, gather) and not
// those of others (index, index_select, take). Here all are: of each read the
// indices that come from data are compared with the assertions that the block
// has, and asserted in the same words where these do not bound them. What is
// counted (a range that another op writes) is not data.
//
// Cost: linear in the ops of bodies, but for what several reads are made of,
// which is followed once for each.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/Indexing/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"

namespace mlir::hyperparallel::indexing {
#define GEN_PASS_DEF_ASSERTREADSPASS
#include "lib/Transforms/Indexing/Passes.h.inc"
} // namespace mlir::hyperparallel::indexing

using namespace mlir;
using namespace mlir::hyperparallel;

/// The values that a value is made of, one step back; none if that is data.
static std::optional<SmallVector<Value>> getParts(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto owner = dyn_cast<linalg::LinalgOp>(argument.getOwner()->getParentOp());
    if (!owner)
      return std::nullopt;
    return SmallVector<Value>{owner.getMatchingOpOperand(argument)->get()};
  }
  Operation *op = value.getDefiningOp();
  if (isa<linalg::IndexOp, tensor::EmptyOp>(op) ||
      op->hasTrait<OpTrait::ConstantLike>())
    return SmallVector<Value>{};
  if (auto structured = dyn_cast<linalg::LinalgOp>(op)) {
    Operation *yield = structured.getBlock()->getTerminator();
    return SmallVector<Value>{
        yield->getOperand(cast<OpResult>(value).getResultNumber())};
  }
  bool isView = isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp,
                    tensor::CastOp, tensor::ExtractSliceOp>(op);
  bool isArithmetic =
      op->getDialect() && isa<arith::ArithDialect>(op->getDialect());
  if (!isView && !isArithmetic)
    return std::nullopt;
  return SmallVector<Value>(op->getOperands());
}

/// True unless the value is made of nothing but loops and constants: what is
/// counted, not what is given.
static bool comesFromData(Value index) {
  llvm::SmallPtrSet<Value, 8> seen;
  SmallVector<Value> open = {index};
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    std::optional<SmallVector<Value>> parts = getParts(value);
    if (!parts)
      return true;
    llvm::append_range(open, *parts);
  }
  return false;
}

/// Whether assertions before the read keep the index from `0` to `extent - 1`.
static bool isAsserted(Value index, int64_t extent, tensor::ExtractOp read) {
  Value source = index;
  if (auto cast = index.getDefiningOp<arith::IndexCastOp>())
    source = cast.getIn();
  bool isBelow = false, isAtLeastZero = false;
  for (auto assertion : read->getBlock()->getOps<cf::AssertOp>()) {
    if (read->isBeforeInBlock(assertion))
      break;
    auto compare = assertion.getArg().getDefiningOp<arith::CmpIOp>();
    if (!compare || (compare.getLhs() != index && compare.getLhs() != source))
      continue;
    std::optional<int64_t> bound = getConstantIntValue(compare.getRhs());
    if (!bound)
      continue;
    switch (compare.getPredicate()) {
    case arith::CmpIPredicate::slt:
      isBelow |= *bound <= extent;
      break;
    case arith::CmpIPredicate::sge:
      isAtLeastZero |= *bound >= 0;
      break;
    default:
      break;
    }
  }
  return isBelow && isAtLeastZero;
}

namespace {
struct AssertReadsPass : indexing::impl::AssertReadsPassBase<AssertReadsPass> {
  LogicalResult assertRead(tensor::ExtractOp read, linalg::LinalgOp op);

  void runOnOperation() override {
    WalkResult walked = getOperation().walk([&](linalg::LinalgOp op) {
      SmallVector<tensor::ExtractOp> reads(
          op.getBlock()->getOps<tensor::ExtractOp>());
      for (tensor::ExtractOp read : reads)
        if (failed(assertRead(read, op)))
          return WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace

LogicalResult AssertReadsPass::assertRead(tensor::ExtractOp read,
                                          linalg::LinalgOp op) {
  RankedTensorType type = read.getTensor().getType();
  for (auto [dim, index] : llvm::enumerate(read.getIndices())) {
    int64_t extent = type.getDimSize(dim);
    bool isStatic = !ShapedType::isDynamic(extent);
    if (std::optional<int64_t> constant = getConstantIntValue(index)) {
      if (*constant < 0 || (isStatic && *constant >= extent))
        return read.emitOpError("expected index #")
               << dim << " to be a place of " << type << " but it is "
               << *constant;
      continue;
    }
    if (!comesFromData(index))
      continue;
    if (isStatic && isAsserted(index, extent, read)) {
      ++numKnown;
      continue;
    }
    OpBuilder builder(op);
    Location loc = read.getLoc();
    Value size =
        isStatic
            ? arith::ConstantIndexOp::create(builder, loc, extent).getResult()
            : tensor::DimOp::create(builder, loc, read.getTensor(), dim)
                  .getResult();
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
    builder.setInsertionPoint(read);
    auto assertThat = [&](arith::CmpIPredicate predicate, Value bound,
                          StringRef message) {
      Value holds =
          arith::CmpIOp::create(builder, loc, predicate, index, bound);
      cf::AssertOp::create(builder, loc, holds, message);
    };
    assertThat(arith::CmpIPredicate::slt, size,
               "index must be smaller than dim size");
    assertThat(arith::CmpIPredicate::sge, zero,
               "index must be larger or equal to 0");
    ++numAsserted;
  }
  return success();
}
