//===- SplitGathers.cpp - Reads at computed places, by an operator --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An op whose body loads from a buffer, at an index that it computes, is cut in
// three: the index, as an op of its own that keeps the assertions; the rows
// that are meant, gathered by an operator; what is done with them. Loops that
// only run along the end of the buffer are its rows.
//
// Cost: linear in ops.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToHFusion/WholeBuffers.h"
#include "lib/Conversion/LinalgToRuntime/ContractionLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

namespace {
/// How a load in a body is a gather of rows.
struct Gather {
  memref::LoadOp load;
  /// Loops along the end of the buffer, and all others.
  SmallVector<unsigned> along, domain;
  size_t numLeading = 0; ///< indices that say which row
  int64_t rows = 1, length = 1;
};
} // namespace

static Gather describe(LinalgOp op, memref::LoadOp load) {
  Gather gather{load, {}, {}, load.getIndices().size(), 1, 1};
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  auto type = load.getMemRefType();
  while (gather.numLeading > 0) {
    auto index = load.getIndices()[gather.numLeading - 1]
                     .getDefiningOp<linalg::IndexOp>();
    if (!index ||
        type.getDimSize(gather.numLeading - 1) != extents[index.getDim()] ||
        llvm::is_contained(gather.along, index.getDim()))
      break;
    gather.along.insert(gather.along.begin(), index.getDim());
    --gather.numLeading;
  }
  for (unsigned loop = 0; loop < extents.size(); ++loop)
    if (!llvm::is_contained(gather.along, loop))
      gather.domain.push_back(loop);
  for (auto [position, size] : llvm::enumerate(type.getShape()))
    (position < gather.numLeading ? gather.rows : gather.length) *= size;
  return gather;
}

/// Ops of the body that the values need, in order.
static SetVector<Operation *> sliceOf(LinalgOp op, ArrayRef<Value> values) {
  SetVector<Operation *> slice;
  SmallVector<Value> pending = llvm::to_vector(values);
  while (!pending.empty()) {
    Operation *def = pending.pop_back_val().getDefiningOp();
    if (!def || def->getBlock() != op.getBlock() || !slice.insert(def))
      continue;
    llvm::append_range(pending, def->getOperands());
  }
  SetVector<Operation *> ordered;
  for (Operation &inner : *op.getBlock())
    if (slice.contains(&inner))
      ordered.insert(&inner);
  return ordered;
}

/// Writes the op that computes the number of the row for each place of the
/// domain, and returns the buffer of the numbers.
static FailureOr<Value> writeRowNumbers(OpBuilder &builder, LinalgOp op,
                                        Gather gather) {
  Location loc = op.getLoc();
  MLIRContext *context = op.getContext();
  SmallVector<int64_t> extents = op.getStaticLoopRanges(), shape;
  // Loops of the domain are renumbered.
  SmallVector<AffineExpr> renumbered(extents.size());
  for (auto [number, loop] : llvm::enumerate(gather.domain)) {
    renumbered[loop] = getAffineDimExpr(number, context);
    shape.push_back(extents[loop]);
  }
  SmallVector<Value> wanted(gather.load.getIndices().take_front(
      static_cast<unsigned>(gather.numLeading)));
  SmallVector<cf::AssertOp> assertions;
  for (auto assertion : op.getBlock()->getOps<cf::AssertOp>())
    assertions.push_back(assertion);
  for (cf::AssertOp assertion : assertions)
    wanted.push_back(assertion.getArg());
  SetVector<Operation *> slice = sliceOf(op, wanted);

  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  SmallVector<BlockArgument> arguments;
  for (OpOperand *input : op.getDpsInputOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(input);
    bool isUsed = llvm::any_of(argument.getUsers(), [&](Operation *user) {
      return slice.contains(user);
    });
    isUsed |= llvm::is_contained(wanted, argument);
    if (!isUsed)
      continue;
    AffineMap map = op.getMatchingIndexingMap(input);
    for (unsigned loop : gather.along)
      if (map.isFunctionOfDim(loop))
        return gather.load.emitError("expected the index of a row that does "
                                     "not depend on the place in the row");
    maps.push_back(map.replaceDimsAndSymbols(renumbered, {}, shape.size(), 0));
    inputs.push_back(input->get());
    arguments.push_back(argument);
  }
  maps.push_back(builder.getMultiDimIdentityMap(shape.size()));
  Value numbers = allocateBuffer(builder, loc, shape, builder.getI64Type());
  SmallVector<utils::IteratorType> iterators(shape.size(),
                                             utils::IteratorType::parallel);
  ArrayRef<int64_t> sizes = gather.load.getMemRefType().getShape();
  linalg::GenericOp::create(
      builder, loc, TypeRange(), inputs, numbers, maps, iterators,
      [&](OpBuilder &inside, Location, ValueRange values) {
        IRMapping mapping;
        for (auto [argument, value] : llvm::zip(arguments, values.drop_back(1)))
          mapping.map(argument, value);
        for (Operation *inner : slice) {
          auto index = dyn_cast<linalg::IndexOp>(inner);
          if (!index) {
            inside.clone(*inner, mapping);
            continue;
          }
          auto dim =
              dyn_cast_or_null<AffineDimExpr>(renumbered[index.getDim()]);
          // What runs along a row is not asked for here.
          if (dim)
            mapping.map(index.getResult(), linalg::IndexOp::create(
                                               inside, loc, dim.getPosition()));
        }
        for (cf::AssertOp assertion : assertions)
          inside.clone(*assertion, mapping);
        Value row = arith::ConstantIndexOp::create(inside, loc, 0);
        for (size_t i = 0; i < gather.numLeading; ++i) {
          Value index = mapping.lookupOrDefault(wanted[i]);
          if (i == 0) {
            row = index;
            continue;
          }
          Value size = arith::ConstantIndexOp::create(inside, loc, sizes[i]);
          row = arith::AddIOp::create(
              inside, loc, arith::MulIOp::create(inside, loc, row, size),
              index);
        }
        Value word =
            arith::IndexCastOp::create(inside, loc, inside.getI64Type(), row);
        linalg::YieldOp::create(inside, loc, word);
      });
  for (cf::AssertOp assertion : assertions)
    assertion->erase();
  return numbers;
}

BlockArgument addInput(linalg::GenericOp &op, Value buffer, AffineMap map) {
  OpBuilder builder(op);
  SmallVector<Value> inputs = llvm::to_vector(op.getInputs());
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  maps.insert(maps.begin() + static_cast<int64_t>(inputs.size()), map);
  inputs.push_back(buffer);
  auto made = linalg::GenericOp::create(builder, op.getLoc(), TypeRange(),
                                        inputs, op.getOutputs(), maps,
                                        op.getIteratorTypesArray());
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  BlockArgument argument = op.getBlock()->insertArgument(
      static_cast<unsigned>(inputs.size() - 1), element, op.getLoc());
  made.getRegion().takeBody(op.getRegion());
  op->erase();
  op = made;
  return argument;
}

/// Gives the op what its body loaded as one more operand.
static void replaceLoad(linalg::GenericOp op, memref::LoadOp load, Value buffer,
                        AffineMap map) {
  load.replaceAllUsesWith(Value(addInput(op, buffer, map)));
  load->erase();
}

static LogicalResult splitGather(linalg::GenericOp op, memref::LoadOp load,
                                 LibraryCalls &library) {
  Gather gather = describe(op, load);
  Value table = load.getMemRef();
  MLIRContext *context = op.getContext();
  Location loc = op.getLoc();
  OpBuilder builder(op);
  if (op.getNumReductionLoops() != 0 || !load.getMemRefType().hasStaticShape())
    return load.emitError("expected a gather of static shape in an op without "
                          "reductions for a vendor's operator");
  SmallVector<AffineExpr> results;
  if (gather.numLeading == 0) {
    // No row is chosen: the buffer is an operand like others.
    for (unsigned loop : gather.along)
      results.push_back(getAffineDimExpr(loop, context));
    replaceLoad(op, load, table,
                AffineMap::get(op.getNumLoops(), 0, results, context));
    return success();
  }
  if (!isContiguous(load.getMemRefType())) {
    Value packed = allocateBuffer(builder, loc, load.getMemRefType().getShape(),
                                  load.getMemRefType().getElementType());
    library.copy(builder, loc, table, packed);
    table = packed;
  }
  FailureOr<Value> numbers = writeRowNumbers(builder, op, gather);
  if (failed(numbers))
    return failure();
  SmallVector<int64_t> extents = op.getStaticLoopRanges(), places, shape;
  for (unsigned loop : gather.domain) {
    places.push_back(extents[loop]);
    results.push_back(getAffineDimExpr(loop, context));
  }
  shape = places;
  for (unsigned loop : gather.along) {
    shape.push_back(extents[loop]);
    results.push_back(getAffineDimExpr(loop, context));
  }
  Value gathered = allocateBuffer(builder, loc, shape,
                                  load.getMemRefType().getElementType());
  SmallVector<int64_t> target = places;
  target.push_back(gather.length);
  library.call(builder, loc, "embedding",
               {packedView(table, {gather.rows, gather.length}),
                packedView(*numbers, places), packedView(gathered, target)});
  replaceLoad(op, load, gathered,
              AffineMap::get(op.getNumLoops(), 0, results, context));
  return success();
}

LogicalResult splitGathers(func::FuncOp function, LibraryCalls &library) {
  SmallVector<linalg::GenericOp> ops;
  function.walk([&](linalg::GenericOp op) {
    if (!isRuntimeContraction(op))
      ops.push_back(op);
  });
  for (linalg::GenericOp op : ops) {
    // Each split makes the op anew.
    Operation *next = op->getNextNode();
    for (auto load = op.getBlock()->getOps<memref::LoadOp>(); !load.empty();
         load = op.getBlock()->getOps<memref::LoadOp>()) {
      if (failed(splitGather(op, *load.begin(), library)))
        return failure();
      op = cast<linalg::GenericOp>(next->getPrevNode());
    }
  }
  return success();
}

} // namespace mlir::hyperparallel
