//===- CommunicationCost.cpp - what a collective costs --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Bytes are those of the algorithms that are optimal in bandwidth: a ring for
// gather, reduce-scatter and all-reduce, pairwise exchange for all-to-all.
// Rounds are ceil(log2 members), twice for an all-reduce and one for a permute:
// members of a group talk at the same time, and only dependent messages wait.
//
// Limits: one level per group (its narrowest); the inner levels of a group that
// crosses several are taken to be hidden behind the outermost. No contention
// between collectives that run at the same time.
// Cost: O(axes * levels), or O(devices) where the mesh has its own device
// order.
//===----------------------------------------------------------------------===//
#include "lib/Analysis/CommunicationCost.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

StringRef hyperparallel::stringifyCollectiveKind(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::AllGather:
    return "all_gather";
  case CollectiveKind::AllReduce:
    return "all_reduce";
  case CollectiveKind::ReduceScatter:
    return "reduce_scatter";
  case CollectiveKind::AllToAll:
    return "all_to_all";
  case CollectiveKind::Permute:
    return "permute";
  case CollectiveKind::SliceLocal:
    return "slice_local";
  }
  llvm_unreachable("all kinds are listed");
}

int64_t CommunicationCost::bytesReceived(CollectiveKind kind, int64_t groupSize,
                                         int64_t localBytes) {
  if (groupSize == 1)
    return 0;
  switch (kind) {
  case CollectiveKind::AllGather:
    return (groupSize - 1) * localBytes;
  case CollectiveKind::AllReduce:
    return 2 * (groupSize - 1) * llvm::divideCeil(localBytes, groupSize);
  case CollectiveKind::ReduceScatter:
  case CollectiveKind::AllToAll:
    return (groupSize - 1) * llvm::divideCeil(localBytes, groupSize);
  case CollectiveKind::Permute:
    return localBytes;
  case CollectiveKind::SliceLocal:
    return 0;
  }
  llvm_unreachable("all kinds are listed");
}

/// Do all groups along `axes` lie in domains of `devices` consecutive devices?
static bool staysInside(const MeshAxes &mesh, ArrayRef<Axis> axes,
                        int64_t devices) {
  ArrayRef<int64_t> order = mesh.attr().getDeviceIds();
  if (order.empty())
    return llvm::all_of(axes, [&](Axis axis) {
      return devices % (mesh.stride(axis) * axis.size) == 0;
    });
  // Another order: look at every device against the first of its group.
  llvm::DenseMap<int64_t, int64_t> domainOfGroup;
  for (int64_t device = 0; device < mesh.numDevices(); ++device) {
    int64_t first = device;
    for (Axis axis : axes)
      first -= mesh.coordinate(device, axis) * mesh.stride(axis);
    int64_t domain = order[device] / devices;
    if (domainOfGroup.try_emplace(first, domain).first->second != domain)
      return false;
  }
  return true;
}

const NetworkLevel &CommunicationCost::levelOf(const MeshAxes &mesh,
                                               ArrayRef<Axis> axes) const {
  for (const NetworkLevel &level : parameters.levels)
    if (level.devices == 0 || staysInside(mesh, axes, level.devices))
      return level;
  return parameters.levels.back();
}

double CommunicationCost::seconds(CollectiveKind kind, const MeshAxes &mesh,
                                  ArrayRef<Axis> axes, int64_t bytes) const {
  int64_t groupSize = numShards(axes);
  if (groupSize == 1 || kind == CollectiveKind::SliceLocal)
    return parameters.launch;
  double rounds = llvm::Log2_64_Ceil(groupSize);
  if (kind == CollectiveKind::AllReduce)
    rounds *= 2;
  if (kind == CollectiveKind::Permute)
    rounds = 1;
  const NetworkLevel &level = levelOf(mesh, axes);
  return parameters.launch + rounds * level.latency +
         static_cast<double>(bytes) / level.bandwidth;
}

double CommunicationCost::leastSeconds(int64_t bytes) const {
  double bandwidth = 0;
  for (const NetworkLevel &level : parameters.levels)
    bandwidth = std::max(bandwidth, level.bandwidth);
  return static_cast<double>(bytes) / bandwidth;
}
