//===- HyperMPMDOps.cpp - verifiers, interfaces, canonicalizations --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/HyperMPMD/HyperMPMD.h"

#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypermpmd;

#define GET_OP_CLASSES
#include "dialects/HyperMPMD/HyperMPMDOps.cpp.inc"

/// The topology around the op, and that it has the group.
static FailureOr<TopologyAttr> verifyGroup(Operation *op, StringRef group) {
  TopologyAttr topology = getTopology(op);
  if (!topology)
    return op->emitOpError()
           << "expected a module with `" << HyperMPMDDialect::kTopologyAttrName
           << "` around it, which names the device groups";
  if (!topology.getGroup(group))
    return op->emitOpError() << "expected a device group of " << topology
                             << " but got \"" << group << '"';
  return topology;
}

//===----------------------------------------------------------------------===//
// Fragment
//===----------------------------------------------------------------------===//

YieldOp FragmentOp::getYield() {
  return cast<YieldOp>(getBody().front().getTerminator());
}

LogicalResult FragmentOp::verify() {
  if (failed(verifyGroup(*this, getGroup())))
    return failure();
  auto isNegative = [](IntegerAttr number) {
    return number && number.getInt() < 0;
  };
  if (isNegative(getStageAttr()) || isNegative(getMicrobatchAttr()))
    return emitOpError("expected stage and microbatch to be at least 0");
  return success();
}

LogicalResult FragmentOp::verifyRegions() {
  TypeRange arguments = getBody().getArgumentTypes();
  if (arguments != getInputs().getTypes())
    return emitOpError() << "expected the body's arguments to have the types "
                            "of the operands, ("
                         << getInputs().getTypes() << "), but got ("
                         << arguments << ')';
  TypeRange yielded = getYield().getValues().getTypes();
  if (yielded != getOutputs().getTypes())
    return emitOpError() << "expected the body to yield the types of the "
                            "results, ("
                         << getOutputs().getTypes() << "), but got (" << yielded
                         << ')';
  return success();
}

/// A result that is an operand as it came, or one of another result.
static LogicalResult forwardOperands(FragmentOp op, PatternRewriter &rewriter) {
  Block &body = op.getBody().front();
  bool changed = false;
  DenseMap<Value, Value> first;
  for (auto [result, value] :
       llvm::zip_equal(op.getOutputs(), op.getYield().getValues())) {
    auto argument = dyn_cast<BlockArgument>(value);
    bool isOperand = argument && argument.getOwner() == &body;
    auto [known, isNew] = first.try_emplace(value, result);
    if (result.use_empty() || (!isOperand && isNew))
      continue;
    rewriter.replaceAllUsesWith(
        result,
        isOperand ? op.getInputs()[argument.getArgNumber()] : known->second);
    changed = true;
  }
  return success(changed);
}

/// Drops operands that the body does not read, or has twice, and results that
/// nobody uses.
static LogicalResult dropUnused(FragmentOp op, PatternRewriter &rewriter) {
  Block &body = op.getBody().front();
  YieldOp yield = op.getYield();
  llvm::BitVector keptResults(op.getNumResults()),
      dropped(op->getNumOperands());
  for (auto [index, result] : llvm::enumerate(op.getOutputs()))
    keptResults[index] = !result.use_empty();
  SmallVector<Value> values;
  for (unsigned index : keptResults.set_bits())
    values.push_back(yield.getValues()[index]);
  DenseMap<Value, BlockArgument> known;
  bool merges = false;
  for (auto [input, argument] :
       llvm::zip_equal(op.getInputs(), body.getArguments())) {
    auto [it, isNew] = known.try_emplace(input, argument);
    if (!isNew && !argument.use_empty()) {
      rewriter.replaceAllUsesWith(argument, it->second);
      merges = true;
    }
  }
  if (values.size() != yield.getNumOperands())
    rewriter.modifyOpInPlace(yield,
                             [&] { yield.getValuesMutable().assign(values); });
  for (BlockArgument argument : body.getArguments())
    dropped[argument.getArgNumber()] = argument.use_empty();
  if (dropped.none() && keptResults.all())
    return success(merges);

  SmallVector<Value> inputs;
  SmallVector<Type> types;
  for (auto [index, input] : llvm::enumerate(op.getInputs()))
    if (!dropped[index])
      inputs.push_back(input);
  for (unsigned index : keptResults.set_bits())
    types.push_back(op.getResult(index).getType());
  auto made = FragmentOp::create(
      rewriter, op.getLoc(), types, op.getGroupAttr(), op.getStageAttr(),
      op.getMicrobatchAttr(), op.getKindAttr(), inputs);
  made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  rewriter.modifyOpInPlace(op, [&] { body.eraseArguments(dropped); });
  rewriter.inlineRegionBefore(op.getBody(), made.getBody(),
                              made.getBody().end());
  SmallVector<Value> replacements(op.getNumResults());
  for (auto [index, old] : llvm::enumerate(keptResults.set_bits()))
    replacements[old] = made.getResult(index);
  for (auto [result, value] : llvm::zip(op.getResults(), replacements))
    if (value)
      rewriter.replaceAllUsesWith(result, value);
  rewriter.eraseOp(op);
  return success();
}

void FragmentOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                             MLIRContext *) {
  patterns.add(forwardOperands);
  patterns.add(dropUnused);
}

//===----------------------------------------------------------------------===//
// Transfer
//===----------------------------------------------------------------------===//

OpCost TransferOp::getCost() { return OpCost(); }

LogicalResult TransferOp::verify() {
  FailureOr<TopologyAttr> topology = verifyGroup(*this, getSource());
  if (failed(topology) || failed(verifyGroup(*this, getTarget())))
    return failure();
  if (getSource() == getTarget())
    return emitOpError() << "expected two device groups but got \""
                         << getSource() << "\" twice";
  return success();
}

/// There and back: the value itself.
OpFoldResult TransferOp::fold(FoldAdaptor) {
  auto before = getInput().getDefiningOp<TransferOp>();
  if (before && before.getTarget() == getSource() &&
      before.getSource() == getTarget())
    return before.getInput();
  return {};
}

/// Over another group: straight from where the value was made.
static LogicalResult goStraight(TransferOp op, PatternRewriter &rewriter) {
  auto before = op.getInput().getDefiningOp<TransferOp>();
  if (!before || before.getTarget() != op.getSource() ||
      before.getSource() == op.getTarget())
    return failure();
  rewriter.modifyOpInPlace(op, [&] {
    op.getInputMutable().assign(before.getInput());
    op.setSource(before.getSource());
  });
  return success();
}

void TransferOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                             MLIRContext *) {
  patterns.add(goStraight);
}

//===----------------------------------------------------------------------===//
// Send and receive
//===----------------------------------------------------------------------===//

SmallVector<RouteBlock> hypermpmd::readRoute(ArrayRef<int64_t> route,
                                             int64_t rank) {
  SmallVector<RouteBlock> blocks;
  while (route.size() >= size_t(2 + 2 * rank)) {
    blocks.push_back({route[0], route[1], route.slice(2, rank),
                      route.slice(2 + rank, rank)});
    route = route.drop_front(2 + 2 * rank);
  }
  return blocks;
}

static LogicalResult verifyRoute(Operation *op, ArrayRef<int64_t> route,
                                 int64_t rank, int64_t mine, int64_t theirs) {
  if (route.size() % (2 + 2 * rank) != 0)
    return op->emitOpError()
           << "expected a route of " << 2 + 2 * rank
           << " numbers for each block but got " << route.size();
  int64_t previous = 0;
  for (const RouteBlock &block : readRoute(route, rank)) {
    if (block.mine < previous || block.mine >= mine)
      return op->emitOpError() << "expected the blocks' devices in its group "
                                  "to ascend below "
                               << mine << " but got " << block.mine;
    if (block.theirs < 0 || block.theirs >= theirs)
      return op->emitOpError() << "expected a device of the peer, below "
                               << theirs << ", but got " << block.theirs;
    for (auto [offset, size] : llvm::zip_equal(block.offsets, block.sizes))
      if (offset < 0 || size < 1)
        return op->emitOpError()
               << "expected blocks to begin at 0 or later and to have at least "
                  "one element but got "
               << offset << " and " << size;
    previous = block.mine;
  }
  return success();
}

/// The group whose program the op is in, by the module or function around it.
static StringAttr getOwnGroup(Operation *op) {
  for (op = op->getParentOp(); op; op = op->getParentOp())
    if (auto group =
            op->getAttrOfType<StringAttr>(HyperMPMDDialect::kGroupAttrName))
      return group;
  return {};
}

template <typename OpTy>
static LogicalResult verifyMessage(OpTy op, Type type) {
  StringAttr own = getOwnGroup(op);
  if (!own)
    return op.emitOpError() << "expected the program of one device group: a "
                               "module with `"
                            << HyperMPMDDialect::kGroupAttrName << '`';
  FailureOr<TopologyAttr> topology = verifyGroup(op, op.getPeer());
  if (failed(topology))
    return failure();
  if (own.getValue() == op.getPeer())
    return op.emitOpError()
           << "expected another device group than its own, " << own;
  GroupAttr group = topology->getGroup(own.getValue());
  if (!op.getRoute() || !group)
    return success();
  return verifyRoute(
      op, *op.getRoute(), cast<RankedTensorType>(type).getRank(),
      group.getMesh().getNumDevices(),
      topology->getGroup(op.getPeer()).getMesh().getNumDevices());
}

LogicalResult SendOp::verify() {
  return verifyMessage(*this, getInput().getType());
}
LogicalResult RecvOp::verify() {
  return verifyMessage(*this, getResult().getType());
}

OpCost SendOp::getCost() { return OpCost(); }
OpCost RecvOp::getCost() { return OpCost(); }

/// What the busiest device of either group sends or receives: the same on both
/// sides. All of the value before routes are known.
static double messageBytes(std::optional<ArrayRef<int64_t>> route,
                           RankedTensorType type) {
  double whole = byteSize(type);
  if (!route || type.getNumElements() == 0)
    return whole;
  DenseMap<int64_t, int64_t> mine, theirs;
  int64_t most = 0;
  for (const RouteBlock &block : readRoute(*route, type.getRank())) {
    int64_t elements = ShapedType::getNumElements(block.sizes);
    most = std::max(
        {most, mine[block.mine] += elements, theirs[block.theirs] += elements});
  }
  return whole / type.getNumElements() * most;
}

Movement SendOp::getMovement() {
  Movement movement;
  movement.kind = Movement::Kind::Send;
  movement.peer = getPeer();
  movement.tag = getTag();
  movement.bytes =
      messageBytes(getRoute(), cast<RankedTensorType>(getInput().getType()));
  return movement;
}

Movement RecvOp::getMovement() {
  Movement movement;
  movement.kind = Movement::Kind::Receive;
  movement.peer = getPeer();
  movement.tag = getTag();
  movement.bytes =
      messageBytes(getRoute(), cast<RankedTensorType>(getResult().getType()));
  return movement;
}

/// Any dimension may be split any way.
static SmallVector<SmallVector<unsigned, 2>, 4>
splitFreely(ShardingRule &rule, RankedTensorType type) {
  SmallVector<SmallVector<unsigned, 2>, 4> dims;
  for (int64_t size : type.getShape()) {
    auto &dim = dims.emplace_back();
    if (size != 1)
      dim.push_back(rule.addFactor(size));
  }
  return dims;
}

ShardingRule SendOp::getShardingRule() {
  ShardingRule rule;
  auto dims = splitFreely(rule, cast<RankedTensorType>(getInput().getType()));
  rule.operands.push_back({getInput(), {&getInputMutable()}, std::move(dims)});
  return rule;
}

ShardingRule RecvOp::getShardingRule() {
  ShardingRule rule;
  auto dims = splitFreely(rule, cast<RankedTensorType>(getResult().getType()));
  rule.results.push_back({getResult(), {}, std::move(dims)});
  return rule;
}

static LogicalResult refuseWithoutRoute(Operation *op) {
  return op->emitOpError("expected a route, which says what goes from which "
                         "device to which; run hypermpmd-resolve-transfers "
                         "first");
}

LogicalResult SendOp::partition(PartitionContext &context) {
  if (!getRouteAttr())
    return refuseWithoutRoute(*this);
  SendOp::create(context.builder(), getLoc(), context.local(getInput()),
                 getPeerAttr(), getTagAttr(), getRouteAttr());
  return success();
}

LogicalResult RecvOp::partition(PartitionContext &context) {
  if (!getRouteAttr())
    return refuseWithoutRoute(*this);
  context.setResult(getResult(), RecvOp::create(context.builder(), getLoc(),
                                                context.localType(getResult()),
                                                getPeerAttr(), getTagAttr(),
                                                getRouteAttr()));
  return success();
}
