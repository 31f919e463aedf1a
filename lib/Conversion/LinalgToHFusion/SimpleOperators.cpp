//===- SimpleOperators.cpp - Groups that one operator does ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operands are contiguous, with loops in their order: hp-call-library sees to
// it. An operand that some loops do not run along has size 1 there, which
// operators repeat.
//
// Booleans and f64 are left to fragments, or refused there; so are sums in half
// precision, which fragments keep in f32.
//
// Cost: constant for a group.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToHFusion/SimpleOperators.h"
#include "lib/Conversion/LinalgToKernels/LoopNest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using linalg::GenericOp;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

/// The most dimensions of an operator's tensors.
static constexpr unsigned kMostLoops = 8;

/// The operator of a function of elements; empty if there is none.
static StringRef findElementwise(StringRef op) {
  return llvm::StringSwitch<StringRef>(op)
      .Cases({"arith.addf", "arith.addi"}, "add")
      .Cases({"arith.subf", "arith.subi"}, "sub")
      .Cases({"arith.mulf", "arith.muli"}, "mul")
      .Case("arith.divf", "div")
      .Cases({"arith.maximumf", "arith.maxsi"}, "maximum")
      .Cases({"arith.minimumf", "arith.minsi"}, "minimum")
      .Case("arith.negf", "neg")
      .Case("math.absf", "abs")
      .Case("math.ceil", "ceil")
      .Case("math.cos", "cos")
      .Case("math.erf", "erf")
      .Case("math.exp", "exp")
      .Case("math.floor", "floor")
      .Case("math.log", "log")
      .Case("math.rsqrt", "rsqrt")
      .Case("math.sin", "sin")
      .Case("math.sqrt", "sqrt")
      .Case("math.tanh", "tanh")
      .Cases({"arith.extf", "arith.truncf", "arith.sitofp", "arith.fptosi",
              "arith.extsi", "arith.trunci", "arith.uitofp", "arith.extui"},
             "cast")
      .Default("");
}

static StringRef findReduction(StringRef combiner) {
  return llvm::StringSwitch<StringRef>(combiner)
      .Cases({"arith.addf", "arith.addi"}, "sum")
      .Cases({"arith.maximumf", "arith.maxsi"}, "max")
      .Cases({"arith.minimumf", "arith.minsi"}, "min")
      .Default("");
}

/// Elements that operators compute with.
static bool isNumber(Type type) {
  return type.isF32() || type.isF16() || type.isBF16() || type.isInteger(8) ||
         type.isInteger(16) || type.isInteger(32) || type.isInteger(64);
}

/// The loops' extents; 1 for all where there are none.
static SmallVector<int64_t> getExtents(LinalgOp op) {
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  return extents.empty() ? SmallVector<int64_t>{1} : extents;
}

std::optional<LibraryView> viewByLoops(LinalgOp op, OpOperand &operand) {
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  if (!type || !isContiguous(type) ||
      operand.get().getDefiningOp<memref::GetGlobalOp>())
    return std::nullopt;
  SmallVector<int64_t> extents = getExtents(op), sizes(extents.size(), 1);
  int64_t before = -1;
  for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults()) {
    if (isa<AffineConstantExpr>(expr))
      continue;
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || dim.getPosition() <= before)
      return std::nullopt;
    before = dim.getPosition();
    sizes[before] = extents[before];
  }
  int64_t elements = 1;
  for (int64_t size : sizes)
    elements *= size;
  if (elements != type.getNumElements())
    return std::nullopt;
  return packedView(operand.get(), sizes);
}

linalg::FillOp findFill(LinalgOp op, Value init) {
  linalg::FillOp fill;
  for (Operation *user : init.getUsers())
    if (auto found = dyn_cast<linalg::FillOp>(user);
        found && found->getBlock() == op->getBlock() &&
        found->isBeforeInBlock(op) && (!fill || fill->isBeforeInBlock(found)))
      fill = found;
  if (!fill || getBufferRoot(init) != init ||
      llvm::any_of(init.getUsers(), [&](Operation *user) {
        Operation *inBlock = op->getBlock()->findAncestorOpInBlock(*user);
        return inBlock && inBlock != fill && inBlock != op &&
               inBlock->isBeforeInBlock(op) &&
               (fill->isBeforeInBlock(inBlock) ||
                isa<ViewLikeOpInterface>(user));
      }))
    return {};
  return fill;
}

/// A number as a word: the bits of a double, or an integer.
static std::optional<int64_t> toWord(Attribute number) {
  if (auto value = dyn_cast_or_null<FloatAttr>(number))
    return llvm::bit_cast<int64_t>(value.getValueAsDouble());
  if (auto value = dyn_cast_or_null<IntegerAttr>(number))
    return value.getValue().getBitWidth() <= 64
               ? std::optional<int64_t>(value.getInt())
               : std::nullopt;
  return std::nullopt;
}

/// The constant that a body's scalar is, also in a buffer of one number.
static Attribute getConstant(LinalgOp op, Value value) {
  Attribute number;
  if (matchPattern(value, m_Constant(&number)))
    return number;
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != op.getBlock())
    return {};
  auto get = op->getOperand(argument.getArgNumber())
                 .getDefiningOp<memref::GetGlobalOp>();
  auto global = get ? SymbolTable::lookupNearestSymbolFrom<memref::GlobalOp>(
                          get, get.getNameAttr())
                    : memref::GlobalOp();
  auto content = dyn_cast_or_null<DenseElementsAttr>(
      global ? global.getInitialValueAttr() : Attribute());
  return content && content.isSplat() ? content.getSplatValue<Attribute>()
                                      : Attribute();
}

/// The one op of a body that is no constant, if its result is what is written.
static Operation *getOnlyOp(LinalgOp op) {
  Operation *only = nullptr;
  for (Operation &inner : op.getBlock()->without_terminator()) {
    if (inner.hasTrait<OpTrait::ConstantLike>())
      continue;
    if (only)
      return nullptr;
    only = &inner;
  }
  return only && only->getNumResults() == 1 &&
                 op.getBlock()->getTerminator()->getOperand(0) ==
                     only->getResult(0)
             ? only
             : nullptr;
}

/// A fill of one buffer; its value is told as the bits of its type.
static std::optional<SimpleOperator> matchFill(linalg::FillOp fill) {
  Attribute number;
  auto type = cast<MemRefType>(fill.getOutputs()[0].getType());
  if (!isContiguous(type) || !isNumber(type.getElementType()) ||
      !matchPattern(fill.getInputs()[0], m_Constant(&number)))
    return std::nullopt;
  auto value = dyn_cast<FloatAttr>(number);
  int64_t bits = value ? value.getValue().bitcastToAPInt().getSExtValue()
                       : cast<IntegerAttr>(number).getInt();
  return SimpleOperator{
      "fill",
      {packedView(fill.getOutputs()[0], {type.getNumElements()})},
      {},
      bits};
}

/// A view of another buffer, or of the same elements.
static bool mayWrite(const LibraryView &target, ArrayRef<LibraryView> sources) {
  return llvm::all_of(sources, [&](const LibraryView &source) {
    return !mayAlias(getBufferRoot(source.buffer),
                     getBufferRoot(target.buffer)) ||
           (source.buffer == target.buffer && source.sizes == target.sizes);
  });
}

static std::optional<SimpleOperator> matchElementwise(GenericOp op) {
  Operation *only = getOnlyOp(op);
  OpOperand &init = op.getDpsInitsMutable()[0];
  auto target = viewByLoops(op, init);
  if (!only || !target || target->sizes != getExtents(op))
    return std::nullopt;
  SimpleOperator simple{
      findElementwise(only->getName().getStringRef()), {}, {}, {}};
  bool isCast = simple.name == "cast";
  Type from = only->getOperand(0).getType(), to = only->getResult(0).getType();
  bool isUnsigned = isa<arith::UIToFPOp, arith::ExtUIOp>(only);
  if (simple.name.empty() || !isNumber(to) ||
      (isUnsigned ? !from.isInteger(1) : !isNumber(from)))
    return std::nullopt;
  SmallVector<Value> operands = only->getOperands();
  bool isCommutative = only->hasTrait<OpTrait::IsCommutative>();
  if (operands.size() == 2 && isCommutative && getConstant(op, operands[0]))
    std::swap(operands[0], operands[1]);
  for (auto [number, operand] : llvm::enumerate(operands)) {
    std::optional<int64_t> word = toWord(getConstant(op, operand));
    auto argument = dyn_cast<BlockArgument>(operand);
    if (word && number == 1 && !isCast) {
      simple.numbers.push_back(*word);
      continue;
    }
    if (word || !argument || argument.getOwner() != op.getBlock())
      return std::nullopt;
    auto view = viewByLoops(op, op->getOpOperand(argument.getArgNumber()));
    if (!view)
      return std::nullopt;
    simple.views.push_back(*view);
  }
  if (!simple.numbers.empty()) {
    simple.name = llvm::StringSwitch<StringRef>(simple.name)
                      .Case("add", "add_scalar")
                      .Case("sub", "sub_scalar")
                      .Case("mul", "mul_scalar")
                      .Case("div", "div_scalar")
                      .Default("");
    if (simple.name.empty())
      return std::nullopt;
  }
  // One operand is an element for each iteration, or the result would not be
  // what the operator makes of their shapes.
  bool isWhole = llvm::any_of(simple.views, [&](const LibraryView &view) {
    return view.sizes == target->sizes;
  });
  if (!isWhole || !mayWrite(*target, simple.views) ||
      (isCast && mayAlias(getBufferRoot(simple.views[0].buffer),
                          getBufferRoot(target->buffer))))
    return std::nullopt;
  simple.views.push_back(*target);
  return simple;
}

static std::optional<SimpleOperator> matchReduction(GenericOp op,
                                                    linalg::FillOp fill) {
  OpOperand &init = op.getDpsInitsMutable()[0];
  Operation *combiner = getCombiner(op, 0);
  Attribute start;
  if (!combiner || combiner != getOnlyOp(op) || op.getNumDpsInputs() != 1 ||
      fill.getOutputs()[0] != init.get() ||
      !matchPattern(fill.getInputs()[0], m_Constant(&start)) ||
      start != *arith::getNeutralElement(combiner))
    return std::nullopt;
  SimpleOperator simple{
      findReduction(combiner->getName().getStringRef()), {}, {}, {}};
  Type element = combiner->getResult(0).getType();
  auto source = viewByLoops(op, op->getOpOperand(0));
  auto target = viewByLoops(op, init);
  bool isSummed =
      element.isF32() || element.isInteger(32) || element.isInteger(64);
  if (simple.name.empty() || !isNumber(element) ||
      (simple.name == "sum" && !isSummed) || !source || !target ||
      source->sizes != getExtents(op) ||
      mayAlias(getBufferRoot(source->buffer), getBufferRoot(target->buffer)))
    return std::nullopt;
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (linalg::isReductionIterator(kind))
      simple.numbers.push_back(static_cast<int64_t>(loop));
  simple.views = {*source, *target};
  return simple;
}

std::optional<SimpleOperator> matchSimpleOperator(const KernelGroup &group) {
  linalg::FillOp fill;
  GenericOp op;
  for (const KernelMember &member : group.members) {
    LinalgOp one = member.op;
    auto filled = dyn_cast<linalg::FillOp>(one.getOperation());
    auto generic = dyn_cast<GenericOp>(one.getOperation());
    if ((filled && (fill || op)) || (generic && op) || (!filled && !generic))
      return std::nullopt;
    (filled ? (void)(fill = filled) : (void)(op = generic));
  }
  if (!op)
    return matchFill(fill);
  if (op->getNumOperands() < 1 || op.getNumDpsInits() != 1 ||
      !isa<MemRefType>(op.getDpsInits()[0].getType()) ||
      op.getNumLoops() > kMostLoops ||
      llvm::any_of(op.getStaticLoopRanges(), ShapedType::isDynamic) ||
      op.hasIndexSemantics())
    return std::nullopt;
  if (op.getNumReductionLoops() == 0)
    return fill ? std::nullopt : matchElementwise(op);
  return fill ? matchReduction(op, fill) : std::nullopt;
}

void callSimpleOperator(OpBuilder &builder, Location loc,
                        const SimpleOperator &simple, LibraryCalls &library) {
  Value bits;
  if (simple.bits)
    bits = arith::ConstantIntOp::create(builder, loc, *simple.bits, 64);
  library.call(builder, loc, simple.name, simple.views, bits, simple.numbers);
}

} // namespace mlir::hyperparallel
