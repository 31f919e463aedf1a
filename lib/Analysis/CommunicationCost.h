//===- CommunicationCost.h - what a collective costs ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Bytes that one device receives in a collective, and the seconds that takes:
// rounds * latency + bytes / bandwidth + launch, at the narrowest level of the
// network that the group crosses. A group is a list of axes; whether it stays
// inside a level's domain is read off the axes' strides in device ids (or off
// the device order, when the mesh has one of its own).
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_ANALYSIS_COMMUNICATIONCOST_H
#define HYPERPARALLEL_LIB_ANALYSIS_COMMUNICATIONCOST_H

#include "dialects/HyperShard/MeshAxes.h"

namespace mlir::hyperparallel {

enum class CollectiveKind {
  AllGather,
  AllReduce,
  ReduceScatter,
  AllToAll,
  Permute,
  SliceLocal,
};

/// The mnemonic of the op: "all_gather", ...
StringRef stringifyCollectiveKind(CollectiveKind kind);

/// Devices [k*devices, (k+1)*devices) reach each other like this. The last
/// level of a network has `devices` = 0: all of them.
struct NetworkLevel {
  int64_t devices = 0;
  /// Seconds for one message.
  double latency = 0;
  /// Bytes per second into one device.
  double bandwidth = 0;
};

/// The defaults stand for one flat, fast fabric; they are used when the module
/// describes no machine, and then only to break ties.
struct CommunicationParameters {
  /// Narrow domains first, each a multiple of the one before.
  SmallVector<NetworkLevel, 3> levels = {{0, 5e-6, 1e11}};
  /// Seconds to issue an op, communication or not.
  double launch = 1e-6;
  /// Bytes per second that a device reads or writes in its own memory.
  double memoryBandwidth = 1e12;
};

class CommunicationCost {
public:
  /// The documented defaults; `isMeasured` is false.
  CommunicationCost() = default;
  explicit CommunicationCost(CommunicationParameters parameters)
      : parameters(std::move(parameters)), measured(true) {}

  /// Does a machine stand behind the numbers? If not, only bytes are compared.
  bool isMeasured() const { return measured; }

  /// Bytes that a device receives, the most of any device of the group.
  /// `localBytes` is the operand as it is sent: padded to whole blocks.
  static int64_t bytesReceived(CollectiveKind kind, int64_t groupSize,
                               int64_t localBytes);

  /// Seconds of a collective in which each device receives `bytes`.
  double seconds(CollectiveKind kind, const hypershard::MeshAxes &mesh,
                 ArrayRef<hypershard::Axis> axes, int64_t bytes) const;

  /// A lower bound on the seconds in which a device receives `bytes`, however.
  double leastSeconds(int64_t bytes) const;

  /// Seconds to read or write `bytes` in a device's own memory.
  double copySeconds(int64_t bytes) const {
    return static_cast<double>(bytes) / parameters.memoryBandwidth;
  }

private:
  const NetworkLevel &levelOf(const hypershard::MeshAxes &mesh,
                              ArrayRef<hypershard::Axis> axes) const;

  CommunicationParameters parameters;
  bool measured = false;
};

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_ANALYSIS_COMMUNICATIONCOST_H
