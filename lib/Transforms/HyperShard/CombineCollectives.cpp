//===- CombineAllReduces.cpp - one reduction for several small ones -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What: small all_reduces of one group and kind become one, of their operands
//   put together in a row.
// In, out: local form; the same values.
// How, for each block, in one walk:
//   1. an all_reduce joins the open bucket of its group, kind and element type
//   if
//      the latency that it saves is more than the time to copy its operand in
//      and its result out (lib/Analysis/CommunicationCost.h);
//   2. an op that reads a result of a bucket closes it, and so does the end of
//   the
//      block: a bucket of several becomes one all_reduce where its last member
//      is.
// Cost: linear in ops, times the depth of regions.
// Limits: only all_reduce, whose operands can be put in a row whatever their
//   shapes; members are not moved across other members' users.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/HyperShard/Passes.h"

#include "dialects/Interfaces/CostOpInterface.h"
#include "lib/Analysis/CostModel.h"

#include "llvm/ADT/MapVector.h"

namespace mlir::hyperparallel::hypershard {
#define GEN_PASS_DEF_COMBINEALLREDUCESPASS
#include "lib/Transforms/HyperShard/Passes.h.inc"
} // namespace mlir::hyperparallel::hypershard

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

namespace {
using Bucket = SmallVector<AllReduceOp>;
/// Mesh, axes, kind, element type.
using BucketKey = std::tuple<Attribute, Attribute, Attribute, Type>;

struct CombineAllReducesPass final
    : hypershard::impl::CombineAllReducesPassBase<CombineAllReducesPass> {
  void runOnOperation() override;

private:
  void visit(Block &block);
  bool isWorthIt(AllReduceOp op);
  void close(Bucket &bucket);

  CommunicationCost cost;
  DenseMap<Attribute, MeshAxes> meshes;
};
} // namespace

//===----------------------------------------------------------------------===//
// Putting values in a row
//===----------------------------------------------------------------------===//

static int64_t numElements(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

static ReassociationIndices allDims(int64_t rank) {
  return llvm::to_vector<2>(llvm::seq<int64_t>(0, rank));
}

/// The value as one dimension.
static Value flatten(OpBuilder &builder, Location loc, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getRank() == 1)
    return value;
  if (type.getRank() > 1)
    return tensor::CollapseShapeOp::create(
        builder, loc, value,
        ArrayRef<ReassociationIndices>{allDims(type.getRank())});
  return tensor::ExpandShapeOp::create(builder, loc, type.clone({1}), value,
                                       ArrayRef<ReassociationIndices>{});
}

/// What `flatten` made of a value of this type, as it was.
static Value unflatten(OpBuilder &builder, Location loc, Value value,
                       RankedTensorType type) {
  if (type.getRank() == 1)
    return value;
  if (type.getRank() > 1)
    return tensor::ExpandShapeOp::create(
        builder, loc, type, value,
        ArrayRef<ReassociationIndices>{allDims(type.getRank())});
  return tensor::CollapseShapeOp::create(builder, loc, type, value,
                                         ArrayRef<ReassociationIndices>{});
}

void CombineAllReducesPass::close(Bucket &bucket) {
  if (bucket.size() < 2)
    return bucket.clear();
  AllReduceOp last = bucket.back();
  Location loc = last.getLoc();
  OpBuilder builder(last);
  OpFoldResult one = builder.getIndexAttr(1);

  int64_t total = 0;
  for (AllReduceOp op : bucket)
    total += numElements(op.getInput());
  Value row = tensor::EmptyOp::create(builder, loc, {total},
                                      last.getType().getElementType());
  int64_t offset = 0;
  for (AllReduceOp op : bucket) {
    int64_t size = numElements(op.getInput());
    Value part = flatten(builder, op.getLoc(), op.getInput());
    row = tensor::InsertSliceOp::create(
        builder, op.getLoc(), part, row,
        ArrayRef<OpFoldResult>{builder.getIndexAttr(offset)},
        ArrayRef<OpFoldResult>{builder.getIndexAttr(size)},
        ArrayRef<OpFoldResult>{one});
    offset += size;
  }
  Value reduced =
      AllReduceOp::create(builder, loc, row.getType(), row, last.getMeshAttr(),
                          last.getAxesAttr(), last.getKindAttr());
  offset = 0;
  for (AllReduceOp op : bucket) {
    int64_t size = numElements(op.getInput());
    Value part = tensor::ExtractSliceOp::create(
        builder, op.getLoc(), reduced,
        ArrayRef<OpFoldResult>{builder.getIndexAttr(offset)},
        ArrayRef<OpFoldResult>{builder.getIndexAttr(size)},
        ArrayRef<OpFoldResult>{one});
    op.replaceAllUsesWith(unflatten(builder, op.getLoc(), part, op.getType()));
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

bool CombineAllReducesPass::isWorthIt(AllReduceOp op) {
  if (op->hasAttr(HyperShardDialect::kShardingAttrName))
    return false;
  const MeshAxes &mesh = meshes.find(op.getMeshAttr())->second;
  AxisList axes = mesh.fromAttrs(op.getAxes());
  int64_t bytes = byteSize(op.getType());
  if (bytes == 0 || numShards(axes) == 1)
    return false;
  double saved = cost.seconds(CollectiveKind::AllReduce, mesh, axes, 0);
  // In and out, each read and written.
  bool isSmall = cost.copySeconds(4 * bytes) < saved;
  numDeclinedLarge += !isSmall;
  return isSmall;
}

void CombineAllReducesPass::visit(Block &block) {
  llvm::MapVector<BucketKey, Bucket> buckets;
  DenseMap<Operation *, BucketKey> bucketOf;
  auto closeReadBy = [&](Operation *reader) {
    for (Value operand : reader->getOperands())
      if (auto it = bucketOf.find(operand.getDefiningOp());
          it != bucketOf.end()) {
        Bucket &bucket = buckets[it->second];
        SmallVector<Operation *> members(bucket.begin(), bucket.end());
        close(bucket);
        for (Operation *member : members)
          bucketOf.erase(member);
      }
  };
  for (Operation &op : llvm::make_early_inc_range(block)) {
    op.walk(closeReadBy);
    auto reduce = dyn_cast<AllReduceOp>(op);
    if (!reduce || !isWorthIt(reduce))
      continue;
    BucketKey key(reduce.getMeshAttr(), reduce.getAxesAttr(),
                  reduce.getKindAttr(), reduce.getType().getElementType());
    buckets[key].push_back(reduce);
    bucketOf[reduce] = key;
  }
  for (auto &entry : buckets)
    close(entry.second);
}

void CombineAllReducesPass::runOnOperation() {
  ModuleOp module = getOperation();
  meshes.clear();
  for (auto mesh : module.getOps<MeshOp>())
    meshes.try_emplace(FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
                       MeshAxes(mesh.getMesh()));
  if (meshes.empty())
    return markAllAnalysesPreserved();
  cost = getCommunicationCost(module);
  SmallVector<Block *> blocks;
  module.walk([&](Block *block) { blocks.push_back(block); });
  for (Block *block : blocks)
    visit(*block);
}
