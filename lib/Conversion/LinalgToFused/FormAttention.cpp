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
//   2. Heads may be cut from the batch, or from each other, in one op and not
//      in the next: the loops are the pieces that all of the matrices are made
//      of, and operands get a dimension for each.
//   3. What is added to the scores becomes an op of its own, over the loops
//      that it depends on; if it is an operand as it is, nothing is made.
//   4. The back end's call must have the element type and the widths
//      (`types`, `most-width`).
//   5. The call must move fewer bytes: without it scores are written and read
//      twice, by the products and the softmax; with it the mask is, once.
//
// What became of each attention is counted in `hp.attention` of the module, and
// told in a remark at the op.
//
// Cost: linear in ops. Limits: one loop each of n, k and e that runs more than
// once; m is the last of those in which rows share keys.
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
#include <set>

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

using Pieces = SmallVector<unsigned>;

namespace {
/// An operand, and the attention's loops that each of its dimensions is made
/// of, outermost first; of a dimension of size 1, none.
struct Cut {
  Value tensor;
  SmallVector<Pieces> dimensions;
};

/// The loops of the attention: the batch, m, n, k, e.
struct AttentionLoops {
  SmallVector<int64_t> extents;
  Cut query, key, values, result;
  SmallVector<Pieces> ofScaled; ///< what each loop of `scaled` is
};
} // namespace

/// The sizes of the pieces that all dimensions of all shapes are made of,
/// outermost first. Shapes have the same number of elements. Nothing if they
/// cut them at places that do not fit.
static std::optional<SmallVector<int64_t>>
findPieces(ArrayRef<ArrayRef<int64_t>> shapes) {
  std::set<int64_t> inner = {1};
  for (ArrayRef<int64_t> shape : shapes) {
    int64_t elements = 1;
    for (int64_t size : llvm::reverse(shape))
      inner.insert(elements *= size);
  }
  SmallVector<int64_t> sizes;
  int64_t last = 1;
  for (int64_t elements : llvm::drop_begin(inner)) {
    if (elements % last != 0)
      return std::nullopt;
    sizes.push_back(elements / last);
    last = elements;
  }
  return SmallVector<int64_t>(llvm::reverse(sizes));
}

/// The pieces of each dimension of a shape.
static SmallVector<Pieces> cutShape(ArrayRef<int64_t> shape,
                                    ArrayRef<int64_t> sizes) {
  SmallVector<Pieces> dimensions;
  unsigned piece = 0;
  for (int64_t size : shape) {
    Pieces &pieces = dimensions.emplace_back();
    for (; size > 1; size /= sizes[piece++])
      pieces.push_back(piece);
  }
  return dimensions;
}

/// The pieces of each loop of a product: of those that move along `matrix` as
/// its dimensions are cut, and `rest` of the one other loop that runs more than
/// once. Nothing if there are several of these, or none.
static std::optional<SmallVector<Pieces>> cutLoops(GenericOp product,
                                                   OpOperand &matrix,
                                                   ArrayRef<int64_t> sizes,
                                                   unsigned rest) {
  SmallVector<Pieces> loops(product.getNumLoops());
  AffineMap map = product.getMatchingIndexingMap(&matrix);
  auto shape = cast<RankedTensorType>(matrix.get().getType()).getShape();
  for (auto [position, pieces] : llvm::enumerate(cutShape(shape, sizes)))
    loops[map.getDimPosition(position)] = pieces;
  unsigned numOthers = 0;
  for (auto [loop, extent] : llvm::enumerate(product.getStaticLoopRanges()))
    if (extent != 1 && !map.isFunctionOfDim(loop)) {
      loops[loop] = {rest};
      ++numOthers;
    }
  if (numOthers != 1)
    return std::nullopt;
  return loops;
}

static Cut cutOperand(GenericOp product, OpOperand &operand, Value tensor,
                      ArrayRef<Pieces> loops) {
  Cut cut{tensor, {}};
  AffineMap map = product.getMatchingIndexingMap(&operand);
  for (unsigned position = 0; position < map.getNumResults(); ++position)
    cut.dimensions.push_back(loops[map.getDimPosition(position)]);
  return cut;
}

static bool movesWith(const Cut &cut, unsigned piece) {
  return llvm::any_of(cut.dimensions, [&](const Pieces &pieces) {
    return llvm::is_contained(pieces, piece);
  });
}

/// Pieces by their numbers as loops.
static void renumber(SmallVectorImpl<Pieces> &dimensions,
                     ArrayRef<unsigned> numbers) {
  for (Pieces &pieces : dimensions)
    for (unsigned &piece : pieces)
      piece = numbers[piece];
}

/// Fails with a refusal where there are more loops than attention has.
static std::optional<AttentionLoops> findLoops(Attention &found,
                                               OpOperand &probabilities) {
  auto refuse = [&](StringRef why) {
    found.refusal = why.str();
    return std::nullopt;
  };
  GenericOp scores = found.scores, values = found.values;
  OpOperand &matrix = *scores.getDpsInitOperand(0);
  OpOperand &result = *values.getDpsInitOperand(0);
  for (GenericOp product : {scores, values})
    for (AffineMap map : product.getIndexingMapsArray())
      if (!map.isProjectedPermutation())
        return refuse("a product reads along sums of loops");
  auto shapeOf = [](Value tensor) {
    return cast<RankedTensorType>(tensor.getType()).getShape();
  };
  SmallVector<ArrayRef<int64_t>> shapes = {shapeOf(matrix.get()),
                                           shapeOf(probabilities.get())};
  if (found.scaled)
    shapes.push_back(shapeOf(found.scaled.getResult(0)));
  std::optional<SmallVector<int64_t>> sizes = findPieces(shapes);
  if (!sizes)
    return refuse("its ops cut heads at places that do not fit");
  unsigned count = sizes->size(), along = count;
  int64_t inner = 1;
  for (unsigned piece = count; piece-- > 0; inner *= (*sizes)[piece])
    if ((*sizes)[piece] == found.along.size && inner == found.along.inner)
      along = piece;
  if (along == count)
    return refuse("its keys are several loops");
  auto ofScores = cutLoops(scores, matrix, *sizes, count);
  auto ofValues = cutLoops(values, probabilities, *sizes, count + 1);
  if (!ofScores || !ofValues)
    return refuse("a head is several loops of a product, or has one element");

  AttentionLoops loops;
  OpOperand *query = scores.getDpsInputOperand(0);
  OpOperand *key = scores.getDpsInputOperand(1);
  loops.query = cutOperand(scores, *query, query->get(), *ofScores);
  loops.key = cutOperand(scores, *key, key->get(), *ofScores);
  if (movesWith(loops.query, along))
    std::swap(loops.query, loops.key);
  OpOperand *read =
      values.getDpsInputOperand(probabilities.getOperandNumber() == 0 ? 1 : 0);
  loops.values = cutOperand(values, *read, read->get(), *ofValues);
  loops.result = cutOperand(values, result, values.getResult(0), *ofValues);
  std::optional<unsigned> row;
  for (unsigned piece = 0; piece < count; ++piece) {
    if (piece == along)
      continue;
    if (!movesWith(loops.query, piece))
      return refuse("the queries are the same for several batches");
    if (!movesWith(loops.key, piece) && !movesWith(loops.values, piece))
      row = piece;
  }
  if (!row)
    return refuse("all rows have keys of their own");
  if (movesWith(loops.query, along) || !movesWith(loops.key, along))
    return refuse("the queries move along the keys");
  SmallVector<unsigned> numbers;
  unsigned batch = 0;
  for (unsigned piece = 0; piece < count; ++piece)
    numbers.push_back(piece == *row    ? count - 2
                      : piece == along ? count - 1
                                       : batch++);
  numbers.append({count, count + 1});
  loops.extents.resize(count + 2, 1);
  for (unsigned piece = 0; piece < count; ++piece)
    loops.extents[numbers[piece]] = (*sizes)[piece];
  for (auto [product, ofLoops] :
       {std::pair(scores, &*ofScores), std::pair(values, &*ofValues)})
    for (auto [pieces, extent] :
         llvm::zip_equal(*ofLoops, product.getStaticLoopRanges()))
      if (pieces.size() == 1 && pieces[0] >= count)
        loops.extents[pieces[0]] = extent;
  if (found.scaled)
    loops.ofScaled = cutShape(shapes.back(), *sizes);
  for (SmallVector<Pieces> *dimensions :
       {&loops.query.dimensions, &loops.key.dimensions,
        &loops.values.dimensions, &loops.result.dimensions, &loops.ofScaled})
    renumber(*dimensions, numbers);
  return loops;
}

/// The type with a dimension for each loop, how they are grouped, and which
/// loop moves along which.
static std::tuple<RankedTensorType, SmallVector<ReassociationIndices>,
                  AffineMap>
getCutType(const Cut &cut, const AttentionLoops &loops) {
  auto type = cast<RankedTensorType>(cut.tensor.getType());
  MLIRContext *context = type.getContext();
  SmallVector<int64_t> shape;
  SmallVector<ReassociationIndices> groups;
  SmallVector<AffineExpr> exprs;
  for (const Pieces &pieces : cut.dimensions) {
    ReassociationIndices &group = groups.emplace_back();
    auto add = [&](int64_t size, AffineExpr expr) {
      group.push_back(static_cast<int64_t>(shape.size()));
      shape.push_back(size);
      exprs.push_back(expr);
    };
    for (unsigned loop : pieces)
      add(loops.extents[loop], getAffineDimExpr(loop, context));
    if (pieces.empty())
      add(1, getAffineConstantExpr(0, context));
  }
  return {RankedTensorType::get(shape, type.getElementType()), groups,
          AffineMap::get(loops.extents.size(), 0, exprs, context)};
}

/// An operand with a dimension for each loop, and its map.
static std::pair<Value, AffineMap> writeCut(OpBuilder &builder, Location loc,
                                            const Cut &cut,
                                            const AttentionLoops &loops) {
  auto [type, groups, map] = getCutType(cut, loops);
  if (type.getRank() == static_cast<int64_t>(groups.size()))
    return {cut.tensor, map};
  return {tensor::ExpandShapeOp::create(builder, loc, type, cut.tensor, groups),
          map};
}

//===----------------------------------------------------------------------===//
// The mask
//===----------------------------------------------------------------------===//

namespace {
struct Mask {
  Cut cut;                     ///< the tensor is null until it is made
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
  mask.bytes = found.added.getType().getIntOrFloatBitWidth() / 8;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    if (extents[loop] != 1 && used.test(loop)) {
      mask.loops.push_back(loop);
      mask.bytes *= extents[loop];
    }
  OpOperand *operand =
      isa<BlockArgument>(found.added) ? getOperandOf(op, found.added) : nullptr;
  AffineMap own = operand ? op.getMatchingIndexingMap(operand) : AffineMap();
  if (operand && own.isProjectedPermutation(/*allowZeroInResults=*/true)) {
    mask.cut.tensor = operand->get();
    for (AffineExpr expr : own.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      mask.cut.dimensions.push_back(dim ? loops.ofScaled[dim.getPosition()]
                                        : Pieces());
    }
    return mask;
  }
  for (unsigned loop : mask.loops)
    mask.cut.dimensions.push_back(loops.ofScaled[loop]);
  return mask;
}

/// An op that computes the mask over the loops that it depends on.
static void writeMask(OpBuilder &builder, Attention &found, Mask &mask) {
  if (mask.cut.tensor)
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
  mask.cut.tensor = written.getResult(0);
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

static constexpr StringLiteral kReadByOthers(
    "its probabilities are read by others, as by a backward pass");

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
    found.refusal = kReadByOthers.str();
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

/// What the back end's call has, and whether it is worth it.
void FormAttentionPass::checkCall(Attention &found,
                                  const AttentionLoops &loops) {
  Type element = getElementTypeOrSelf(loops.query.tensor.getType());
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
  for (Value other : {loops.values.tensor, loops.result.tensor})
    if (getElementTypeOrSelf(other.getType()) != element)
      found.refusal = "its operands are of different types";
  auto [width, wide] =
      std::pair(loops.extents[loops.extents.size() - 2], loops.extents.back());
  if (mostWidth > 0 && width > mostWidth)
    found.refusal = "heads are wider than the back end's call takes";
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
  if (!softmax) {
    if (isOutlinedSoftmax(probabilities))
      record(probabilities.getOwner()->getLoc(), "none: " + kReadByOthers.str(),
             false);
    return;
  }
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
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  auto add = [&](const Cut &cut) {
    auto [tensor, map] = writeCut(builder, loc, cut, *loops);
    inputs.push_back(tensor);
    maps.push_back(map);
  };
  add(loops->query);
  add(loops->key);
  add(loops->values);
  if (found.added) {
    writeMask(builder, found, mask);
    add(mask.cut);
  }
  auto [type, groups, map] = getCutType(loops->result, *loops);
  maps.push_back(map);
  Value init = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                       type.getElementType());
  auto attention = fused::AttentionOp::create(
      builder, loc, type, inputs, init, builder.getAffineMapArrayAttr(maps),
      builder.getF64FloatAttr(found.scale));
  Value whole = attention.getResult();
  if (type != found.values.getResultTypes()[0])
    whole = tensor::CollapseShapeOp::create(
        builder, loc, found.values.getResultTypes()[0], whole, groups);
  found.values->getResult(0).replaceAllUsesWith(whole);
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
