//===- OptimizeCollectives.cpp - merge, shrink and drop collectives -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What: the collectives of a local program that others make needless or
// smaller. In: local form. Out: local form, the same values on every device, no
//   more bytes and no more collectives than before.
// How, to a fixed point (each rule is a function below):
//   1. over a group of one                       -> the operand
//   2. all_gather(all_gather), all_reduce(all_reduce),
//      reduce_scatter(reduce_scatter), slice_local(slice_local) -> one of them
//   3. all_gather(reduce_scatter), same group    -> all_reduce
//   4. slice_local(all_gather), by the head of its group -> gather the rest
//   5. slice_local(all_reduce)                   -> reduce_scatter, or slice
//   first
//   6. all_to_all there and back                 -> the operand
//   7. permute(permute)                          -> one permute, or none
//   8. halo_exchange(halo_exchange), where exact -> one exchange
//   and, before and after, equal collectives of one operand become one.
// A rule that would need the inner collective twice is declined, and counted.
// Cost: linear in collectives, times the length of chains.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/HyperShard/Passes.h"

#include "lib/Analysis/TensorLayout.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::hyperparallel::hypershard {
#define GEN_PASS_DEF_OPTIMIZECOLLECTIVESPASS
#include "lib/Transforms/HyperShard/Passes.h.inc"
} // namespace mlir::hyperparallel::hypershard

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

namespace {
/// The meshes of the module, and what the rules did.
struct Context {
  DenseMap<Attribute, MeshAxes> meshes;
  int64_t dropped = 0, joined = 0, scattered = 0, sliced = 0, halos = 0;
  /// Ops whose operand is needed by others too, or whose windows do not
  /// compose; a set, because the driver may ask again.
  DenseSet<Operation *> declinedShared, declinedHalos;

  const MeshAxes &mesh(FlatSymbolRefAttr name) const {
    return meshes.find(name)->second;
  }
  template <typename OpTy>
  AxisList axesOf(OpTy op) const {
    return mesh(op.getMeshAttr()).fromAttrs(op.getAxes());
  }
  template <typename OpTy>
  ArrayAttr attrOf(OpTy op, ArrayRef<Axis> axes) const {
    return mesh(op.getMeshAttr()).toArrayAttr(mergeAxes(axes));
  }
};

using Rewriter = PatternRewriter;

/// A rule as a pattern.
template <typename OpTy>
struct Rule final : OpRewritePattern<OpTy> {
  using Function = LogicalResult (*)(OpTy, Rewriter &, Context &);
  Rule(MLIRContext *mlirContext, Function apply, Context &context)
      : OpRewritePattern<OpTy>(mlirContext), apply(apply), context(context) {}

  LogicalResult matchAndRewrite(OpTy op, Rewriter &rewriter) const override {
    // Global form is not ours to change: its layouts would have to change too.
    if (op->hasAttr(HyperShardDialect::kShardingAttrName))
      return failure();
    return apply(op, rewriter, context);
  }
  Function apply;
  Context &context;
};
} // namespace

/// The inner op of a chain on one mesh, if it is of that kind, `fits`, and only
/// `outer` reads it.
template <typename InnerTy, typename OuterTy>
static InnerTy innerOf(OuterTy outer, Context &context,
                       function_ref<bool(InnerTy)> fits) {
  auto inner = outer.getInput().template getDefiningOp<InnerTy>();
  if (!inner || inner.getMeshAttr() != outer.getMeshAttr() ||
      inner->hasAttr(HyperShardDialect::kShardingAttrName) || !fits(inner))
    return {};
  if (inner->hasOneUse())
    return inner;
  context.declinedShared.insert(outer);
  return {};
}

/// `a`, then `b`; nullopt if an axis occurs in both.
static std::optional<AxisList> concatenate(AxisList a, ArrayRef<Axis> b) {
  if (overlaps(a, b))
    return std::nullopt;
  a.append(b.begin(), b.end());
  return a;
}

//===----------------------------------------------------------------------===//
// 1. Groups of one
//===----------------------------------------------------------------------===//

template <typename OpTy>
static LogicalResult dropGroupOfOne(OpTy op, Rewriter &rewriter,
                                    Context &context) {
  if (numShards(context.axesOf(op)) != 1 ||
      op.getType() != op.getInput().getType())
    return failure();
  ++context.dropped;
  rewriter.replaceOp(op, op.getInput());
  return success();
}

/// A window that is every device's own block, and no block has padding.
static LogicalResult dropOwnBlock(HaloExchangeOp op, Rewriter &rewriter,
                                  Context &context) {
  int64_t block = op.getInput().getType().getDimSize(op.getDim());
  int64_t members = numShards(context.axesOf(op));
  bool ownBlock = op.getSize() == block && op.getLo() == 0 &&
                  (members == 1 || op.getStride() == block);
  if (!ownBlock || block * members != static_cast<int64_t>(op.getGlobalSize()))
    return failure();
  ++context.dropped;
  rewriter.replaceOp(op, op.getInput());
  return success();
}

//===----------------------------------------------------------------------===//
// 2. Two of a kind
//===----------------------------------------------------------------------===//

static LogicalResult joinGathers(AllGatherOp op, Rewriter &rewriter,
                                 Context &context) {
  auto inner = innerOf<AllGatherOp>(op, context, [&](AllGatherOp other) {
    return other.getDim() == op.getDim();
  });
  if (!inner)
    return failure();
  auto axes = concatenate(context.axesOf(op), context.axesOf(inner));
  if (!axes)
    return failure();
  ++context.joined;
  rewriter.replaceOpWithNewOp<AllGatherOp>(
      op, op.getType(), inner.getInput(), op.getMeshAttr(),
      context.attrOf(op, *axes), op.getDimAttr());
  return success();
}

static LogicalResult joinReduces(AllReduceOp op, Rewriter &rewriter,
                                 Context &context) {
  auto inner = innerOf<AllReduceOp>(op, context, [&](AllReduceOp other) {
    return other.getKind() == op.getKind();
  });
  if (!inner)
    return failure();
  auto axes = concatenate(context.axesOf(op), context.axesOf(inner));
  if (!axes)
    return failure();
  llvm::sort(*axes);
  ++context.joined;
  rewriter.replaceOpWithNewOp<AllReduceOp>(
      op, op.getType(), inner.getInput(), op.getMeshAttr(),
      context.attrOf(op, *axes), op.getKindAttr());
  return success();
}

static LogicalResult joinScatters(ReduceScatterOp op, Rewriter &rewriter,
                                  Context &context) {
  auto inner =
      innerOf<ReduceScatterOp>(op, context, [&](ReduceScatterOp other) {
        return other.getKind() == op.getKind() && other.getDim() == op.getDim();
      });
  if (!inner)
    return failure();
  auto axes = concatenate(context.axesOf(inner), context.axesOf(op));
  if (!axes)
    return failure();
  ++context.joined;
  rewriter.replaceOpWithNewOp<ReduceScatterOp>(
      op, op.getType(), inner.getInput(), op.getMeshAttr(),
      context.attrOf(op, *axes), op.getKindAttr(), op.getDimAttr());
  return success();
}

static LogicalResult joinSlices(SliceLocalOp op, Rewriter &rewriter,
                                Context &context) {
  auto inner = innerOf<SliceLocalOp>(op, context, [&](SliceLocalOp other) {
    return other.getDim() == op.getDim();
  });
  if (!inner)
    return failure();
  auto axes = concatenate(context.axesOf(inner), context.axesOf(op));
  // The blocks of the one slice are those of the two.
  int64_t size = inner.getInput().getType().getDimSize(op.getDim());
  if (!axes ||
      numShards(context.axesOf(op)) * blockSize(size, numShards(*axes)) !=
          inner.getType().getDimSize(op.getDim()))
    return failure();
  ++context.joined;
  rewriter.replaceOpWithNewOp<SliceLocalOp>(
      op, op.getType(), inner.getInput(), op.getMeshAttr(),
      context.attrOf(op, *axes), op.getDimAttr());
  return success();
}

//===----------------------------------------------------------------------===//
// 3 to 5. Reductions, gathers and slices that meet
//===----------------------------------------------------------------------===//

static LogicalResult gatherOfScatter(AllGatherOp op, Rewriter &rewriter,
                                     Context &context) {
  auto inner =
      innerOf<ReduceScatterOp>(op, context, [&](ReduceScatterOp other) {
        return other.getDim() == op.getDim() &&
               context.axesOf(other) == context.axesOf(op);
      });
  if (!inner)
    return failure();
  AxisList axes = context.axesOf(op);
  llvm::sort(axes);
  ++context.joined;
  rewriter.replaceOpWithNewOp<AllReduceOp>(
      op, op.getType(), inner.getInput(), op.getMeshAttr(),
      context.attrOf(op, axes), inner.getKindAttr());
  return success();
}

static LogicalResult sliceOfGather(SliceLocalOp op, Rewriter &rewriter,
                                   Context &context) {
  auto inner = op.getInput().getDefiningOp<AllGatherOp>();
  if (!inner || inner.getMeshAttr() != op.getMeshAttr() ||
      inner.getDim() != op.getDim())
    return failure();
  auto rest = removePrefix(context.axesOf(inner), context.axesOf(op));
  if (!rest)
    return failure();
  if (rest->empty()) {
    // Free, whoever else reads the gather.
    ++context.sliced;
    rewriter.replaceOp(op, inner.getInput());
    return success();
  }
  if (!innerOf<AllGatherOp>(op, context, [](AllGatherOp) { return true; }))
    return failure();
  ++context.sliced;
  rewriter.replaceOpWithNewOp<AllGatherOp>(
      op, op.getType(), inner.getInput(), op.getMeshAttr(),
      context.attrOf(op, *rest), op.getDimAttr());
  return success();
}

/// The value with zeros at the end of a dimension, as slice_local has them.
static Value padTo(Rewriter &rewriter, Location loc, Value value, int64_t dim,
                   int64_t size) {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t missing = size - type.getDimSize(dim);
  if (missing == 0)
    return value;
  SmallVector<OpFoldResult> low(type.getRank(), rewriter.getIndexAttr(0));
  SmallVector<OpFoldResult> high = low;
  high[dim] = rewriter.getIndexAttr(missing);
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  Value zero = arith::ConstantOp::create(
      rewriter, loc, rewriter.getZeroAttr(type.getElementType()));
  return tensor::PadOp::create(rewriter, loc, type.clone(shape), value, low,
                               high, zero);
}

static LogicalResult sliceOfReduce(SliceLocalOp op, Rewriter &rewriter,
                                   Context &context) {
  auto inner =
      innerOf<AllReduceOp>(op, context, [](AllReduceOp) { return true; });
  if (!inner)
    return failure();
  AxisList sliced = context.axesOf(op), reduced = context.axesOf(inner);
  FlatSymbolRefAttr mesh = op.getMeshAttr();
  if (!overlaps(sliced, reduced)) {
    // All members of a reduction keep the same block: reduce that only.
    Value slice = SliceLocalOp::create(rewriter, op.getLoc(), op.getType(),
                                       inner.getInput(), mesh, op.getAxesAttr(),
                                       op.getDimAttr());
    ++context.sliced;
    rewriter.replaceOpWithNewOp<AllReduceOp>(op, op.getType(), slice, mesh,
                                             inner.getAxesAttr(),
                                             inner.getKindAttr());
    return success();
  }
  // The slice's axes are whole axes of the reduction: those that are left are
  // reduced afterwards, on the smaller value.
  AxisList rest = reduced;
  for (Axis axis : sliced) {
    auto it = llvm::find(rest, axis);
    if (it == rest.end())
      return failure();
    rest.erase(it);
  }
  int64_t dim = op.getDim();
  Value padded = padTo(rewriter, op.getLoc(), inner.getInput(), dim,
                       op.getType().getDimSize(dim) * numShards(sliced));
  Value result = ReduceScatterOp::create(rewriter, op.getLoc(), op.getType(),
                                         padded, mesh, op.getAxesAttr(),
                                         inner.getKindAttr(), op.getDimAttr());
  if (!rest.empty())
    result =
        AllReduceOp::create(rewriter, op.getLoc(), op.getType(), result, mesh,
                            context.attrOf(op, rest), inner.getKindAttr());
  ++context.scattered;
  rewriter.replaceOp(op, result);
  return success();
}

//===----------------------------------------------------------------------===//
// 6 and 7. There and back
//===----------------------------------------------------------------------===//

static LogicalResult exchangeBack(AllToAllOp op, Rewriter &rewriter,
                                  Context &context) {
  auto inner = op.getInput().getDefiningOp<AllToAllOp>();
  if (!inner || inner.getMeshAttr() != op.getMeshAttr() ||
      inner.getSplitDim() != op.getConcatDim() ||
      inner.getConcatDim() != op.getSplitDim() ||
      context.axesOf(inner) != context.axesOf(op))
    return failure();
  context.dropped += inner->hasOneUse() ? 2 : 1;
  rewriter.replaceOp(op, inner.getInput());
  return success();
}

static LogicalResult composePermutes(PermuteOp op, Rewriter &rewriter,
                                     Context &context) {
  const MeshAxes &mesh = context.mesh(op.getMeshAttr());
  if (context.axesOf(op) == mesh.fromAttrs(op.getToAxes())) {
    ++context.dropped;
    rewriter.replaceOp(op, op.getInput());
    return success();
  }
  auto inner = innerOf<PermuteOp>(op, context, [&](PermuteOp other) {
    return mesh.fromAttrs(other.getToAxes()) == context.axesOf(op);
  });
  if (!inner)
    return failure();
  ++context.joined;
  rewriter.replaceOpWithNewOp<PermuteOp>(op, op.getType(), inner.getInput(),
                                         op.getMeshAttr(), inner.getAxesAttr(),
                                         op.getToAxesAttr());
  return success();
}

//===----------------------------------------------------------------------===//
// 8. Windows of windows
//===----------------------------------------------------------------------===//

/// The inner exchange gives every device consecutive blocks: it is a shift by
/// `lo`, with zeros where the inner dimension ends. One exchange does both if
/// no window of the outer one reads a value that the shift cut off.
static LogicalResult composeHalos(HaloExchangeOp op, Rewriter &rewriter,
                                  Context &context) {
  auto inner = innerOf<HaloExchangeOp>(op, context, [&](HaloExchangeOp other) {
    return other.getDim() == op.getDim() &&
           context.axesOf(other) == context.axesOf(op);
  });
  if (!inner)
    return failure();
  int64_t members = numShards(context.axesOf(op));
  int64_t lo = inner.getLo(), size = inner.getGlobalSize();
  int64_t outerSize = op.getGlobalSize();
  int64_t first = op.getLo();
  int64_t end = first + (members - 1) * op.getStride() + op.getSize();
  bool isShift = inner.getStride() == inner.getSize();
  // What lies outside the outer dimension must lie outside the inner one too.
  bool headIsZero = first >= 0 || lo <= 0;
  bool tailIsZero = end <= outerSize || outerSize + lo >= size;
  if (!isShift || !headIsZero || !tailIsZero) {
    context.declinedHalos.insert(op);
    return failure();
  }
  ++context.halos;
  rewriter.replaceOpWithNewOp<HaloExchangeOp>(
      op, op.getType(), inner.getInput(), op.getMeshAttr(), op.getAxesAttr(),
      op.getDimAttr(), inner.getGlobalSizeAttr(), op.getStrideAttr(),
      rewriter.getI64IntegerAttr(first + lo), op.getSizeAttr());
  return success();
}

//===----------------------------------------------------------------------===//
// Equal collectives
//===----------------------------------------------------------------------===//

static bool isCollective(Operation *op) {
  return isa<AllGatherOp, AllReduceOp, ReduceScatterOp, AllToAllOp, PermuteOp,
             SliceLocalOp, HaloExchangeOp, AxisIndexOp>(op);
}

/// Equal collectives of one operand become the one that comes first.
static int64_t mergeEqual(ModuleOp module) {
  // Operand, or for axis_index, which has none, the function.
  using Key = std::tuple<const void *, StringRef, DictionaryAttr>;
  DenseMap<Key, SmallVector<Operation *, 1>> known;
  DominanceInfo dominance;
  SmallVector<Operation *> merged;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!isCollective(op))
      return;
    const void *source =
        op->getNumOperands() != 0
            ? op->getOperand(0).getAsOpaquePointer()
            : op->getParentOfType<FunctionOpInterface>().getOperation();
    Key key(source, op->getName().getStringRef(), op->getAttrDictionary());
    SmallVector<Operation *, 1> &others = known[key];
    for (Operation *other : others)
      if (dominance.properlyDominates(other, op)) {
        op->replaceAllUsesWith(other);
        merged.push_back(op);
        return;
      }
    others.push_back(op);
  });
  for (Operation *op : merged)
    op->erase();
  return merged.size();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

template <typename... OpTys>
static void addDropRules(RewritePatternSet &patterns, Context &context) {
  (patterns.add<Rule<OpTys>>(patterns.getContext(), dropGroupOfOne<OpTys>,
                             context),
   ...);
}

template <typename OpTy>
static void addRule(RewritePatternSet &patterns,
                    typename Rule<OpTy>::Function apply, Context &context) {
  patterns.add<Rule<OpTy>>(patterns.getContext(), apply, context);
}

namespace {
struct OptimizeCollectivesPass final
    : hypershard::impl::OptimizeCollectivesPassBase<OptimizeCollectivesPass> {
  void runOnOperation() override;
};
} // namespace

void OptimizeCollectivesPass::runOnOperation() {
  ModuleOp module = getOperation();
  Context context;
  for (auto mesh : module.getOps<MeshOp>())
    context.meshes.try_emplace(FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
                               MeshAxes(mesh.getMesh()));
  if (context.meshes.empty())
    return markAllAnalysesPreserved();

  RewritePatternSet patterns(&getContext());
  addDropRules<AllGatherOp, AllReduceOp, ReduceScatterOp, AllToAllOp, PermuteOp,
               SliceLocalOp>(patterns, context);
  addRule<HaloExchangeOp>(patterns, dropOwnBlock, context);
  addRule<AllGatherOp>(patterns, joinGathers, context);
  addRule<AllReduceOp>(patterns, joinReduces, context);
  addRule<ReduceScatterOp>(patterns, joinScatters, context);
  addRule<SliceLocalOp>(patterns, joinSlices, context);
  addRule<AllGatherOp>(patterns, gatherOfScatter, context);
  addRule<SliceLocalOp>(patterns, sliceOfGather, context);
  addRule<SliceLocalOp>(patterns, sliceOfReduce, context);
  addRule<AllToAllOp>(patterns, exchangeBack, context);
  addRule<PermuteOp>(patterns, composePermutes, context);
  addRule<HaloExchangeOp>(patterns, composeHalos, context);

  numMerged += mergeEqual(module);
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  config.enableConstantCSE(false);
  // Stopping early would leave a program that is right, only not as good.
  (void)applyPatternsGreedily(module, std::move(patterns), config);
  numMerged += mergeEqual(module);

  numDropped += context.dropped;
  numJoined += context.joined;
  numScattered += context.scattered;
  numSliced += context.sliced;
  numHalosComposed += context.halos;
  numDeclinedShared += context.declinedShared.size();
  numDeclinedHalos += context.declinedHalos.size();
}
