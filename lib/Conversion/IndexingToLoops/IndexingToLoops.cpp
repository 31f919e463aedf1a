//===- IndexingToLoops.cpp - writes at computed places, in place ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contract in:  tensors, right before bufferization.
// Contract out: the same without ops of Indexing.
//
//   scatter_add becomes a loop over updates that hands the table on:
//
//     for n = 0 to N iter_args(table)
//       i = indices[n]
//       if 0 <= i < rows: table[i] += updates[n]
//
//   Bufferization finds that every slice goes back to where it came from, so
//   that the table is added to in place; rows become vectorised kernels.
//
// Cost: linear in ops. The loop is sequential, so that sums are in order.
//===----------------------------------------------------------------------===//

#include "dialects/Indexing/Indexing.h"
#include "lib/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_CONVERTINDEXINGTOLOOPS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;
using namespace mlir::hyperparallel::indexing;

namespace mlir::hyperparallel {

namespace {
/// Row `number` of a tensor, without the dimension of rows.
struct Row {
  Row(OpBuilder &b, RankedTensorType table, Value number)
      : type(RankedTensorType::get(table.getShape().drop_front(),
                                   table.getElementType())),
        offsets(table.getRank(), b.getIndexAttr(0)),
        strides(table.getRank(), b.getIndexAttr(1)) {
    offsets[0] = number;
    sizes.push_back(b.getIndexAttr(1));
    for (int64_t size : type.getShape())
      sizes.push_back(b.getIndexAttr(size));
  }
  Value read(OpBuilder &b, Location loc, Value from) const {
    return tensor::ExtractSliceOp::create(b, loc, type, from, offsets, sizes,
                                          strides);
  }
  Value write(OpBuilder &b, Location loc, Value row, Value into) const {
    return tensor::InsertSliceOp::create(b, loc, row, into, offsets, sizes,
                                         strides);
  }

  RankedTensorType type;
  SmallVector<OpFoldResult> offsets, sizes, strides;
};
} // namespace

/// sum + term, written where `sum` is.
static Value addRows(OpBuilder &b, Location loc, Value term, Value sum) {
  auto type = cast<RankedTensorType>(sum.getType());
  AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> parallel(type.getRank(),
                                            utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, loc, type, term, sum, {identity, identity}, parallel,
             [](OpBuilder &body, Location at, ValueRange elements) {
               bool isFloat = isa<FloatType>(elements[0].getType());
               Value total = isFloat ? Value(arith::AddFOp::create(
                                           body, at, elements[1], elements[0]))
                                     : Value(arith::AddIOp::create(
                                           body, at, elements[1], elements[0]));
               linalg::YieldOp::create(body, at, total);
             })
      .getResult(0);
}

static void writeLoop(ScatterAddOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto updates = cast<RankedTensorType>(op.getUpdates().getType());
  auto table = cast<RankedTensorType>(op.getInit().getType());
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value count = arith::ConstantIndexOp::create(b, loc, updates.getDimSize(0));
  Value rows = arith::ConstantIndexOp::create(b, loc, table.getDimSize(0));
  auto loop = scf::ForOp::create(
      b, loc, zero, count, one, op.getInit(),
      [&](OpBuilder &b, Location loc, Value n, ValueRange carried) {
        Value index = tensor::ExtractOp::create(b, loc, op.getIndices(), n);
        if (!index.getType().isIndex())
          index = arith::IndexCastOp::create(b, loc, b.getIndexType(), index);
        // Negative indices are large unsigned ones.
        Value isInside = arith::CmpIOp::create(
            b, loc, arith::CmpIPredicate::ult, index, rows);
        auto branch = scf::IfOp::create(
            b, loc, isInside,
            [&](OpBuilder &b, Location loc) {
              Row from(b, updates, n), to(b, table, index);
              Value update = from.read(b, loc, op.getUpdates());
              Value sum = addRows(b, loc, update, to.read(b, loc, carried[0]));
              scf::YieldOp::create(b, loc, to.write(b, loc, sum, carried[0]));
            },
            [&](OpBuilder &b, Location loc) {
              scf::YieldOp::create(b, loc, carried[0]);
            });
        scf::YieldOp::create(b, loc, branch.getResult(0));
      });
  op.replaceAllUsesWith(loop.getResult(0));
  op.erase();
}

namespace {
struct ConvertIndexingToLoopsPass
    : impl::ConvertIndexingToLoopsBase<ConvertIndexingToLoopsPass> {
  void runOnOperation() override {
    SmallVector<ScatterAddOp> scatters;
    getOperation().walk([&](ScatterAddOp op) { scatters.push_back(op); });
    llvm::for_each(scatters, writeLoop);
    numLoops += scatters.size();
  }
};
} // namespace

} // namespace mlir::hyperparallel
