//===- CollectiveOps.cpp - reading collectives of the program -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/Analysis/CollectiveOps.h"

#include "dialects/Interfaces/CostOpInterface.h"
#include "lib/Analysis/TensorLayout.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

static std::optional<CollectiveKind> kindOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<CollectiveKind>>(op)
      .Case<AllGatherOp>([](auto) { return CollectiveKind::AllGather; })
      .Case<AllReduceOp>([](auto) { return CollectiveKind::AllReduce; })
      .Case<ReduceScatterOp>([](auto) { return CollectiveKind::ReduceScatter; })
      .Case<AllToAllOp>([](auto) { return CollectiveKind::AllToAll; })
      .Case<PermuteOp, HaloExchangeOp>(
          [](auto) { return CollectiveKind::Permute; })
      .Case<SliceLocalOp>([](auto) { return CollectiveKind::SliceLocal; })
      .Default([](Operation *) { return std::nullopt; });
}

/// Bytes of one device's part; the sharding is there in the global form only.
static double partBytes(RankedTensorType type, ShardingAttr sharding,
                        const MeshAxes &mesh) {
  if (!sharding)
    return byteSize(type);
  return TensorLayout::fromAttr(sharding, mesh).localBytes(type);
}

/// The most of its window that a device does not hold already.
static double haloBytes(HaloExchangeOp op, int64_t members,
                        double windowBytes) {
  int64_t global = op.getGlobalSize(), block = blockSize(global, members);
  int64_t most = 0;
  for (int64_t i = 0; i < members; ++i) {
    int64_t low = i * op.getStride() + op.getLo();
    int64_t high = std::min<int64_t>(low + op.getSize(), global);
    low = std::max<int64_t>(low, 0);
    int64_t ownLow = std::max(low, i * block);
    int64_t ownHigh = std::min(high, std::min(global, (i + 1) * block));
    int64_t wanted = std::max<int64_t>(high - low, 0);
    most = std::max(most, wanted - std::max<int64_t>(ownHigh - ownLow, 0));
  }
  return op.getSize() == 0 ? 0 : windowBytes / op.getSize() * most;
}

std::optional<CollectiveDescription>
hyperparallel::describeCollective(Operation *op) {
  std::optional<CollectiveKind> kind = kindOf(op);
  if (!kind)
    return std::nullopt;
  // Every collective has these two.
  MeshOp mesh = lookupMesh(op, op->getAttrOfType<FlatSymbolRefAttr>("mesh"));
  if (!mesh)
    return std::nullopt;
  MeshAxes meshAxes(mesh.getMesh());
  CollectiveDescription result;
  result.kind = *kind;
  result.mesh = mesh;
  result.axes = meshAxes.fromAttrs(op->getAttrOfType<ArrayAttr>("axes"));
  int64_t members = numShards(result.axes);

  Value input = op->getOperand(0);
  auto inputType = cast<RankedTensorType>(input.getType());
  auto outputType = cast<RankedTensorType>(op->getResult(0).getType());
  bool isGlobal = op->hasAttr(HyperShardDialect::kShardingAttrName);
  result.localBytes = partBytes(
      inputType, isGlobal ? getSharding(input) : ShardingAttr(), meshAxes);
  result.resultBytes = partBytes(
      outputType, isGlobal ? getSharding(op->getResult(0)) : ShardingAttr(),
      meshAxes);
  if (auto halo = dyn_cast<HaloExchangeOp>(op))
    result.bytesReceived = haloBytes(halo, members, result.resultBytes);
  else
    result.bytesReceived = CommunicationCost::bytesReceived(
        *kind, members, static_cast<int64_t>(result.localBytes));
  return result;
}
