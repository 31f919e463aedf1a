//===- LoopNest.cpp - Scalar loops for one linalg op ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   1. Order the loops that are left: parallel before reduction, and the one
//      along which most operands are contiguous innermost.
//   2. Give every value of the body a level, the number of loops (from outside)
//      it depends on; the op is written at that level. An assertion on a row's
//      index thus runs once a row and does not keep the row from vectorising.
//   3. If all loops from some level inward are reductions, the results live in
//      loop-carried values from there on and are stored once after the loops.
//
// With a distribution (kernels for devices) threads share the innermost loop,
// in vectors of neighbours where its extent can be divided so. If it is
// parallel it becomes the outermost one, and nothing has to be exchanged; if it
// reduces, each thread begins with the neutral element, and the partial results
// are combined after the loops.
//
// Combiners of reductions along rows, whose elements lie side by side, may be
// reassociated, without which they are not vectorised; nothing else is relaxed.
// Sums over rows keep their order, which is vectorised along the row: where
// they stand in a kernel depends on what was fused, and a plan that moves ops
// apart must not change what they give. For the same reason products and sums
// are not contracted.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToKernels/LoopNest.h"
#include "lib/Conversion/LinalgToKernels/KernelGrouping.h"
#include "lib/Conversion/RuntimeCalls.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

namespace {
class LoopNestBuilder {
public:
  LoopNestBuilder(OpBuilder &builder, LinalgOp op,
                  const LoopNestContext &context)
      : builder(builder), op(op), context(context), loc(op.getLoc()),
        mapping(*context.mapping), extents(op.getStaticLoopRanges()),
        lane(context.lane) {}

  void build() {
    if (llvm::is_contained(extents, 0))
      return;
    orderLoops();
    assignLevels();
    if (!context.distribution || shared)
      return openLoops(0);
    // Nothing to share: one thread does it.
    OpBuilder::InsertionGuard guard(builder);
    enterFirstThread();
    openLoops(0);
  }

private:
  void orderLoops();
  void assignLevels();
  void openLoops(unsigned level);
  void openLoop(unsigned level, ValueRange carried,
                llvm::function_ref<SmallVector<Value>(ValueRange)> body,
                SmallVectorImpl<Value> &results);
  SmallVector<Value>
  writeLanes(unsigned loop, Value first, int64_t length, ValueRange carried,
             llvm::function_ref<SmallVector<Value>(ValueRange)> body);
  void emitLevel(unsigned level);
  void emitBodyOp(Operation &nested);
  bool combinesInAnyOrder(Operation &nested);
  Value loadOperand(OpOperand &operand);
  llvm::MaybeAlign getAlignment(OpOperand &operand, const BufferAccess &access);
  void alignGather(memref::LoadOp load);
  void storeResults();
  void enterFirstThread();
  void combineShared();
  SmallVector<Value> getIndices(OpOperand &operand, const BufferAccess &access);
  Value getExtent(unsigned loop);
  unsigned getLoopLevel(unsigned loop) const;
  unsigned getMapLevel(AffineMap map) const;

  unsigned numLevels() const { return inner.size(); }
  Value yielded(unsigned result) {
    return op.getBlock()->getTerminator()->getOperand(result);
  }

  OpBuilder &builder;
  LinalgOp op;
  const LoopNestContext &context;
  Location loc;
  IRMapping mapping; // a copy: body values are private to this nest
  SmallVector<int64_t> extents;
  SmallVector<unsigned> inner;  // loops written here, outermost first
  SmallVector<Value> variables; // of every loop of the op
  DenseMap<Operation *, unsigned> opLevels;
  DenseMap<Value, unsigned> valueLevels;
  unsigned accumulateFrom = 0; // results are loop-carried from this level on
  bool accumulates = false;
  std::optional<VectorLane> lane;
  std::optional<unsigned> shared; // the loop that the threads share
  bool sharedReduces = false;
  SmallVector<Value> beforeShared; // results before this op
};
} // namespace

void LoopNestBuilder::orderLoops() {
  variables = context.outerVariables;
  SmallVector<unsigned> parallel, reduction;
  auto iterators = op.getIteratorTypesArray();
  for (unsigned loop = 0, e = op.getNumLoops(); loop < e; ++loop) {
    if (variables[loop])
      continue;
    (linalg::isParallelIterator(iterators[loop]) ? parallel : reduction)
        .push_back(loop);
  }
  inner.append(parallel);
  inner.append(reduction);
  if (inner.empty())
    return;
  // A parallel loop goes inside the reductions only to be contiguous.
  unsigned innermost = getInnermostLoop(op);
  if (auto *it = llvm::find(inner, innermost); it != inner.end()) {
    inner.erase(it);
    inner.push_back(innermost);
    if (!context.distribution)
      return;
    shared = innermost;
    sharedReduces = !linalg::isParallelIterator(iterators[innermost]);
    if (!sharedReduces)
      std::rotate(inner.begin(), inner.end() - 1, inner.end());
  }
}

unsigned LoopNestBuilder::getLoopLevel(unsigned loop) const {
  for (auto [level, candidate] : llvm::enumerate(inner))
    if (candidate == loop)
      return level + 1;
  return 0;
}

unsigned LoopNestBuilder::getMapLevel(AffineMap map) const {
  unsigned level = 0;
  for (unsigned loop = 0, e = map.getNumDims(); loop < e; ++loop)
    if (map.isFunctionOfDim(loop))
      level = std::max(level, getLoopLevel(loop));
  return level;
}

void LoopNestBuilder::assignLevels() {
  unsigned deepest = numLevels();
  // Results are carried through the trailing reduction loops.
  accumulateFrom = deepest;
  auto iterators = op.getIteratorTypesArray();
  while (accumulateFrom > 0 &&
         !linalg::isParallelIterator(iterators[inner[accumulateFrom - 1]]))
    --accumulateFrom;
  accumulates = accumulateFrom < deepest;

  bool mayHoistEffects = true; // no loop may be empty
  for (unsigned loop : inner)
    mayHoistEffects &= extents[loop] > 0;

  for (OpOperand &operand : op->getOpOperands()) {
    unsigned level = deepest;
    if (!op.isDpsInit(&operand))
      level = mayHoistEffects ? getMapLevel(op.getMatchingIndexingMap(&operand))
                              : deepest;
    valueLevels[op.getMatchingBlockArgument(&operand)] = level;
  }
  for (Operation &nested : op.getBlock()->without_terminator()) {
    unsigned level = 0;
    if (auto index = dyn_cast<linalg::IndexOp>(nested)) {
      level = getLoopLevel(index.getDim());
    } else {
      nested.walk([&](Operation *part) {
        for (Value operand : part->getOperands())
          if (auto it = valueLevels.find(operand); it != valueLevels.end())
            level = std::max(level, it->second);
        if (auto index = dyn_cast<linalg::IndexOp>(part))
          level = std::max(level, getLoopLevel(index.getDim()));
      });
      if (!mayHoistEffects && !isPure(&nested))
        level = deepest;
    }
    opLevels[&nested] = level;
    for (Value result : nested.getResults())
      valueLevels[result] = level;
  }
}

Value LoopNestBuilder::getExtent(unsigned loop) {
  if (!ShapedType::isDynamic(extents[loop]))
    return arith::ConstantIndexOp::create(builder, loc, extents[loop]);
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    for (auto [position, expr] : llvm::enumerate(map.getResults())) {
      if (expr != getAffineDimExpr(loop, map.getContext()))
        continue;
      BufferAccess access = context.getBuffer(operand.get());
      unsigned kept = 0;
      for (unsigned p = 0; p < position; ++p)
        kept += !(p < access.dropped.size() && access.dropped[p]);
      return memref::DimOp::create(builder, loc, access.buffer, kept);
    }
  }
  llvm_unreachable("linalg verifies that every loop bounds some operand");
}

SmallVector<Value> LoopNestBuilder::getIndices(OpOperand &operand,
                                               const BufferAccess &access) {
  SmallVector<Value> indices;
  AffineMap map = op.getMatchingIndexingMap(&operand);
  for (auto [position, expr] : llvm::enumerate(map.getResults())) {
    if (position < access.dropped.size() && access.dropped[position])
      continue;
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      indices.push_back(variables[dim.getPosition()]);
    else
      indices.push_back(
          affine::expandAffineExpr(builder, loc, expr, variables, {}));
  }
  return indices;
}

Value LoopNestBuilder::loadOperand(OpOperand &operand) {
  if (!isa<MemRefType>(operand.get().getType()))
    return mapping.lookupOrDefault(operand.get());
  BufferAccess access = context.getBuffer(operand.get());
  return memref::LoadOp::create(
      builder, loc, access.buffer, getIndices(operand, access),
      /*nontemporal=*/false, getAlignment(operand, access));
}

bool isAlignedVector(MemRefType type, ArrayRef<AffineExpr> exprs, unsigned loop,
                     int64_t length) {
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (failed(type.getStridesAndOffset(strides, offset)) ||
      ShapedType::isDynamic(offset) || offset % length != 0)
    return false;
  AffineExpr dim = getAffineDimExpr(loop, type.getContext());
  return llvm::all_of(llvm::zip_equal(exprs, strides), [&](auto pair) {
    auto [expr, stride] = pair;
    if (ShapedType::isDynamic(stride))
      return false;
    AffineExpr inVectors = expr.replace(dim, dim * length);
    return stride % length == 0 || inVectors.isMultipleOf(length);
  });
}

llvm::Align getLaneAlignment(MemRefType type, int64_t length, int64_t lane) {
  uint64_t bytes = getElementBytes(type.getElementType());
  return llvm::commonAlignment(
      llvm::Align(std::min<uint64_t>(llvm::bit_floor(length * bytes), 16)),
      static_cast<uint64_t>(lane) * bytes);
}

/// What is known of an access in a lane; of what is the same in all, nothing.
llvm::MaybeAlign LoopNestBuilder::getAlignment(OpOperand &operand,
                                               const BufferAccess &access) {
  auto type = dyn_cast<MemRefType>(access.buffer.getType());
  AffineMap map = op.getMatchingIndexingMap(&operand);
  if (!lane || !type || !map.isFunctionOfDim(lane->loop))
    return {};
  SmallVector<AffineExpr> exprs;
  for (auto [position, expr] : llvm::enumerate(map.getResults()))
    if (!(position < access.dropped.size() && access.dropped[position]))
      exprs.push_back(expr);
  if (!isAlignedVector(type, exprs, lane->loop, lane->length))
    return {};
  return getLaneAlignment(type, lane->length, lane->lane);
}

/// Rows that are chosen by number begin at multiples of their length.
void LoopNestBuilder::alignGather(memref::LoadOp load) {
  MemRefType type = load.getMemRefType();
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (!lane || load.getIndices().empty() ||
      load.getIndices().back() != variables[lane->loop] ||
      failed(type.getStridesAndOffset(strides, offset)) ||
      strides.back() != 1 || ShapedType::isDynamic(offset) ||
      offset % lane->length != 0)
    return;
  if (llvm::all_of(ArrayRef(strides).drop_back(), [&](int64_t stride) {
        return !ShapedType::isDynamic(stride) && stride % lane->length == 0;
      }))
    load.setAlignment(getLaneAlignment(type, lane->length, lane->lane).value());
}

/// Whether an input is reduced along its last dimension.
static bool reducesRows(LinalgOp op) {
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  return llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *input) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (map.getNumResults() == 0)
      return false;
    auto last = dyn_cast<AffineDimExpr>(map.getResults().back());
    return last &&
           iterators[last.getPosition()] == utils::IteratorType::reduction;
  });
}

/// Whether the op is what makes the results' next values from their last ones,
/// in any order.
bool LoopNestBuilder::combinesInAnyOrder(Operation &nested) {
  return op.getNumReductionLoops() != 0 && reducesRows(op) &&
         llvm::any_of(nested.getOperands(), [&](Value operand) {
           auto argument = dyn_cast<BlockArgument>(operand);
           return argument && argument.getOwner() == op.getBlock() &&
                  argument.getArgNumber() >= op.getNumDpsInputs();
         });
}

void LoopNestBuilder::emitBodyOp(Operation &nested) {
  if (auto index = dyn_cast<linalg::IndexOp>(nested)) {
    mapping.map(index.getResult(), variables[index.getDim()]);
    return;
  }
  // A load from a buffer of the program (a gather) reads the kernel's view.
  nested.walk([&](memref::LoadOp load) {
    if (load.getMemRef().getParentRegion()->isAncestor(op->getParentRegion()))
      mapping.map(load.getMemRef(), context.getBuffer(load.getMemRef()).buffer);
  });
  Operation *clone = builder.clone(nested, mapping);
  clone->walk([&](linalg::IndexOp index) {
    index.getResult().replaceAllUsesWith(variables[index.getDim()]);
    index->erase();
  });
  if (auto load = dyn_cast<memref::LoadOp>(clone))
    alignGather(load);
  auto fastMath = dyn_cast<arith::ArithFastMathInterface>(clone);
  if (!fastMath || !combinesInAnyOrder(nested))
    return;
  arith::FastMathFlags flags = arith::FastMathFlags::reassoc;
  if (arith::FastMathFlagsAttr given = fastMath.getFastMathFlagsAttr())
    flags = flags | given.getValue();
  clone->setAttr(fastMath.getFastMathAttrName(),
                 arith::FastMathFlagsAttr::get(clone->getContext(), flags));
}

void LoopNestBuilder::emitLevel(unsigned level) {
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(&operand);
    if (argument.use_empty() || valueLevels[argument] != level ||
        mapping.contains(argument))
      continue;
    mapping.map(argument, loadOperand(operand));
  }
  for (Operation &nested : op.getBlock()->without_terminator())
    if (opLevels[&nested] == level)
      emitBodyOp(nested);
}

void LoopNestBuilder::storeResults() {
  for (auto [number, init] : llvm::enumerate(op.getDpsInitsMutable())) {
    BufferAccess access = context.getBuffer(init.get());
    PendingStore store{mapping.lookupOrDefault(yielded(number)), access.buffer,
                       getIndices(init, access), getAlignment(init, access)};
    SmallVectorImpl<PendingStore> *pending =
        lane ? lane->getPending(init.get()) : nullptr;
    if (pending)
      pending->push_back(std::move(store));
    else
      writePending(builder, loc, store);
  }
}

void writePending(OpBuilder &builder, Location loc,
                  ArrayRef<PendingStore> pending) {
  for (const PendingStore &store : pending)
    memref::StoreOp::create(builder, loc, store.value, store.buffer,
                            store.indices, /*nontemporal=*/false,
                            store.alignment);
}

/// What follows is done by the first thread of the block only.
void LoopNestBuilder::enterFirstThread() {
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        context.distribution->thread, zero);
  auto branch = scf::IfOp::create(builder, loc, isFirst);
  builder.setInsertionPoint(branch.thenBlock()->getTerminator());
}

/// Makes the results of the loops, which are each thread's own, the block's.
void LoopNestBuilder::combineShared() {
  for (unsigned number = 0; number < op.getNumDpsInits(); ++number) {
    Operation *combiner = getCombiner(op, number);
    Value all = context.distribution->reduce(
        builder, combiner, mapping.lookupOrDefault(yielded(number)));
    mapping.map(yielded(number),
                combineValues(builder, combiner, beforeShared[number], all));
  }
}

void LoopNestBuilder::openLoops(unsigned level) {
  if (level == accumulateFrom && accumulates) {
    // Accumulators: loaded here, carried through the remaining loops.
    beforeShared.clear();
    for (auto [number, init] : llvm::enumerate(op.getDpsInitsMutable())) {
      BlockArgument argument = op.getMatchingBlockArgument(&init);
      Value before = loadOperand(init);
      beforeShared.push_back(before);
      if (sharedReduces) {
        TypedAttr neutral = *arith::getNeutralElement(getCombiner(op, number));
        before = arith::ConstantOp::create(builder, loc, neutral);
      }
      mapping.map(argument, before);
    }
  }
  emitLevel(level);
  if (level == numLevels()) {
    if (!accumulates)
      storeResults();
    return;
  }
  SmallVector<Value> carried, results;
  bool carries = accumulates && level >= accumulateFrom;
  if (carries)
    for (OpOperand &init : op.getDpsInitsMutable())
      carried.push_back(mapping.lookup(op.getMatchingBlockArgument(&init)));
  auto writeBody = [&](ValueRange values) {
    if (carries)
      for (auto [init, value] :
           llvm::zip_equal(op.getDpsInitsMutable(), values))
        mapping.map(op.getMatchingBlockArgument(&init), value);
    openLoops(level + 1);
    SmallVector<Value> next;
    for (unsigned number = 0; carries && number < op.getNumDpsInits(); ++number)
      next.push_back(mapping.lookupOrDefault(yielded(number)));
    return next;
  };
  {
    OpBuilder::InsertionGuard guard(builder);
    openLoop(level, carried, writeBody, results);
  }
  variables[inner[level]] = Value();
  for (auto [number, result] : llvm::enumerate(results))
    mapping.map(yielded(number), result);
  if (carries && level == accumulateFrom) {
    OpBuilder::InsertionGuard guard(builder);
    if (sharedReduces) {
      combineShared();
      enterFirstThread();
    }
    storeResults();
  }
}

/// Iterations of a loop one after the other, without a loop: lane 0 says where
/// vectors begin, and stores wait for all loads.
SmallVector<Value> LoopNestBuilder::writeLanes(
    unsigned loop, Value first, int64_t length, ValueRange carried,
    llvm::function_ref<SmallVector<Value>(ValueRange)> body) {
  SmallVector<PendingStore> pending;
  auto getPending = [&](Value) { return &pending; };
  SmallVector<Value> next(carried);
  IRMapping before = mapping;
  auto noWrap = arith::IntegerOverflowFlagsAttr::get(
      builder.getContext(),
      arith::IntegerOverflowFlags::nsw | arith::IntegerOverflowFlags::nuw);
  for (int64_t number = 0; number < length; ++number) {
    mapping = before;
    lane = VectorLane{loop, length, number, getPending};
    variables[loop] = first;
    if (number > 0)
      variables[loop] = arith::AddIOp::create(
          builder, loc, first,
          arith::ConstantIndexOp::create(builder, loc, number), noWrap);
    next = body(next);
  }
  lane = context.lane;
  writePending(builder, loc, pending);
  return next;
}

/// One loop around `body`, which is given the values that are carried, and
/// gives the next ones.
void LoopNestBuilder::openLoop(
    unsigned level, ValueRange carried,
    llvm::function_ref<SmallVector<Value>(ValueRange)> body,
    SmallVectorImpl<Value> &results) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto open = [&](Value begin, Value end, Value step, ValueRange values) {
    auto loop = scf::ForOp::create(builder, loc, begin, end, step, values);
    if (values.empty())
      builder.setInsertionPoint(loop.getBody()->getTerminator());
    else
      builder.setInsertionPointToStart(loop.getBody());
    return loop;
  };
  auto close = [&](ArrayRef<Value> next) {
    if (!next.empty())
      scf::YieldOp::create(builder, loc, next);
  };
  if (context.lanes && context.lanes->loop == inner[level]) {
    results = writeLanes(inner[level], context.lanes->first,
                         context.lanes->length, carried, body);
    return;
  }
  Value extent = getExtent(inner[level]);
  bool isShared = shared && inner[level] == *shared;
  bool isInnermost = level + 1 == numLevels();
  int64_t vector = isShared && isInnermost ? context.distribution->vector : 1;
  Value begin = constant(0), step = constant(1);
  if (isShared) {
    begin = context.distribution->thread;
    step = constant(context.distribution->numThreads * vector);
  }
  auto noWrap = arith::IntegerOverflowFlagsAttr::get(
      builder.getContext(),
      arith::IntegerOverflowFlags::nsw | arith::IntegerOverflowFlags::nuw);
  if (vector > 1)
    begin =
        arith::MulIOp::create(builder, loc, begin, constant(vector), noWrap);
  scf::ForOp loop = open(begin, extent, step, carried);
  variables[inner[level]] = loop.getInductionVar();
  // Neighbours are accessed one after the other, with no loop in between.
  close(vector == 1 ? body(loop.getRegionIterArgs())
                    : writeLanes(inner[level], loop.getInductionVar(), vector,
                                 loop.getRegionIterArgs(), body));
  llvm::append_range(results, loop.getResults());
  builder.setInsertionPointAfter(loop);
}

Operation *getCombiner(LinalgOp op, unsigned result) {
  SmallVector<Operation *> combiners;
  if (!matchReduction(op.getRegionOutputArgs(), result, combiners) ||
      combiners.size() != 1 || combiners[0]->getNumOperands() != 2 ||
      combiners[0]->getNumResults() != 1 ||
      !arith::getNeutralElement(combiners[0]))
    return nullptr;
  return combiners[0];
}

Value combineValues(OpBuilder &builder, Operation *combiner, Value left,
                    Value right) {
  Operation *clone = builder.clone(*combiner);
  clone->setOperands({left, right});
  return clone->getResult(0);
}

void buildLoopNest(OpBuilder &builder, LinalgOp op,
                   const LoopNestContext &context) {
  LoopNestBuilder(builder, op, context).build();
}

} // namespace mlir::hyperparallel
