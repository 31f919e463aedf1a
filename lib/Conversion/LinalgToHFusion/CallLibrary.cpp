//===- CallLibrary.cpp - What a vendor's operators do ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contract in:  linalg, memref, scf, func and arith on buffers; static shapes.
// Contract out: linalg ops but contractions read and write contiguous buffers,
//   in the order of their loops, and load nothing in their bodies. Constants
//   that are not one number are in the device's memory.
//
//   1. A constant is uploaded to a buffer where it is read. One of a single
//      number stays, where only linalg ops read it.
//   2. An op whose body loads from a buffer, at an index that it computes, is
//      cut in three: the index, as an op of its own that keeps the assertions;
//      the rows that are meant, gathered by an operator; what is done with
//      them. Loops that only run along the end of the buffer are its rows.
//   3. What moves elements and computes nothing, between buffers of which one
//      has gaps or is visited in another order, is a copy by an operator.
//   4. Other ops get copies without gaps, in the order of their loops: Ascend's
//      compiler fails at transposes among other ops.
//
// Cost: linear in ops.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToHFusion/LibraryCalls.h"
#include "lib/Conversion/LinalgToKernels/KernelGrouping.h"
#include "lib/Conversion/LinalgToRuntime/ContractionLayout.h"
#include "lib/Conversion/Passes.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_CALLLIBRARY
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

static Value allocate(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape,
                      Type element) {
  return memref::AllocOp::create(builder, loc, MemRefType::get(shape, element),
                                 builder.getI64IntegerAttr(64));
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

static void placeConstants(func::FuncOp function, LibraryCalls &library) {
  SmallVector<memref::GetGlobalOp> constants;
  function.walk([&](memref::GetGlobalOp op) { constants.push_back(op); });
  for (memref::GetGlobalOp constant : constants) {
    auto global = SymbolTable::lookupNearestSymbolFrom<memref::GlobalOp>(
        constant, constant.getNameAttr());
    auto value = dyn_cast_or_null<DenseElementsAttr>(
        global ? global.getInitialValueAttr() : Attribute());
    bool isOneNumber = value && value.isSplat();
    auto stays = [&](OpOperand &use) {
      auto op = dyn_cast<LinalgOp>(use.getOwner());
      return isOneNumber && op && !isRuntimeContraction(op);
    };
    if (llvm::all_of(constant->getUses(), stays))
      continue;
    OpBuilder builder(constant->getBlock(), ++constant->getIterator());
    auto type = cast<MemRefType>(constant.getType());
    Value buffer = allocate(builder, constant.getLoc(), type.getShape(),
                            type.getElementType());
    library.call(builder, constant.getLoc(), "upload",
                 {packedView(constant, type.getShape()),
                  packedView(buffer, type.getShape())});
    Operation *upload = &*std::prev(builder.getInsertionPoint());
    constant.getResult().replaceUsesWithIf(buffer, [&](OpOperand &use) {
      return use.getOwner() != upload && !stays(use);
    });
  }
}

//===----------------------------------------------------------------------===//
// Gathers
//===----------------------------------------------------------------------===//

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
  Value numbers = allocate(builder, loc, shape, builder.getI64Type());
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

/// Gives the op what its body loaded as one more operand.
static linalg::GenericOp addOperand(linalg::GenericOp op, Value buffer,
                                    AffineMap map, Value replaced) {
  OpBuilder builder(op);
  SmallVector<Value> inputs = llvm::to_vector(op.getInputs());
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  maps.insert(maps.begin() + static_cast<int64_t>(inputs.size()), map);
  inputs.push_back(buffer);
  auto made = linalg::GenericOp::create(builder, op.getLoc(), TypeRange(),
                                        inputs, op.getOutputs(), maps,
                                        op.getIteratorTypesArray());
  Block *block = op.getBlock();
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  BlockArgument argument = block->insertArgument(
      static_cast<unsigned>(inputs.size() - 1), element, op.getLoc());
  replaced.replaceAllUsesWith(argument);
  replaced.getDefiningOp()->erase();
  made.getRegion().takeBody(op.getRegion());
  op->erase();
  return made;
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
    addOperand(op, table, AffineMap::get(op.getNumLoops(), 0, results, context),
               load);
    return success();
  }
  if (!isContiguous(load.getMemRefType())) {
    Value packed = allocate(builder, loc, load.getMemRefType().getShape(),
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
  Value gathered =
      allocate(builder, loc, shape, load.getMemRefType().getElementType());
  SmallVector<int64_t> target = places;
  target.push_back(gather.length);
  library.call(builder, loc, "embedding",
               {packedView(table, {gather.rows, gather.length}),
                packedView(*numbers, places), packedView(gathered, target)});
  addOperand(op, gathered,
             AffineMap::get(op.getNumLoops(), 0, results, context), load);
  return success();
}

static LogicalResult splitGathers(func::FuncOp function,
                                  LibraryCalls &library) {
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

//===----------------------------------------------------------------------===//
// Gaps
//===----------------------------------------------------------------------===//

/// How an operator sees an operand of an op that moves elements: the loops are
/// its dimensions. Fails where the loops are not.
static FailureOr<LibraryView> viewByLoops(LinalgOp op, OpOperand &operand) {
  auto type = cast<MemRefType>(operand.get().getType());
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (!type.hasStaticShape() ||
      failed(type.getStridesAndOffset(strides, offset)) ||
      llvm::any_of(strides, ShapedType::isDynamic))
    return failure();
  LibraryView view{operand.get(), op.getStaticLoopRanges(),
                   SmallVector<int64_t>(op.getNumLoops(), 0)};
  AffineMap map = op.getMatchingIndexingMap(&operand);
  for (auto [expr, stride] : llvm::zip_equal(map.getResults(), strides)) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      view.strides[dim.getPosition()] += stride;
    else if (auto constant = dyn_cast<AffineConstantExpr>(expr);
             !constant || constant.getValue() != 0)
      return failure();
  }
  return view;
}

/// The operand whose elements the op moves to its result; null if it computes.
static OpOperand *getMoved(LinalgOp op) {
  if (op.getNumDpsInits() != 1 || op.getNumReductionLoops() != 0 ||
      !llvm::hasSingleElement(*op.getBlock()))
    return nullptr;
  auto argument =
      dyn_cast<BlockArgument>(op.getBlock()->getTerminator()->getOperand(0));
  if (!argument || argument.getOwner() != op.getBlock())
    return nullptr;
  OpOperand &operand = op->getOpOperand(argument.getArgNumber());
  return op.isDpsInput(&operand) && isa<MemRefType>(operand.get().getType()) &&
                 !operand.get().getDefiningOp<memref::GetGlobalOp>()
             ? &operand
             : nullptr;
}

static bool hasGaps(Value value) {
  auto type = dyn_cast<MemRefType>(value.getType());
  return type && !isContiguous(type);
}

/// True if the loops along the dimensions are in order.
static bool isInOrder(AffineMap map) {
  int64_t before = -1;
  for (AffineExpr expr : map.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (dim && dim.getPosition() < before)
      return false;
    before = dim ? dim.getPosition() : before;
  }
  return true;
}

/// Gives an operand that is visited in another order a buffer in the order of
/// the loops. What is no permutation stays, and is reported later.
static void orderOperand(linalg::GenericOp op, OpOperand &operand,
                         LibraryCalls &library) {
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  AffineMap map = op.getMatchingIndexingMap(&operand);
  SmallVector<int64_t> strides, extents = op.getStaticLoopRanges();
  int64_t offset = 0;
  if (!type || !type.hasStaticShape() || isInOrder(map) ||
      failed(type.getStridesAndOffset(strides, offset)) ||
      llvm::any_of(strides, ShapedType::isDynamic))
    return;
  LibraryView view{operand.get(), {}, {}};
  SmallVector<AffineExpr> inOrder;
  for (unsigned loop = 0; loop < extents.size(); ++loop)
    for (auto [expr, stride] : llvm::zip_equal(map.getResults(), strides))
      if (expr == getAffineDimExpr(loop, op.getContext())) {
        inOrder.push_back(expr);
        view.sizes.push_back(extents[loop]);
        view.strides.push_back(stride);
      }
  size_t numFixed = llvm::count_if(map.getResults(), [](AffineExpr expr) {
    auto constant = dyn_cast<AffineConstantExpr>(expr);
    return constant && constant.getValue() == 0;
  });
  if (inOrder.size() + numFixed != map.getNumResults())
    return;
  OpBuilder builder(op);
  Value ordered =
      allocate(builder, op.getLoc(), view.sizes, type.getElementType());
  if (op.payloadUsesValueFromOperand(&operand))
    library.call(builder, op.getLoc(), "copy",
                 {view, packedView(ordered, view.sizes)});
  if (op.isDpsInit(&operand)) {
    builder.setInsertionPointAfter(op);
    library.call(builder, op.getLoc(), "copy",
                 {packedView(ordered, view.sizes), view});
  }
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  maps[operand.getOperandNumber()] =
      AffineMap::get(map.getNumDims(), 0, inOrder, op.getContext());
  op.setIndexingMapsAttr(builder.getAffineMapArrayAttr(maps));
  operand.set(ordered);
}

/// True if a library did what the op does.
static bool moveByLibrary(LinalgOp op, LibraryCalls &library) {
  OpOperand *source = getMoved(op);
  bool isOrdered = llvm::all_of(op.getIndexingMapsArray(), isInOrder);
  if (!source || (isOrdered && llvm::none_of(op->getOperands(), hasGaps)))
    return false;
  FailureOr<LibraryView> from = viewByLoops(op, *source);
  FailureOr<LibraryView> to = viewByLoops(op, op.getDpsInitsMutable()[0]);
  if (failed(from) || failed(to))
    return false;
  OpBuilder builder(op);
  library.call(builder, op.getLoc(), "copy", {*from, *to});
  op->erase();
  return true;
}

static LogicalResult closeGaps(LinalgOp op, LibraryCalls &library) {
  llvm::MapVector<Value, bool> written;
  for (OpOperand &operand : op->getOpOperands())
    if (hasGaps(operand.get()))
      written[operand.get()] |= op.isDpsInit(&operand);
  for (auto [buffer, isWritten] : written) {
    auto type = cast<MemRefType>(buffer.getType());
    SmallVector<int64_t> strides;
    int64_t offset = 0;
    if (!type.hasStaticShape() ||
        failed(type.getStridesAndOffset(strides, offset)) ||
        llvm::any_of(strides, ShapedType::isDynamic))
      return op.emitError("expected buffers of static shape and strides for a "
                          "vendor's operators but got ")
             << type;
    OpBuilder builder(op);
    Value packed =
        allocate(builder, op.getLoc(), type.getShape(), type.getElementType());
    bool isRead = false;
    for (OpOperand &operand : op->getOpOperands())
      isRead |=
          operand.get() == buffer && op.payloadUsesValueFromOperand(&operand);
    if (isRead)
      library.copy(builder, op.getLoc(), buffer, packed);
    op->replaceUsesOfWith(buffer, packed);
    if (!isWritten)
      continue;
    builder.setInsertionPointAfter(op);
    library.copy(builder, op.getLoc(), packed, buffer);
  }
  return success();
}

namespace {
struct CallLibraryPass : impl::CallLibraryBase<CallLibraryPass> {
  LogicalResult runOnFunction(func::FuncOp function, LibraryCalls &library) {
    function.walk([](memref::CopyOp copy) {
      OpBuilder builder(copy);
      linalg::CopyOp::create(builder, copy.getLoc(), copy.getSource(),
                             copy.getTarget());
      copy->erase();
    });
    placeConstants(function, library);
    if (failed(splitGathers(function, library)))
      return failure();
    SmallVector<LinalgOp> ops;
    function.walk([&](LinalgOp op) {
      if (!isRuntimeContraction(op))
        ops.push_back(op);
    });
    for (LinalgOp op : ops) {
      if (moveByLibrary(op, library))
        continue;
      if (auto generic = dyn_cast<linalg::GenericOp>(op.getOperation()))
        for (OpOperand &operand : generic->getOpOperands())
          orderOperand(generic, operand, library);
      if (failed(closeGaps(op, library)))
        return failure();
    }
    return success();
  }

  void runOnOperation() override {
    LibraryCalls library(getOperation());
    SmallVector<func::FuncOp> functions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        functions.push_back(function);
    for (func::FuncOp function : functions)
      if (failed(runOnFunction(function, library)))
        return signalPassFailure();
  }
};
} // namespace

} // namespace mlir::hyperparallel
