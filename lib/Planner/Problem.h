//===- Problem.h - what is to be placed in memory tiers ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Plain data: a step as operations in a fixed order, the storages that they
// use, and the memory below the device's. Knows no MLIR. The planner turns a
// Problem into a Plan (Plan.h); whoever has a program turns it into a Problem.
//
// Sizes are integers, and everything that decides whether a plan is safe is
// computed from them alone; seconds only decide which plan is best.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_PLANNER_PROBLEM_H
#define HYPERPARALLEL_LIB_PLANNER_PROBLEM_H

#include <cstdint>
#include <string>
#include <vector>

namespace mlir::hyperparallel::planner {

struct Operation {
  /// What it takes when no copy is under way.
  double seconds = 0;
  /// Bytes that only this operation needs, while it runs.
  int64_t workspace = 0;
  /// Bytes that it moves through the device's memory: an operation whose
  /// bytes take all of its time there is slowed down by copies.
  int64_t memoryBytes = 0;
};

/// An alias set: what lives, moves and dies together.
struct Storage {
  int64_t bytes = 0;
  /// Parameters, optimizer state, caches: resident at both ends of the step.
  bool persistent = false;
  /// For a persistent storage: it may also be in a lower tier at the ends, the
  /// same at both, so that what the step leaves off the device stays off.
  bool mayStartBelow = false;
  /// A valid copy lies below: it may be dropped without a transfer until it
  /// is written. (Its bytes there are not part of the tier's capacity.)
  bool clean = false;
  /// The tier of that copy.
  uint32_t homeTier = 0;
  /// Never leaves the device.
  bool pinned = false;
  /// Seconds to compute it again from `recomputeFrom`; negative: it cannot.
  double recomputeSeconds = -1;
  std::vector<uint32_t> recomputeFrom;
};

/// Operation `operation` reads or writes `storage`.
struct Use {
  uint32_t operation = 0;
  uint32_t storage = 0;
  bool reads = true;
  bool writes = false;
};

/// One way between the device and a tier. A transfer of n bytes takes `latency`
/// (for each chunk) + n / bandwidth when nothing else is on its segment;
/// several that are submitted together take the latency once.
struct Link {
  double latency = 0;
  double bandwidth = 0;
  /// Number of the segment that it shares with other links, or -1.
  int32_t segment = -1;
  /// Bytes of the buffer that transfers go through in chunks; 0: none. Whoever
  /// describes the tier has taken it off the tier's capacity.
  int64_t stagingBytes = 0;

  int64_t chunks(int64_t bytes) const {
    return stagingBytes > 0 && bytes > 0
               ? (bytes + stagingBytes - 1) / stagingBytes
               : 1;
  }
};

/// Memory below the device's: nearer tiers first.
struct Tier {
  int64_t capacity = 0;
  Link out, in;
};

struct Problem {
  std::vector<Operation> operations;
  std::vector<Storage> storages;
  /// In any order; several uses of a storage by an operation are one.
  std::vector<Use> uses;
  int64_t capacity = 0;
  std::vector<Tier> tiers;
  /// Bytes per second of each segment that links share.
  std::vector<double> segments;
  /// Bytes per second of the device's memory; 0: copies slow nothing down.
  double memoryBandwidth = 0;
  /// Smaller storages stay, unless it cannot be done without them.
  int64_t minimumBytes = 0;
  /// Sizes are rounded up to a multiple of this.
  int64_t alignment = 1;

  int64_t alignedBytes(uint32_t storage) const {
    int64_t bytes = storages[storage].bytes;
    return (bytes + alignment - 1) / alignment * alignment;
  }
  /// Of a transfer that is alone on its segment.
  double seconds(const Link &link, int64_t bytes) const {
    return link.latency * double(link.chunks(bytes)) +
           double(bytes) / rate(link);
  }
  double rate(const Link &link) const {
    return link.segment < 0 || segments[link.segment] > link.bandwidth
               ? link.bandwidth
               : segments[link.segment];
  }
};

/// Empty if the problem makes sense, else what is wrong with it.
std::string findFault(const Problem &problem);

} // namespace mlir::hyperparallel::planner

#endif // HYPERPARALLEL_LIB_PLANNER_PROBLEM_H
