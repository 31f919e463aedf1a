//===- FoldEpilogues.cpp - What follows a product, in its call ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   %p = A x B                         %y = A x B, then + bias, then f
//   %y = f(%p + bias), g(…)      =>    %z = g(%y, …)
//
// Runs on fused tensors. For each contraction whose result one elementwise op
// reads (through a reshape that leaves the last dimension alone):
//
//   1. bias: the sum of the product and a vector along its last dimension, if
//      that is all that is done with the product;
//   2. activation: a value of the body that is an activation of the sum
//      (ActivationForms.h) and all that is done with it, if the back end has
//      it;
//   3. the contraction gets the bias as a third input, and `hp.epilogue`; its
//      body does the same in the last iteration of the reduction, so that it
//      still says what the op means. What is left of the elementwise op reads
//      the new result; nothing may be.
//
// What was folded, and why something was not, is counted in `hp.epilogues` of
// the module, and told in a remark at the op.
//
// Cost: linear. Limits: one loop of columns, element types all the same.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/Counts.h"
#include "lib/Conversion/LinalgToRuntime/ActivationForms.h"
#include "lib/Conversion/LinalgToRuntime/ContractionLayout.h"
#include "lib/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <map>

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_FOLDEPILOGUES
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

#define DEBUG_TYPE "hp-fold-epilogues"

using namespace mlir;
using linalg::GenericOp;

namespace mlir::hyperparallel {

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

namespace {
/// What one contraction takes in.
struct Epilogue {
  GenericOp consumer;
  OpOperand *product = nullptr; ///< of the consumer
  OpOperand *bias = nullptr;    ///< of the consumer, or null
  Value sum;     ///< in the consumer's body: the product, with the bias
  Value outcome; ///< in the consumer's body: what the call will give
  Activation activation = Activation::None;
  std::string refusal; ///< why not more
  bool isFolded() const { return bias || activation != Activation::None; }
};
} // namespace

/// The reader of a product, through a reshape that keeps the last dimension.
static OpOperand *getReader(GenericOp product) {
  if (!product->hasOneUse())
    return nullptr;
  OpOperand *use = &*product->use_begin();
  auto expand = dyn_cast<tensor::ExpandShapeOp>(use->getOwner());
  if (!expand)
    return use;
  return expand->hasOneUse() &&
                 expand.getReassociationIndices().back().size() == 1
             ? &*expand->use_begin()
             : nullptr;
}

/// Elements of a vector whose buffer has no gaps.
static bool isWithoutGaps(Value vector) {
  auto slice = vector.getDefiningOp<tensor::ExtractSliceOp>();
  if (!slice)
    return !isa_and_nonnull<tensor::CollapseShapeOp, tensor::CastOp>(
        vector.getDefiningOp());
  return slice.getSourceType().getRank() == 1 && slice.hasUnitStride() &&
         slice.getStaticOffsets()[0] != ShapedType::kDynamic;
}

/// The one reader of a scalar that is not a conversion, or null.
static Operation *getOnlyUser(Value value) {
  while (value.hasOneUse()) {
    Operation *user = *value.user_begin();
    if (!isa<arith::ExtFOp, arith::TruncFOp>(user))
      return user;
    value = user->getResult(0);
  }
  return nullptr;
}

static void findBias(Epilogue &found) {
  GenericOp op = found.consumer;
  BlockArgument product = op.getMatchingBlockArgument(found.product);
  auto sum = dyn_cast_or_null<arith::AddFOp>(getOnlyUser(product));
  if (!sum)
    return;
  AffineMap map = op.getMatchingIndexingMap(found.product);
  for (OpOperand *input : op.getDpsInputOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(input);
    AffineMap ofInput = op.getMatchingIndexingMap(input);
    auto type = dyn_cast<RankedTensorType>(input->get().getType());
    if (input == found.product || !type || type.getRank() != 1 ||
        ofInput.getResult(0) != map.getResults().back() ||
        !llvm::is_contained(sum->getOperands(), argument) ||
        !llvm::is_contained(sum->getOperands(), product))
      continue;
    if (!isWithoutGaps(input->get())) {
      found.refusal = "the bias may have gaps in memory";
      return;
    }
    found.bias = input;
    found.sum = found.outcome = sum.getResult();
    return;
  }
}

/// Whether all that is done with `from` is done on the way to `to`.
static bool isAllFor(Value from, Value to) {
  SmallVector<Value> waiting = {from};
  DenseSet<Value> seen = {from};
  while (!waiting.empty()) {
    Value value = waiting.pop_back_val();
    if (value == to)
      continue;
    for (Operation *user : value.getUsers()) {
      if (user->getNumResults() != 1)
        return false;
      if (seen.insert(user->getResult(0)).second)
        waiting.push_back(user->getResult(0));
      if (user->isBeforeInBlock(to.getDefiningOp()) ||
          user == to.getDefiningOp())
        continue;
      return false;
    }
  }
  return true;
}

static void findActivation(Epilogue &found, ArrayRef<Activation> known) {
  for (Operation &nested : found.consumer.getBlock()->without_terminator()) {
    if (nested.getNumResults() != 1 ||
        nested.getResult(0).getType() != found.sum.getType())
      continue;
    Activation activation = matchActivation(nested.getResult(0), found.sum);
    if (activation == Activation::None)
      continue;
    std::string name = getActivationName(activation).str();
    if (!llvm::is_contained(known, activation)) {
      found.refusal = "the library has no epilogue for " + name;
      return;
    }
    if (!isAllFor(found.sum, nested.getResult(0))) {
      found.refusal = "what " + name + " is taken of is read by others, too";
      return;
    }
    found.activation = activation;
    found.outcome = nested.getResult(0);
    found.refusal.clear();
    return;
  }
}

/// Why no epilogue can follow the product; empty if one can.
static std::string checkProduct(GenericOp product) {
  auto type = cast<RankedTensorType>(product.getResultTypes()[0]);
  if (type.getElementType().isF64())
    return "the library has no epilogues in f64";
  if (llvm::is_contained(product.getStaticLoopRanges(), 0))
    return "the product is over nothing";
  if (!product->hasOneUse())
    return "the product has several readers";
  return {};
}

/// Whether the result's last dimension is its only one of columns.
static bool hasColumns(GenericOp product) {
  AffineMap map = product.getMatchingIndexingMap(product.getDpsInitOperand(0));
  SmallVector<int64_t> extents = product.getStaticLoopRanges();
  ContractionLoops loops = classifyLoops(product);
  if (map.getNumResults() == 0)
    return false;
  auto last = dyn_cast<AffineDimExpr>(map.getResults().back());
  if (!last)
    return false;
  return llvm::is_contained(loops.n, last.getPosition()) &&
         llvm::all_of(loops.n, [&](unsigned loop) {
           return loop == last.getPosition() || extents[loop] == 1;
         });
}

static Epilogue decide(GenericOp product, ArrayRef<Activation> known) {
  Epilogue found;
  found.refusal = checkProduct(product);
  if (!found.refusal.empty())
    return found;
  found.refusal = "nothing follows that an epilogue does";
  OpOperand *reader = getReader(product);
  auto consumer = reader ? dyn_cast<GenericOp>(reader->getOwner()) : nullptr;
  if (!consumer || !consumer.isDpsInput(reader) ||
      !consumer.hasPureTensorSemantics() ||
      consumer.getNumReductionLoops() != 0 ||
      !consumer.getMatchingIndexingMap(reader).isIdentity())
    return found;
  found.consumer = consumer;
  found.product = reader;
  found.sum = found.outcome = consumer.getMatchingBlockArgument(reader);
  findBias(found);
  if (found.bias) {
    Type element = getElementTypeOrSelf(product.getResultTypes()[0]);
    if (getElementTypeOrSelf(found.bias->get().getType()) != element ||
        found.sum.getType() != element)
      found.refusal = "bias and product are of different types";
    else if (!hasColumns(product))
      found.refusal = "the bias is not one of the product's columns";
    else
      found.refusal.clear();
    if (!found.refusal.empty()) {
      found.bias = nullptr;
      return found;
    }
  }
  findActivation(found, known);
  return found;
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

/// The epilogue on `sum`, by clones of what the consumer does.
static Value cloneEpilogue(OpBuilder &builder, const Epilogue &epilogue,
                           Value sum, Value bias) {
  IRMapping mapping;
  GenericOp consumer = epilogue.consumer;
  mapping.map(consumer.getMatchingBlockArgument(epilogue.product), sum);
  if (bias)
    mapping.map(consumer.getMatchingBlockArgument(epilogue.bias), bias);
  SetVector<Operation *> needed;
  SmallVector<Value> waiting = {epilogue.outcome};
  while (!waiting.empty()) {
    Operation *op = waiting.pop_back_val().getDefiningOp();
    if (op && op->getBlock() == consumer.getBlock() && needed.insert(op))
      llvm::append_range(waiting, op->getOperands());
  }
  for (Operation &op : consumer.getBlock()->without_terminator())
    if (needed.contains(&op))
      builder.clone(op, mapping);
  return mapping.lookupOrDefault(epilogue.outcome);
}

/// Whether this is the last iteration of all reductions.
static Value isLast(OpBuilder &builder, GenericOp product, Location loc) {
  SmallVector<int64_t> extents = product.getStaticLoopRanges();
  Value all;
  for (unsigned loop : classifyLoops(product).k) {
    Value index = linalg::IndexOp::create(builder, loc, loop);
    Value last =
        arith::ConstantIndexOp::create(builder, loc, extents[loop] - 1);
    Value here = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                       index, last);
    all =
        all ? arith::AndIOp::create(builder, loc, all, here).getResult() : here;
  }
  return all;
}

static GenericOp fold(GenericOp product, const Epilogue &epilogue) {
  OpBuilder builder(epilogue.consumer);
  if (Operation *reshape = epilogue.product->get().getDefiningOp();
      reshape != product)
    builder.setInsertionPoint(reshape);
  // The bias may be made later than the product.
  Location loc = product.getLoc();
  SmallVector<Value> inputs = product.getInputs();
  SmallVector<AffineMap> maps = product.getIndexingMapsArray();
  if (epilogue.bias) {
    Operation *made = epilogue.bias->get().getDefiningOp();
    if (made && made->getBlock() == builder.getBlock() &&
        !made->isBeforeInBlock(&*builder.getInsertionPoint()))
      builder.setInsertionPointAfter(made);
    inputs.push_back(epilogue.bias->get());
    maps.insert(maps.begin() + 2, maps.back().getSubMap({static_cast<unsigned>(
                                      maps.back().getNumResults() - 1)}));
  }
  auto folded = GenericOp::create(
      builder, loc, product.getResultTypes(), inputs, product.getOutputs(),
      maps, product.getIteratorTypesArray(),
      [&](OpBuilder &nested, Location, ValueRange arguments) {
        IRMapping mapping;
        Block *body = product.getBlock();
        for (unsigned number : {0u, 1u})
          mapping.map(body->getArgument(number), arguments[number]);
        mapping.map(body->getArgument(2), arguments.back());
        for (Operation &op : body->without_terminator())
          nested.clone(op, mapping);
        Value sum =
            mapping.lookupOrDefault(body->getTerminator()->getOperand(0));
        Value outcome = cloneEpilogue(nested, epilogue, sum,
                                      epilogue.bias ? arguments[2] : Value());
        if (Value last = isLast(nested, product, loc))
          outcome = arith::SelectOp::create(nested, loc, last, outcome, sum);
        linalg::YieldOp::create(nested, loc, outcome);
      });
  folded->setAttr(
      kEpilogueAttrName,
      builder.getI64IntegerAttr(static_cast<int64_t>(epilogue.activation)));
  return folded;
}

/// Makes the reader take what the call gives for what it computed itself.
static void useFolded(GenericOp product, GenericOp folded,
                      const Epilogue &epilogue) {
  GenericOp consumer = epilogue.consumer;
  Value argument = consumer.getMatchingBlockArgument(epilogue.product);
  Operation *reshape = epilogue.product->get().getDefiningOp();
  if (reshape != product)
    reshape->moveAfter(folded);
  product->replaceAllUsesWith(folded);
  product->erase();
  Value outcome = epilogue.outcome;
  outcome.replaceAllUsesWith(argument);
}

namespace {
struct FoldEpiloguesPass : impl::FoldEpiloguesBase<FoldEpiloguesPass> {
  using FoldEpiloguesBase::FoldEpiloguesBase;
  void runOnOperation() override;
  LogicalResult readKnown(SmallVectorImpl<Activation> &known);
  void record(GenericOp product, const Epilogue &epilogue);
  std::map<std::string, int64_t> counts;
};
} // namespace

LogicalResult FoldEpiloguesPass::readKnown(SmallVectorImpl<Activation> &known) {
  for (const std::string &name : activations) {
    std::optional<Activation> activation = parseActivation(name);
    if (!activation)
      return getOperation()->emitError("expected an activation of relu, gelu, "
                                       "gelu_tanh or silu but got '")
             << name << "'";
    known.push_back(*activation);
  }
  return success();
}

/// One line for each product: what its call does, or why nothing follows it.
void FoldEpiloguesPass::record(GenericOp product, const Epilogue &epilogue) {
  std::string told = epilogue.bias ? "bias" : "";
  if (epilogue.activation != Activation::None)
    told += (told.empty() ? "" : " and ") +
            getActivationName(epilogue.activation).str();
  if (!epilogue.refusal.empty())
    told += (told.empty() ? "none: " : ", no more: ") + epilogue.refusal;
  ++counts[told];
  numBiases += epilogue.bias != nullptr;
  numActivations += epilogue.activation != Activation::None;
  numPlain += !epilogue.isFolded();
  auto remark = [&](auto &&emitted) { emitted << remark::add("{0}", told); };
  auto options = remark::RemarkOpts::name("epilogue").category(DEBUG_TYPE);
  if (epilogue.isFolded())
    remark(remark::passed(product.getLoc(), options));
  else
    remark(remark::missed(product.getLoc(), options));
}

void FoldEpiloguesPass::runOnOperation() {
  counts.clear();
  SmallVector<Activation> known;
  if (failed(readKnown(known)))
    return signalPassFailure();
  SmallVector<GenericOp> products;
  getOperation().walk([&](GenericOp op) {
    if (isRuntimeContraction(op) && op.hasPureTensorSemantics() &&
        !op->hasAttr(kEpilogueAttrName))
      products.push_back(op);
  });
  if (products.empty())
    return;
  for (GenericOp product : products) {
    Epilogue epilogue = decide(product, known);
    record(product, epilogue);
    if (!epilogue.isFolded())
      continue;
    GenericOp folded = fold(product, epilogue);
    useFolded(product, folded, epilogue);
  }
  setCounts(getOperation(), "hp.epilogues", counts);
  RewritePatternSet patterns(&getContext());
  linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
  GenericOp::getCanonicalizationPatterns(patterns, &getContext());
  if (failed(applyPatternsGreedily(getOperation(), std::move(patterns)))) {
    getOperation()->emitError("dropping what epilogues do did not converge");
    signalPassFailure();
  }
}

} // namespace mlir::hyperparallel
