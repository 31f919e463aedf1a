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
//      A number that is known when the program runs is written to a buffer.
//   2. Attention, places of greatest elements, and reads and sums at computed
//      places, are operators (CallAttention.cpp, CallArgmax.cpp,
//      SplitGathers.cpp, ScatterLoops.cpp).
//   3. What moves elements and computes nothing, between buffers of which one
//      has gaps or is visited in another order, is a copy by an operator; of
//      whole buffers, a permutation.
//   4. Other ops get copies without gaps, in the order of their loops: Ascend's
//      compiler fails at transposes among other ops. The loops take the order
//      that needs no copy, if there is one.
//
// Cost: linear in ops.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToHFusion/WholeBuffers.h"
#include "lib/Conversion/LinalgToKernels/KernelGrouping.h"
#include "lib/Conversion/LinalgToRuntime/ContractionLayout.h"
#include "lib/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_CALLLIBRARY
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

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
    Value buffer = allocateBuffer(builder, constant.getLoc(), type.getShape(),
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
// Numbers
//===----------------------------------------------------------------------===//

/// The number's bits as a word, written where the number is made.
static Value toBits(OpBuilder &builder, Location loc, Value number) {
  Type type = number.getType(), word = builder.getI64Type();
  if (type.isIndex())
    return arith::IndexCastOp::create(builder, loc, word, number);
  if (isa<FloatType>(type)) {
    type = builder.getIntegerType(type.getIntOrFloatBitWidth());
    number = arith::BitcastOp::create(builder, loc, type, number);
  }
  if (type == word)
    return number;
  return type.isInteger(1)
             ? Value(arith::ExtUIOp::create(builder, loc, word, number))
             : Value(arith::ExtSIOp::create(builder, loc, word, number));
}

/// A number that the host knows when the program runs, such as the device's
/// place in the mesh, goes to a buffer, which ops that use it read.
static void placeNumbers(func::FuncOp function, LibraryCalls &library) {
  SmallVector<linalg::GenericOp> ops;
  function.walk([&](linalg::GenericOp op) {
    if (!isRuntimeContraction(op))
      ops.push_back(op);
  });
  DenseMap<Value, Value> placed;
  for (linalg::GenericOp op : ops) {
    llvm::SetVector<Value> numbers;
    for (Operation &inner : *op.getBlock())
      for (Value operand : inner.getOperands())
        if (operand.getType().isIntOrIndexOrFloat() &&
            !op.getRegion().isAncestor(operand.getParentRegion()) &&
            !matchPattern(operand, m_Constant()))
          numbers.insert(operand);
    for (Value number : numbers) {
      Value &buffer = placed[number];
      Location loc = op.getLoc();
      bool isIndex = number.getType().isIndex();
      if (!buffer) {
        OpBuilder builder(op);
        builder.setInsertionPointAfterValue(number);
        buffer =
            allocateBuffer(builder, loc, {},
                           isIndex ? builder.getI64Type() : number.getType());
        library.call(builder, loc, "fill", packedView(buffer, {1}),
                     toBits(builder, loc, number));
      }
      Value element = addInput(
          op, buffer, AffineMap::get(op.getNumLoops(), 0, op.getContext()));
      OpBuilder inside = OpBuilder::atBlockBegin(op.getBlock());
      if (isIndex)
        element = arith::IndexCastOp::create(inside, loc, inside.getIndexType(),
                                             element);
      number.replaceUsesWithIf(element, [&](OpOperand &use) {
        return use.getOwner()->getBlock() == op.getBlock() &&
               use.getOwner() != element.getDefiningOp();
      });
    }
  }
}

//===----------------------------------------------------------------------===//
// Gaps
//===----------------------------------------------------------------------===//

/// Adds to the loops' strides what an index moves by, where it is a sum of
/// multiples of loops' numbers.
static LogicalResult addStrides(AffineExpr index, int64_t stride,
                                MutableArrayRef<int64_t> strides) {
  if (auto dim = dyn_cast<AffineDimExpr>(index)) {
    strides[dim.getPosition()] += stride;
    return success();
  }
  if (auto constant = dyn_cast<AffineConstantExpr>(index))
    return success(constant.getValue() == 0);
  auto binary = dyn_cast<AffineBinaryOpExpr>(index);
  if (!binary)
    return failure();
  if (binary.getKind() == AffineExprKind::Add)
    return success(succeeded(addStrides(binary.getLHS(), stride, strides)) &&
                   succeeded(addStrides(binary.getRHS(), stride, strides)));
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (binary.getKind() != AffineExprKind::Mul || !factor ||
      factor.getValue() < 0)
    return failure();
  return addStrides(binary.getLHS(), stride * factor.getValue(), strides);
}

/// How an operator sees an operand of an op that moves elements: the loops are
/// its dimensions. Fails where strides do not say it.
static FailureOr<LibraryView> viewByStrides(LinalgOp op, OpOperand &operand) {
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (!type || !type.hasStaticShape() ||
      failed(type.getStridesAndOffset(strides, offset)) ||
      llvm::any_of(strides, ShapedType::isDynamic))
    return failure();
  LibraryView view{operand.get(), op.getStaticLoopRanges(),
                   SmallVector<int64_t>(op.getNumLoops(), 0)};
  AffineMap map = op.getMatchingIndexingMap(&operand);
  for (auto [expr, stride] : llvm::zip_equal(map.getResults(), strides))
    if (failed(addStrides(expr, stride, view.strides)))
      return failure();
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

/// True if every dimension is visited by a loop of its own, and the loops are
/// in order.
static bool isInOrder(AffineMap map) {
  int64_t before = -1;
  for (AffineExpr expr : map.getResults()) {
    if (isa<AffineConstantExpr>(expr))
      continue;
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || dim.getPosition() <= before)
      return false;
    before = dim.getPosition();
  }
  return true;
}

/// True if every place is visited at most once.
static bool isOneToOne(AffineMap map) {
  llvm::SmallBitVector seen(map.getNumDims());
  for (AffineExpr expr : map.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (isa<AffineConstantExpr>(expr))
      continue;
    if (!dim || seen.test(dim.getPosition()))
      return false;
    seen.set(dim.getPosition());
  }
  return true;
}

/// Gives the loops the order in which an operand that all of them visit has
/// them in memory, if that is the order of all others, too.
static void orderLoops(linalg::GenericOp op) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (llvm::all_of(maps, isInOrder))
    return;
  for (AffineMap map : maps) {
    if (!map.isPermutation())
      continue;
    SmallVector<unsigned> order;
    for (AffineExpr loop : map.getResults())
      order.push_back(cast<AffineDimExpr>(loop).getPosition());
    AffineMap moved = inversePermutation(
        AffineMap::getPermutationMap(order, op.getContext()));
    if (!llvm::all_of(maps, [&](AffineMap other) {
          return isInOrder(other.compose(moved));
        }))
      continue;
    IRRewriter rewriter(op);
    (void)linalg::interchangeGenericOp(rewriter, op, order);
    return;
  }
}

/// Gives an operand that is visited in another order, or by sums of loops, a
/// buffer in the order of the loops. What strides cannot say stays, and is
/// reported later.
static void orderOperand(linalg::GenericOp op, OpOperand &operand,
                         LibraryCalls &library) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  if (isInOrder(map) || (op.isDpsInit(&operand) && !isOneToOne(map)))
    return;
  FailureOr<LibraryView> byLoops = viewByStrides(op, operand);
  if (failed(byLoops))
    return;
  LibraryView view{operand.get(), {}, {}};
  SmallVector<AffineExpr> inOrder;
  for (unsigned loop = 0; loop < map.getNumDims(); ++loop) {
    if (!map.isFunctionOfDim(loop))
      continue;
    inOrder.push_back(getAffineDimExpr(loop, op.getContext()));
    view.sizes.push_back(byLoops->sizes[loop]);
    view.strides.push_back(byLoops->strides[loop]);
  }
  OpBuilder builder(op);
  Value ordered = allocateBuffer(
      builder, op.getLoc(), view.sizes,
      cast<MemRefType>(operand.get().getType()).getElementType());
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

/// Where each dimension of the target is in the source, if all that an op does
/// is to permute the dimensions of a whole buffer.
static std::optional<SmallVector<int64_t>>
getPermutation(LinalgOp op, OpOperand &source, OpOperand &target) {
  AffineMap from = op.getMatchingIndexingMap(&source);
  AffineMap to = op.getMatchingIndexingMap(&target);
  if (!from.isPermutation() || !to.isPermutation() || hasGaps(source.get()) ||
      hasGaps(target.get()))
    return std::nullopt;
  SmallVector<int64_t> permutation;
  for (AffineExpr loop : to.getResults())
    permutation.push_back(*from.getResultPosition(loop));
  return permutation;
}

/// True if a library did what the op does.
static bool moveByLibrary(LinalgOp op, LibraryCalls &library) {
  OpOperand *source = getMoved(op);
  bool isOrdered = llvm::all_of(op.getIndexingMapsArray(), isInOrder);
  if (!source || (isOrdered && llvm::none_of(op->getOperands(), hasGaps)))
    return false;
  FailureOr<LibraryView> from = viewByStrides(op, *source);
  OpOperand &target = op.getDpsInitsMutable()[0];
  FailureOr<LibraryView> to = viewByStrides(op, target);
  if (failed(from) || failed(to) ||
      !isOneToOne(op.getMatchingIndexingMap(&target)))
    return false;
  OpBuilder builder(op);
  if (auto permutation = getPermutation(op, *source, target))
    library.call(builder, op.getLoc(), "permute",
                 {viewOf(source->get()), viewOf(target.get())}, {},
                 *permutation);
  else
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
    Value packed = allocateBuffer(builder, op.getLoc(), type.getShape(),
                                  type.getElementType());
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
    if (failed(callAttention(function, library)))
      return failure();
    callScatters(function, library);
    callArgmax(function, library);
    placeNumbers(function, library);
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
      // Windows are sums of loops, which operands are ordered by.
      if (!isa<linalg::GenericOp>(op) &&
          !llvm::all_of(op.getIndexingMapsArray(), isInOrder)) {
        IRRewriter rewriter(op);
        if (auto general = linalg::generalizeNamedOp(rewriter, op);
            succeeded(general))
          op = *general;
      }
      if (auto generic = dyn_cast<linalg::GenericOp>(op.getOperation())) {
        orderLoops(generic);
        for (OpOperand &operand : generic->getOpOperands())
          orderOperand(generic, operand, library);
      }
      if (failed(closeGaps(op, library)))
        return failure();
    }
    return success();
  }

  void runOnOperation() override {
    if (failed(verifyOnBuffers(getOperation())))
      return signalPassFailure();
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
