//===- FormAttention.cpp - Products around a softmax, as one op -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   %s = Q x K^T
//   %t = %s * scale + mask
//   %m = max of rows of %t        %x = exp(%t - %m)
//   %l = sum of rows of %x        %p = %x / %l
//   %o = %p x V              =>   %o = fused.attention Q, K, V, mask
//
// Runs on fused tensors of one device. The walk begins at each %p whose reader
// is a product, and goes back by operands (AttentionForms.h).
//
//   1. Nobody else may read what is in between.
//   2. What is added to the scores becomes an op of its own, over the loops
//      that it depends on; if it is an operand as it is, nothing is made.
//   3. The back end's call must have the element type and the widths
//      (`types`, `most-width`).
//   4. The call must move fewer bytes: without it scores are written and read
//      twice, by the products and the softmax; with it the mask is, once.
//
// What became of each attention is counted in `hp.attention` of the module, and
// told in a remark at the op.
//
// Cost: linear in ops. Limits: one loop each of m, n, k and e.
//
//===----------------------------------------------------------------------===//

#include "dialects/Fused/Fused.h"
#include "lib/Conversion/Counts.h"
#include "lib/Conversion/LinalgToFused/AttentionForms.h"
#include "lib/Conversion/LinalgToRuntime/ContractionLayout.h"
#include "lib/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <map>

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_FORMATTENTION
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

#define DEBUG_TYPE "hp-form-attention"

using namespace mlir;
using linalg::GenericOp;

namespace mlir::hyperparallel {

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

namespace {
/// Which loop of the attention each dimension of P is, and the operands' maps.
struct AttentionLoops {
  unsigned count = 0;
  SmallVector<unsigned> ofDimension; ///< of P, of the scores
  AffineMap query, key, values, init;
  OpOperand *queryOperand = nullptr, *keyOperand = nullptr,
            *valuesOperand = nullptr;
};
} // namespace

/// The loops of a product in those of the attention: what moves along a
/// dimension of `matrix` (P, or the scores) is that dimension's; the others are
/// `rest`.
static SmallVector<AffineExpr> translateLoops(GenericOp product,
                                              OpOperand &matrix,
                                              ArrayRef<unsigned> ofDimension,
                                              unsigned rest) {
  MLIRContext *context = product.getContext();
  SmallVector<AffineExpr> exprs(product.getNumLoops(),
                                getAffineDimExpr(rest, context));
  for (auto [position, expr] :
       llvm::enumerate(product.getMatchingIndexingMap(&matrix).getResults()))
    exprs[cast<AffineDimExpr>(expr).getPosition()] =
        getAffineDimExpr(ofDimension[position], context);
  return exprs;
}

/// Fails with a refusal where there are more loops than attention has.
static std::optional<AttentionLoops> findLoops(Attention &found,
                                               OpOperand &probabilities) {
  auto refuse = [&](StringRef why) {
    found.refusal = why.str();
    return std::nullopt;
  };
  AttentionLoops loops;
  GenericOp scores = found.scores, values = found.values;
  OpOperand &matrix = *scores.getDpsInitOperand(0);
  OpOperand &result = *values.getDpsInitOperand(0);
  auto rank = static_cast<unsigned>(
      cast<RankedTensorType>(probabilities.get().getType()).getRank());
  for (GenericOp product : {scores, values})
    for (AffineMap map : product.getIndexingMapsArray())
      if (!map.isProjectedPermutation())
        return refuse("a product reads along sums of loops");
  ContractionLoops ofScores = classifyLoops(scores);
  ContractionLoops ofValues = classifyLoops(values);
  bool isLeft = probabilities.getOperandNumber() == 0;
  ArrayRef<unsigned> columns = isLeft ? ofValues.n : ofValues.m;
  AffineMap scoresMap = scores.getMatchingIndexingMap(&matrix);
  if (rank < 2 || scoresMap.getNumResults() != rank || ofScores.k.size() != 1 ||
      columns.size() != 1)
    return refuse("a product has several loops of columns, or sums");
  // n is a dimension of the scores and of K; m the last other one that K has
  // not.
  auto nLoop = cast<AffineDimExpr>(scoresMap.getResult(found.along));
  loops.queryOperand = scores.getDpsInputOperand(0);
  loops.keyOperand = scores.getDpsInputOperand(1);
  if (scores.getMatchingIndexingMap(loops.queryOperand)
          .isFunctionOfDim(nLoop.getPosition()))
    std::swap(loops.queryOperand, loops.keyOperand);
  AffineMap keyMap = scores.getMatchingIndexingMap(loops.keyOperand);
  loops.valuesOperand = values.getDpsInputOperand(isLeft ? 1 : 0);
  AffineMap valuesMap = values.getMatchingIndexingMap(loops.valuesOperand);
  AffineMap matrixMap = values.getMatchingIndexingMap(&probabilities);
  std::optional<unsigned> row;
  for (unsigned position = 0; position < rank; ++position) {
    auto inScores = cast<AffineDimExpr>(scoresMap.getResult(position));
    auto inValues = cast<AffineDimExpr>(matrixMap.getResult(position));
    if (position != found.along &&
        !keyMap.isFunctionOfDim(inScores.getPosition()) &&
        !valuesMap.isFunctionOfDim(inValues.getPosition()))
      row = position;
  }
  if (!row)
    return refuse("all rows have keys of their own");
  loops.count = rank + 2;
  unsigned batch = 0;
  for (unsigned position = 0; position < rank; ++position)
    loops.ofDimension.push_back(position == *row          ? rank - 2
                                : position == found.along ? rank - 1
                                                          : batch++);
  SmallVector<AffineExpr> fromScores =
      translateLoops(scores, matrix, loops.ofDimension, rank);
  SmallVector<AffineExpr> fromValues =
      translateLoops(values, probabilities, loops.ofDimension, rank + 1);
  auto translated = [&](AffineMap map, ArrayRef<AffineExpr> exprs) {
    return map.replaceDimsAndSymbols(exprs, {}, loops.count, 0);
  };
  loops.query =
      translated(scores.getMatchingIndexingMap(loops.queryOperand), fromScores);
  loops.key = translated(keyMap, fromScores);
  loops.values = translated(valuesMap, fromValues);
  loops.init = translated(values.getMatchingIndexingMap(&result), fromValues);
  auto query = scores.getMatchingIndexingMap(loops.queryOperand);
  for (unsigned position = 0; position < rank; ++position)
    if (position != found.along &&
        !query.isFunctionOfDim(
            cast<AffineDimExpr>(scoresMap.getResult(position)).getPosition()))
      return refuse("the queries are the same for several batches");
  return loops;
}

//===----------------------------------------------------------------------===//
// The mask
//===----------------------------------------------------------------------===//

namespace {
struct Mask {
  Value tensor; ///< null until it is made
  AffineMap map;
  SmallVector<unsigned> loops; ///< of `scaled`: what it depends on
  int64_t bytes = 0;
};
} // namespace

/// What the added value depends on. Of loops that run once, nothing does.
static Mask readMask(Attention &found, const AttentionLoops &loops) {
  Mask mask;
  GenericOp op = found.scaled;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  llvm::SmallBitVector used(op.getNumLoops());
  SmallVector<Value> waiting = {found.added};
  DenseSet<Value> seen;
  while (!waiting.empty()) {
    Value value = waiting.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (auto index = value.getDefiningOp<linalg::IndexOp>())
      used.set(index.getDim());
    else if (OpOperand *operand = getOperandOf(op, value);
             operand && isa<BlockArgument>(value))
      for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
        if (op.getMatchingIndexingMap(operand).isFunctionOfDim(loop))
          used.set(loop);
    Operation *made = value.getDefiningOp();
    if (made && made->getBlock() == op.getBlock())
      llvm::append_range(waiting, made->getOperands());
  }
  // Loops of `scaled` that run more than once are the dimensions of P, in
  // order.
  MLIRContext *context = op.getContext();
  auto matrix = cast<RankedTensorType>(found.quotient.getResultTypes()[0]);
  SmallVector<AffineExpr> ofLoop(op.getNumLoops(),
                                 getAffineConstantExpr(0, context));
  unsigned position = 0;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
    if (extents[loop] == 1)
      continue;
    while (matrix.getDimSize(position) == 1)
      ++position;
    ofLoop[loop] = getAffineDimExpr(loops.ofDimension[position++], context);
    if (used.test(loop))
      mask.loops.push_back(loop);
  }
  mask.bytes = found.added.getType().getIntOrFloatBitWidth() / 8;
  for (unsigned loop : mask.loops)
    mask.bytes *= extents[loop];
  OpOperand *operand =
      isa<BlockArgument>(found.added) ? getOperandOf(op, found.added) : nullptr;
  AffineMap own = operand ? op.getMatchingIndexingMap(operand) : AffineMap();
  if (operand && own.isProjectedPermutation(/*allowZeroInResults=*/true)) {
    mask.tensor = operand->get();
    mask.map = own.replaceDimsAndSymbols(ofLoop, {}, loops.count, 0);
    return mask;
  }
  SmallVector<AffineExpr> exprs;
  for (unsigned loop : mask.loops)
    exprs.push_back(ofLoop[loop]);
  mask.map = AffineMap::get(loops.count, 0, exprs, context);
  return mask;
}

/// An op that computes the mask over the loops that it depends on.
static void writeMask(OpBuilder &builder, Attention &found, Mask &mask) {
  if (mask.tensor)
    return;
  GenericOp op = found.scaled;
  Location loc = op.getLoc();
  MLIRContext *context = op.getContext();
  SmallVector<int64_t> extents = op.getStaticLoopRanges(), shape;
  auto rank = static_cast<unsigned>(mask.loops.size());
  SmallVector<AffineExpr> ofLoop(op.getNumLoops(),
                                 getAffineConstantExpr(0, context));
  for (auto [number, loop] : llvm::enumerate(mask.loops)) {
    ofLoop[loop] = getAffineDimExpr(number, context);
    shape.push_back(extents[loop]);
  }
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  SmallVector<BlockArgument> arguments;
  for (OpOperand *input : op.getDpsInputOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(input);
    if (!dependsOn(found.added, argument))
      continue;
    inputs.push_back(input->get());
    maps.push_back(op.getMatchingIndexingMap(input).replaceDimsAndSymbols(
        ofLoop, {}, rank, 0));
    arguments.push_back(argument);
  }
  maps.push_back(AffineMap::getMultiDimIdentityMap(rank, context));
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  auto init =
      tensor::EmptyOp::create(builder, loc, shape, found.added.getType());
  auto written = GenericOp::create(
      builder, loc, init.getType(), inputs, ValueRange(init.getResult()), maps,
      iterators, [&](OpBuilder &nested, Location, ValueRange values) {
        IRMapping mapping;
        for (auto [argument, value] :
             llvm::zip_equal(arguments, values.drop_back()))
          mapping.map(argument, value);
        for (Operation &inner : op.getBlock()->without_terminator()) {
          if (inner.getNumResults() != 1 ||
              !dependsOn(found.added, inner.getResult(0)))
            continue;
          if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
            auto *place = llvm::find(mask.loops, index.getDim());
            Value number =
                place == mask.loops.end()
                    ? arith::ConstantIndexOp::create(nested, loc, 0).getResult()
                    : linalg::IndexOp::create(nested, loc,
                                              place - mask.loops.begin())
                          .getResult();
            mapping.map(index.getResult(), number);
            continue;
          }
          nested.clone(inner, mapping);
        }
        linalg::YieldOp::create(nested, loc,
                                mapping.lookupOrDefault(found.added));
      });
  mask.tensor = written.getResult(0);
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

static int64_t getBytes(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  return type.getNumElements() *
         llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

/// Erases the op, and what was only made for it.
static void eraseUnused(Operation *op) {
  llvm::SetVector<Operation *> waiting;
  waiting.insert(op);
  while (!waiting.empty()) {
    Operation *next = waiting.pop_back_val();
    if (!isOpTriviallyDead(next))
      continue;
    for (Value operand : next->getOperands())
      if (Operation *maker = operand.getDefiningOp())
        waiting.insert(maker);
    next->erase();
  }
}

namespace {
struct FormAttentionPass : impl::FormAttentionBase<FormAttentionPass> {
  using FormAttentionBase::FormAttentionBase;
  void runOnOperation() override;
  void checkReaders(Attention &found);
  void checkCall(Attention &found, const AttentionLoops &loops);
  void form(OpOperand &probabilities);
  void record(Location loc, const std::string &told, bool isFormed);
  std::map<std::string, int64_t> counts;
};
} // namespace

void FormAttentionPass::checkReaders(Attention &found) {
  GenericOp scaled = found.scaled ? found.scaled : found.scores;
  if (!isReadBy(found.quotient.getResult(0), found.values.getOperation()) ||
      !isReadBy(found.exponential.getResult(0),
                {found.sum.getOperation(), found.quotient.getOperation()}) ||
      !isReadBy(scaled.getResult(0),
                {found.most.getOperation(), found.exponential.getOperation()}))
    found.refusal = "its probabilities are read by others, as by a backward "
                    "pass";
  else if (!isReadBy(found.sum.getResult(0), found.quotient.getOperation()) ||
           !isReadBy(found.most.getResult(0),
                     found.exponential.getOperation()) ||
           (found.scaled &&
            !isReadBy(found.scores.getResult(0), found.scaled.getOperation())))
    found.refusal = "what it is made of is read by others, too";
  else if (!isFilled(found.values.getDpsInitOperand(0)->get(), 0) ||
           !isFilled(found.scores.getDpsInitOperand(0)->get(), 0))
    found.refusal = "a product adds to what was there before";
}

/// How often a loop runs that moves along an operand.
static int64_t extentOf(AffineMap map, OpOperand *operand, unsigned loop) {
  auto type = cast<RankedTensorType>(operand->get().getType());
  for (auto [expr, size] : llvm::zip_equal(map.getResults(), type.getShape()))
    if (auto dim = dyn_cast<AffineDimExpr>(expr);
        dim && dim.getPosition() == loop)
      return size;
  return 1;
}

/// What the back end's call has, and whether it is worth it.
void FormAttentionPass::checkCall(Attention &found,
                                  const AttentionLoops &loops) {
  Type element = getElementTypeOrSelf(loops.queryOperand->get().getType());
  std::string name;
  llvm::raw_string_ostream(name) << element;
  if (types.empty()) {
    found.refusal = "the back end has no call for it";
    return;
  }
  if (!llvm::is_contained(types, name)) {
    found.refusal = "the back end's call does not take " + name;
    return;
  }
  for (Value other : {loops.valuesOperand->get(), found.values.getResult(0)})
    if (getElementTypeOrSelf(other.getType()) != element)
      found.refusal = "its operands are of different types";
  SmallVector<int64_t> extents = found.scores.getStaticLoopRanges();
  int64_t width = extents[classifyLoops(found.scores).k[0]];
  if (mostWidth > 0 && width > mostWidth)
    found.refusal = "heads are wider than the back end's call takes";
  int64_t wide = extentOf(loops.values, loops.valuesOperand, loops.count - 1);
  if (equalWidths && wide != width)
    found.refusal = "the back end's call wants keys and values of one width";
}

void FormAttentionPass::record(Location loc, const std::string &told,
                               bool isFormed) {
  ++counts[told];
  (isFormed ? numFormed : numLeft) += 1;
  auto remark = [&](auto &&emitted) { emitted << remark::add("{0}", told); };
  auto options = remark::RemarkOpts::name("attention").category(DEBUG_TYPE);
  if (isFormed)
    remark(remark::passed(loc, options));
  else
    remark(remark::missed(loc, options));
}

void FormAttentionPass::form(OpOperand &probabilities) {
  std::optional<Attention> softmax = findSoftmax(probabilities);
  if (!softmax)
    return;
  Attention &found = *softmax;
  Location loc = found.values.getLoc();
  checkReaders(found);
  if (found.refusal.empty() && found.scaled && !matchScaled(found))
    found.refusal = "scores go through more than a scale and a mask";
  std::optional<AttentionLoops> loops;
  if (found.refusal.empty())
    loops = findLoops(found, probabilities);
  if (loops)
    checkCall(found, *loops);
  Mask mask;
  if (found.refusal.empty() && found.added)
    mask = readMask(found, *loops);
  int64_t scores = 0;
  if (found.refusal.empty()) {
    scores = 4 * getBytes(found.quotient.getResult(0));
    if (2 * mask.bytes >= scores)
      found.refusal = "its mask moves as many bytes as its scores";
  }
  if (!found.refusal.empty())
    return record(loc, "none: " + found.refusal, false);
  OpBuilder builder(found.values);
  SmallVector<Value> inputs = {loops->queryOperand->get(),
                               loops->keyOperand->get(),
                               loops->valuesOperand->get()};
  SmallVector<AffineMap> maps = {loops->query, loops->key, loops->values};
  if (found.added) {
    writeMask(builder, found, mask);
    inputs.push_back(mask.tensor);
    maps.push_back(mask.map);
  }
  maps.push_back(loops->init);
  auto type = cast<RankedTensorType>(found.values.getResultTypes()[0]);
  Value init = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                       type.getElementType());
  auto attention = fused::AttentionOp::create(
      builder, loc, type, inputs, init, builder.getAffineMapArrayAttr(maps),
      builder.getF64FloatAttr(found.scale));
  found.values->getResult(0).replaceAllUsesWith(attention.getResult());
  eraseUnused(found.values);
  record(loc, found.added ? "one call, with a mask" : "one call", true);
}

void FormAttentionPass::runOnOperation() {
  counts.clear();
  for (const std::string &type : types)
    if (type != "f16" && type != "bf16" && type != "f32" && type != "f64") {
      getOperation()->emitError("expected types of f16, bf16, f32 or f64 but "
                                "got '")
          << type << "'";
      return signalPassFailure();
    }
  SmallVector<OpOperand *> candidates;
  getOperation().walk([&](GenericOp op) {
    if (op.hasPureTensorSemantics() && isRuntimeContraction(op) &&
        op.getNumDpsInputs() == 2)
      for (OpOperand *input : op.getDpsInputOperands())
        candidates.push_back(input);
  });
  for (OpOperand *candidate : candidates)
    form(*candidate);
  setCounts(getOperation(), "hp.attention", counts);
}

} // namespace mlir::hyperparallel
