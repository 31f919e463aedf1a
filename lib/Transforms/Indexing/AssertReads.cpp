//===- AssertReads.cpp - reads at computed places are within the tensor ---===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// torch-mlir asserts the indices of some operators (embedding, gather) and not
// those of others (index, index_select, take). Here all are: of each read the
// indices that come from data are followed back to see that they do, and are
// compared with the assertions that the block has.
//
// Cost: linear in the ops of bodies, but for chains of arithmetic that several
// reads of a body share, which are followed once each.
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

/// True if the value is made in the body from elements of operands, or from
/// what another read gives.
static bool comesFromData(Value index, Block *body) {
  llvm::SmallPtrSet<Value, 8> seen;
  SmallVector<Value> open = {index};
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    Operation *op = value.getDefiningOp();
    if (!op) {
      if (value.getParentBlock() == body)
        return true;
      continue;
    }
    if (isa<tensor::ExtractOp>(op))
      return true;
    if (body->findAncestorOpInBlock(*op))
      llvm::append_range(open, op->getOperands());
  }
  return false;
}

/// Whether assertions of the block keep the index from `0` to `extent - 1`.
static bool isAsserted(Value index, int64_t extent, Block *body) {
  Value source = index;
  if (auto cast = index.getDefiningOp<arith::IndexCastOp>())
    source = cast.getIn();
  bool isBelow = false, isAtLeastZero = false;
  for (auto assertion : body->getOps<cf::AssertOp>()) {
    auto compare = assertion.getArg().getDefiningOp<arith::CmpIOp>();
    if (!compare || (compare.getLhs() != index && compare.getLhs() != source))
      continue;
    std::optional<int64_t> bound = getConstantIntValue(compare.getRhs());
    if (!bound)
      continue;
    switch (compare.getPredicate()) {
    case arith::CmpIPredicate::ult:
      if (*bound <= extent && compare.getLhs() == index)
        return true;
      break;
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
    if (!comesFromData(index, op.getBlock()))
      continue;
    if (isStatic && isAsserted(index, extent, op.getBlock())) {
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
    builder.setInsertionPoint(read);
    // Without sign, what is negative is greater than any extent.
    Value isThere = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ult, index, size);
    cf::AssertOp::create(builder, loc, isThere, "index out of range");
    ++numAsserted;
  }
  return success();
}
