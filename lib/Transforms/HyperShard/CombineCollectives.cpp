//===- CombineCollectives.cpp - one collective for several small ones -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What: small collectives of one moment become one, of their operands put in a
// row: the biases and norms of a layer are gathered together, and so are their
// gradients reduced.
//
//   all_gather       x: [n], y: [m]      -> [n + m] -> [P, n + m], by columns
//   reduce_scatter   x: [P n], y: [P m]  -> [P, n + m] -> [n + m]
//   all_reduce       x: [n], y: [m]      -> [n + m] -> [n + m]
//
// In, out: local form; the same values, bit for bit: what is added up, and in
// which order, is the same for each element.
// How, for each block, in one walk:
//   1. a collective joins the open bucket of its kind, group, reduction and
//      element type if the launch and the latency that it saves are more than
//      two kernels that copy its operand in and its result out;
//   2. an op that reads a result of a bucket closes it, and so do an op that
//      takes time, beside which the collectives would have run, and the block's
//      end: a bucket of several becomes one collective where its last member
//      is; what it gave is taken out where it is first read.
// Cost: linear in ops, times the depth of regions.
// Limits: gathered and scattered dimensions must be the first that is not 1.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/HyperShard/Passes.h"

#include "dialects/Stream/Stream.h"
#include "dialects/Supernode/Supernode.h"
#include "lib/Analysis/CollectiveOps.h"
#include "lib/Analysis/CostModel.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::hyperparallel::hypershard {
#define GEN_PASS_DEF_COMBINECOLLECTIVESPASS
#include "lib/Transforms/HyperShard/Passes.h.inc"
} // namespace mlir::hyperparallel::hypershard

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

namespace {
using Bucket = SmallVector<Operation *>;
/// Op, mesh, axes, reduction (or null), element type.
using BucketKey = std::tuple<Attribute, Attribute, Attribute, Attribute, Type>;

struct CombineCollectivesPass final
    : hypershard::impl::CombineCollectivesPassBase<CombineCollectivesPass> {
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<HyperShardDialect, tensor::TensorDialect,
                    supernode::SupernodeDialect>();
  }
  void runOnOperation() override;

private:
  void visit(Block &block, CostModel &model);
  bool isWorthIt(Operation *op, CostModel &model);
  void close(Bucket &bucket);
};
} // namespace

//===----------------------------------------------------------------------===//
// Putting values in a row
//===----------------------------------------------------------------------===//

static RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// The same elements as `shape`, which has one dimension or two.
static Value reshape(OpBuilder &builder, Location loc, Value value,
                     ArrayRef<int64_t> shape) {
  auto type = tensorType(value);
  if (type.getShape() == shape)
    return value;
  auto result = type.clone(shape);
  auto all = [](size_t rank) {
    SmallVector<ReassociationIndices, 1> groups;
    if (rank > 0)
      groups.push_back(
          llvm::to_vector<2>(llvm::seq<int64_t>(0, int64_t(rank))));
    return groups;
  };
  if (shape.size() == 1 && type.getRank() == 0)
    return tensor::ExpandShapeOp::create(builder, loc, result, value, all(0));
  if (shape.size() == 0)
    return tensor::CollapseShapeOp::create(
        builder, loc, result, reshape(builder, loc, value, {1}), all(0));
  if (type.getRank() == 1)
    return tensor::ExpandShapeOp::create(builder, loc, result, value,
                                         all(shape.size()));
  Value flat =
      tensor::CollapseShapeOp::create(builder, loc, value, all(type.getRank()));
  return reshape(builder, loc, flat, shape);
}

/// How the members of a bucket lie in its row: the operand as [inRows, inSize],
/// the result as [outRows, outSize].
struct Row {
  int64_t inRows = 1, outRows = 1;

  SmallVector<int64_t> shapeOf(int64_t rows, int64_t size) const {
    return rows == 1 ? SmallVector<int64_t>{size}
                     : SmallVector<int64_t>{rows, size};
  }
};

/// Offsets, sizes and steps of a part of a row.
struct Part {
  SmallVector<OpFoldResult, 2> offsets, sizes, steps;

  Part(OpBuilder &builder, int64_t rows, int64_t offset, int64_t size) {
    if (rows != 1) {
      offsets.push_back(builder.getIndexAttr(0));
      sizes.push_back(builder.getIndexAttr(rows));
    }
    offsets.push_back(builder.getIndexAttr(offset));
    sizes.push_back(builder.getIndexAttr(size));
    steps.assign(offsets.size(), builder.getIndexAttr(1));
  }
};

/// The first op of the block that reads the result; null if none does.
static Operation *firstReader(Operation *op) {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers()) {
    Operation *here = op->getBlock()->findAncestorOpInBlock(*user);
    if (here && (!first || here->isBeforeInBlock(first)))
      first = here;
  }
  return first;
}

/// The collective of the row, with what all members say of themselves.
static Operation *createLike(OpBuilder &builder, const Bucket &bucket,
                             Value row, RankedTensorType type) {
  Operation *last = bucket.back();
  OperationState state(last->getLoc(), last->getName(), row, type,
                       last->getAttrs());
  Operation *made = builder.create(state);
  if (made->hasAttr("dim"))
    made->setAttr("dim", builder.getI64IntegerAttr(0));
  for (StringRef name : {"hp.path", "hp.phase"})
    if (llvm::any_of(bucket, [&](Operation *op) {
          return op->getAttr(name) != last->getAttr(name);
        }))
      made->removeAttr(name);
  return made;
}

void CombineCollectivesPass::close(Bucket &bucket) {
  llvm::erase_if(bucket, [](Operation *op) { return op->use_empty(); });
  if (bucket.size() < 2)
    return bucket.clear();
  Operation *last = bucket.back();
  Location loc = last->getLoc();
  OpBuilder builder(last);

  Row row;
  auto first = bucket.front();
  int64_t in = tensorType(first->getOperand(0)).getNumElements();
  int64_t out = tensorType(first->getResult(0)).getNumElements();
  (out > in ? row.outRows : row.inRows) = std::max(in, out) / std::min(in, out);
  int64_t total = 0;
  for (Operation *op : bucket)
    total += tensorType(op->getOperand(0)).getNumElements() / row.inRows;

  Value packed =
      tensor::EmptyOp::create(builder, loc, row.shapeOf(row.inRows, total),
                              tensorType(last->getOperand(0)).getElementType());
  int64_t offset = 0;
  for (Operation *op : bucket) {
    Value input = op->getOperand(0);
    int64_t size = tensorType(input).getNumElements() / row.inRows;
    Part part(builder, row.inRows, offset, size);
    packed = tensor::InsertSliceOp::create(
        builder, op->getLoc(),
        reshape(builder, op->getLoc(), input, row.shapeOf(row.inRows, size)),
        packed, part.offsets, part.sizes, part.steps);
    offset += size;
  }
  packed = reshape(builder, loc, packed, {row.inRows * total});
  Operation *made = createLike(builder, bucket, packed,
                               tensorType(packed).clone({row.outRows * total}));

  offset = 0;
  for (Operation *op : bucket) {
    auto type = tensorType(op->getResult(0));
    int64_t size = type.getNumElements() / row.outRows;
    Part part(builder, row.outRows, offset, size);
    builder.setInsertionPoint(firstReader(op));
    Value whole = reshape(builder, op->getLoc(), made->getResult(0),
                          row.shapeOf(row.outRows, total));
    Value own = tensor::ExtractSliceOp::create(
        builder, op->getLoc(), whole, part.offsets, part.sizes, part.steps);
    op->getResult(0).replaceAllUsesWith(
        reshape(builder, op->getLoc(), own, type.getShape()));
    offset += size;
    op->erase();
  }
  numCombined += bucket.size();
  ++numBuckets;
  bucket.clear();
}

//===----------------------------------------------------------------------===//
// What to put together
//===----------------------------------------------------------------------===//

static bool isOutermost(Operation *op) {
  auto dim = op->getAttrOfType<IntegerAttr>("dim");
  auto sizes = tensorType(op->getOperand(0)).getShape();
  return !dim || llvm::all_of(sizes.take_front(dim.getInt()),
                              [](int64_t size) { return size == 1; });
}

bool CombineCollectivesPass::isWorthIt(Operation *op, CostModel &model) {
  auto collective = describeCollective(op);
  if (!collective || op->hasAttr(HyperShardDialect::kShardingAttrName))
    return false;
  int64_t bytes = int64_t(collective->localBytes + collective->resultBytes);
  if (collective->localBytes == 0 || collective->resultBytes == 0 ||
      numShards(collective->axes) == 1)
    return false;
  if (!isOutermost(op)) {
    ++numDeclinedInner;
    return false;
  }
  const CommunicationParameters &parameters =
      model.getCommunicationParameters();
  double saved =
      parameters.launch +
      model
          .getCollective(collective->kind, MeshAxes(collective->mesh.getMesh()),
                         collective->axes, 0)
          .seconds;
  // Copied in and out, each read and written.
  double copies = 2 * parameters.launch +
                  CommunicationCost(parameters).copySeconds(2 * bytes);
  numDeclinedDear += copies >= saved;
  return copies < saved;
}

/// Whether what comes before may be under way while this is done.
static bool takesTime(Operation *op, CostModel &model) {
  return !describeCollective(op) &&
         (!isMemoryEffectFree(op) || model.getCost(op).launches > 0);
}

void CombineCollectivesPass::visit(Block &block, CostModel &model) {
  llvm::MapVector<BucketKey, Bucket> buckets;
  DenseMap<Operation *, BucketKey> bucketOf;
  auto closeReadBy = [&](Operation *reader) {
    for (Value operand : reader->getOperands())
      if (auto it = bucketOf.find(operand.getDefiningOp());
          it != bucketOf.end()) {
        Bucket &bucket = buckets[it->second];
        SmallVector<Operation *> members(bucket);
        close(bucket);
        for (Operation *member : members)
          bucketOf.erase(member);
      }
  };
  auto closeAll = [&] {
    for (auto &entry : buckets)
      close(entry.second);
    buckets.clear();
    bucketOf.clear();
  };
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (op.hasTrait<OpTrait::IsTerminator>())
      break;
    if (takesTime(&op, model))
      closeAll();
    else
      op.walk(closeReadBy);
    if (!isa<AllGatherOp, AllReduceOp, ReduceScatterOp>(op) ||
        !isWorthIt(&op, model))
      continue;
    BucketKey key(StringAttr::get(&getContext(), op.getName().getStringRef()),
                  op.getAttr("mesh"), op.getAttr("axes"), op.getAttr("kind"),
                  tensorType(op.getResult(0)).getElementType());
    buckets[key].push_back(&op);
    bucketOf[&op] = key;
  }
  closeAll();
}

void CombineCollectivesPass::runOnOperation() {
  if (getOperation().getOps<MeshOp>().empty() ||
      getOperation()->hasAttr(stream::StreamDialect::kSynchronousAttrName))
    return markAllAnalysesPreserved();
  CostModel model(getOperation());
  SmallVector<Block *> blocks;
  getOperation().walk([&](Operation *op) {
    for (Region &region : op->getRegions())
      if (region.hasOneBlock() && isa<func::FuncOp, scf::ForOp, scf::IfOp>(op))
        blocks.push_back(&region.front());
  });
  for (Block *block : blocks)
    visit(*block, model);
}
