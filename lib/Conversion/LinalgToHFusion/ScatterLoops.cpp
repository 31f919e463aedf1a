//===- ScatterLoops.cpp - Sums at computed places, by an operator ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What scatter_add became,
//
//   for n: i = at[n]; if 0 <= i < rows: table[i, ...] += updates[n, ...]
//
// is one call of the operator `index_add`. The operator adds all updates, so
// two ops before it give those that are dropped the row 0, and zeros. In which
// order it adds updates of one row is the operator's.
//
// Other loops stay as they are.
//
// Cost: linear in ops.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToHFusion/WholeBuffers.h"
#include "lib/Conversion/LinalgToKernels/KernelGrouping.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace mlir::hyperparallel {

namespace {
struct Scatter {
  scf::ForOp loop;
  Value table, indices, updates;
};
} // namespace

/// The buffer of which the view is row `number`; null if it is none.
static Value getTable(Value view, Value number) {
  auto row = view.getDefiningOp<memref::SubViewOp>();
  if (!row || row.getOffsets().size() != 1 || row.getOffsets()[0] != number ||
      !ShapedType::isDynamic(row.getStaticOffsets()[0]) ||
      !row.getSourceType().hasStaticShape())
    return {};
  for (auto [dim, size] : llvm::enumerate(row.getSourceType().getShape()))
    if (row.getStaticStrides()[dim] != 1 ||
        row.getStaticSizes()[dim] != (dim == 0 ? 1 : size) ||
        (dim != 0 && row.getStaticOffsets()[dim] != 0))
      return {};
  return row.getSource();
}

/// True if the op is `out += in`, element by element.
static bool isSum(linalg::GenericOp op) {
  if (op.getNumDpsInputs() != 1 || op.getNumDpsInits() != 1 ||
      op.getNumReductionLoops() != 0 ||
      !llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isIdentity(); }))
    return false;
  Block *block = op.getBlock();
  Operation *sum = block->getTerminator()->getOperand(0).getDefiningOp();
  return sum && isa<arith::AddFOp, arith::AddIOp>(sum) &&
         &block->front() == sum &&
         sum->getNextNode() == block->getTerminator() &&
         llvm::is_contained(sum->getOperands(), block->getArgument(0)) &&
         llvm::is_contained(sum->getOperands(), block->getArgument(1));
}

static std::optional<Scatter> readLoop(scf::ForOp loop) {
  if (loop.getNumResults() != 0 ||
      !isConstantIntValue(loop.getLowerBound(), 0) ||
      !isConstantIntValue(loop.getStep(), 1))
    return std::nullopt;
  memref::LoadOp load;
  linalg::GenericOp sum;
  scf::IfOp branch;
  WalkResult walked =
      loop.getBody()->walk<WalkOrder::PreOrder>([&](Operation *op) {
        auto keep = [&](auto &place, auto found) {
          if (!found || place)
            return false;
          place = found;
          return true;
        };
        if (keep(sum, dyn_cast<linalg::GenericOp>(op)))
          return WalkResult::skip();
        bool isKnown = keep(load, dyn_cast<memref::LoadOp>(op)) ||
                       keep(branch, dyn_cast<scf::IfOp>(op)) ||
                       isa<scf::YieldOp>(op) ||
                       (isPure(op) && op->getNumRegions() == 0);
        return isKnown ? WalkResult::advance() : WalkResult::interrupt();
      });
  if (walked.wasInterrupted() || !load || !sum || !branch || !isSum(sum) ||
      sum->getParentOp() != branch || !branch.getElseRegion().empty() ||
      load.getIndices().size() != 1 ||
      load.getIndices()[0] != loop.getInductionVar())
    return std::nullopt;
  auto inside = branch.getCondition().getDefiningOp<arith::CmpIOp>();
  if (!inside || inside.getPredicate() != arith::CmpIPredicate::ult)
    return std::nullopt;
  Value number = inside.getLhs();
  auto cast = number.getDefiningOp<arith::IndexCastOp>();
  if ((cast ? cast.getIn() : number) != load.getResult())
    return std::nullopt;
  Scatter found{loop, getTable(sum.getDpsInits()[0], number), load.getMemRef(),
                getTable(sum.getDpsInputs()[0], loop.getInductionVar())};
  if (!found.table || !found.updates)
    return std::nullopt;
  auto sizeOf = [](Value buffer) {
    return mlir::cast<MemRefType>(buffer.getType()).getDimSize(0);
  };
  int64_t count = sizeOf(found.updates);
  if (!isConstantIntValue(inside.getRhs(), sizeOf(found.table)) ||
      !isConstantIntValue(loop.getUpperBound(), count) ||
      sizeOf(found.indices) != count)
    return std::nullopt;
  for (Value read : {found.indices, found.updates})
    if (getBufferRoot(read) == getBufferRoot(found.table))
      return std::nullopt;
  for (Value buffer : {found.table, found.indices, found.updates})
    if (loop->isAncestor(buffer.getParentBlock()->getParentOp()))
      return std::nullopt;
  return found;
}

/// A new buffer with the values where the index names a row, and zeros where
/// it does not.
static Value keepInside(OpBuilder &builder, Location loc, Value values,
                        Value indices, Type element, int64_t rows) {
  auto type = cast<MemRefType>(values.getType());
  auto rank = static_cast<unsigned>(type.getRank());
  Value kept = allocateBuffer(builder, loc, type.getShape(), element);
  AffineMap identity = builder.getMultiDimIdentityMap(rank);
  AffineMap row = AffineMap::get(rank, 0, builder.getAffineDimExpr(0));
  SmallVector<utils::IteratorType> parallel(rank,
                                            utils::IteratorType::parallel);
  linalg::GenericOp::create(
      builder, loc, TypeRange(), ValueRange{values, indices}, kept,
      {identity, row, identity}, parallel,
      [&](OpBuilder &body, Location at, ValueRange elements) {
        Type word = elements[1].getType();
        auto constant = [&](Type kind, int64_t number) -> Value {
          TypedAttr value = builder.getZeroAttr(kind);
          if (number != 0)
            value = builder.getIntegerAttr(kind, number);
          return arith::ConstantOp::create(body, at, value);
        };
        Value value = elements[0];
        if (value.getType() != element)
          value = arith::IndexCastOp::create(body, at, element, value);
        Value zero = constant(element, 0);
        for (auto [predicate, bound] :
             {std::pair(arith::CmpIPredicate::slt, rows),
              std::pair(arith::CmpIPredicate::sge, int64_t(0))}) {
          Value isInside = arith::CmpIOp::create(
              body, at, predicate, elements[1], constant(word, bound));
          value = arith::SelectOp::create(body, at, isInside, value, zero);
        }
        linalg::YieldOp::create(body, at, value);
      });
  return kept;
}

void callScatters(func::FuncOp function, LibraryCalls &library) {
  SmallVector<Scatter> scatters;
  function.walk([&](scf::ForOp loop) {
    if (std::optional<Scatter> scatter = readLoop(loop))
      scatters.push_back(*scatter);
  });
  for (const Scatter &scatter : scatters) {
    scf::ForOp loop = scatter.loop;
    OpBuilder builder(loop);
    Location loc = loop.getLoc();
    int64_t rows = cast<MemRefType>(scatter.table.getType()).getDimSize(0);
    Type element = cast<MemRefType>(scatter.table.getType()).getElementType();
    Type word = cast<MemRefType>(scatter.indices.getType()).getElementType();
    Value numbers =
        keepInside(builder, loc, scatter.indices, scatter.indices,
                   word.isIndex() ? builder.getI64Type() : word, rows);
    Value updates = keepInside(builder, loc, scatter.updates, scatter.indices,
                               element, rows);
    library.call(builder, loc, "index_add",
                 {viewOf(scatter.table), viewOf(numbers), viewOf(updates)});
    loop->erase();
  }
}

} // namespace mlir::hyperparallel
