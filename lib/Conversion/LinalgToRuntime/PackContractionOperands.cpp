//===- PackContractionOperands.cpp - Copies that the matmul needs ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contract out: every contraction for the runtime is one call of its matmul.
//
// An operand whose strides do not fit is copied to the order (batch, m, k),
// (batch, k, n) or (batch, m, n); a result is computed in that order and copied
// back. Loops of one role follow the order of the other operands, which makes
// each copy final but for the first two, so a few are enough.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToRuntime/ContractionLayout.h"
#include "lib/Conversion/Passes.h"

#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_PACKCONTRACTIONOPERANDS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;
using linalg::GenericOp;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

static constexpr unsigned kMaxCopies = 5;

/// out[outMap] = in[inMap] over all of `extents`.
static void createCopy(OpBuilder &builder, Location loc, Value in, Value out,
                       AffineMap inMap, AffineMap outMap) {
  SmallVector<utils::IteratorType> iterators(inMap.getNumDims(),
                                             utils::IteratorType::parallel);
  GenericOp::create(builder, loc, ValueRange(in), ValueRange(out),
                    ArrayRef<AffineMap>{inMap, outMap}, iterators,
                    [](OpBuilder &nested, Location nestedLoc, ValueRange args) {
                      linalg::YieldOp::create(nested, nestedLoc, args[0]);
                    });
}

/// The loops of `operand` in canonical order; those of one role as the other
/// operands have them, so that they can be merged.
static SmallVector<unsigned> getCanonicalOrder(LinalgOp op, unsigned operand) {
  ContractionLoops loops = classifyLoops(op);
  bool isResult = operand == 2;
  sortByStride(op, isResult ? 0 : 2, loops.batch);
  sortByStride(op, isResult ? 0 : 2, loops.m);
  sortByStride(op, isResult ? 1 : 2, loops.n);
  sortByStride(op, operand == 0 ? 1 : 0, loops.k);
  SmallVector<unsigned> order = loops.batch;
  llvm::append_range(order, operand == 1 ? loops.k : loops.m);
  llvm::append_range(order, operand == 0 ? loops.k : loops.n);
  return order;
}

/// Replaces one operand of `op` by a packed copy.
static GenericOp packOperand(GenericOp op, unsigned number) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  MLIRContext *context = op.getContext();
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  SmallVector<unsigned> order = getCanonicalOrder(op, number);
  OpOperand &operand = getContractionOperand(op, number);
  auto type = cast<MemRefType>(operand.get().getType());

  SmallVector<int64_t> shape;
  SmallVector<AffineExpr> packedExprs;
  for (unsigned loop : order) {
    shape.push_back(extents[loop]);
    packedExprs.push_back(getAffineDimExpr(loop, context));
  }
  unsigned numLoops = op.getNumLoops();
  AffineMap packedMap = AffineMap::get(numLoops, 0, packedExprs, context);
  Value packed = memref::AllocOp::create(
      builder, loc, MemRefType::get(shape, type.getElementType()),
      builder.getI64IntegerAttr(64));

  // The copy runs over the loops of the operand only.
  AffineMap operandMap = op.getMatchingIndexingMap(&operand);
  SmallVector<AffineExpr> renumber(numLoops, getAffineConstantExpr(0, context));
  for (auto [position, loop] : llvm::enumerate(order))
    renumber[loop] = getAffineDimExpr(position, context);
  AffineMap copyMap = operandMap.replaceDimsAndSymbols(
      renumber, {}, order.size(), /*numResultSyms=*/0);
  AffineMap identity = AffineMap::getMultiDimIdentityMap(order.size(), context);
  Value original = operand.get();

  bool isResult = number == 2;
  if (!isResult || !op->hasAttr("hp.overwrite"))
    createCopy(builder, loc, original, packed, copyMap, identity);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  maps[operand.getOperandNumber()] = packedMap;
  operand.set(packed);
  op.setIndexingMapsAttr(builder.getAffineMapArrayAttr(maps));
  if (isResult) {
    builder.setInsertionPointAfter(op);
    createCopy(builder, loc, packed, original, identity, copyMap);
  }
  return op;
}

namespace {
struct PackContractionOperandsPass
    : impl::PackContractionOperandsBase<PackContractionOperandsPass> {
  void runOnOperation() override {
    SmallVector<GenericOp> contractions;
    getOperation().walk([&](GenericOp op) {
      if (op.hasPureBufferSemantics() && isRuntimeContraction(op))
        contractions.push_back(op);
    });
    for (GenericOp op : contractions) {
      for (unsigned attempt = 0; attempt <= kMaxCopies; ++attempt) {
        MatmulLayoutOrMismatch result = getMatmulLayout(op);
        if (result.layout)
          break;
        if (attempt == kMaxCopies) {
          op.emitError("expected a contraction that packed operands make a "
                       "matmul but got strides that do not fit");
          return signalPassFailure();
        }
        ++numPacked;
        op = packOperand(op, result.mismatch.operand);
      }
    }
  }
};
} // namespace

} // namespace mlir::hyperparallel
