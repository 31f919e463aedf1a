//===- Arena.h - where buffers lie in one piece of memory -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Static offsets: two buffers whose lifetimes overlap share no byte.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_PLANNER_ARENA_H
#define HYPERPARALLEL_LIB_PLANNER_ARENA_H

#include <cstdint>
#include <string>
#include <vector>

namespace mlir::hyperparallel::planner {

/// Lives for the moments in [lower, upper).
struct Buffer {
  int64_t lower = 0, upper = 0;
  int64_t size = 0;
};

struct ArenaOptions {
  int64_t alignment = 1;
  /// Look for offsets until the height is at most this; 0: until it is at most
  /// the largest sum of sizes at one moment, below which none can be.
  int64_t goal = 0;
  /// Whether to search exactly if simple orders do not reach the goal.
  bool exact = false;
  /// Steps that the improvement, and the exact search, may take.
  int64_t improvementWork = 200'000'000;
  int64_t searchNodes = 20'000'000;
};

struct Arena {
  /// By buffer.
  std::vector<int64_t> offsets;
  int64_t height = 0;
  /// The largest sum of aligned sizes at one moment.
  int64_t maxLive = 0;
  /// How the offsets were found.
  std::string method;
  /// No offsets with less height exist.
  bool isOptimal = false;
};

Arena assignOffsets(const std::vector<Buffer> &buffers,
                    const ArenaOptions &options = {});

/// The largest sum of aligned sizes at one moment.
int64_t maxLive(const std::vector<Buffer> &buffers, int64_t alignment);

/// Empty if buffers that live at the same time share no byte; else which do.
std::string findOverlap(const std::vector<Buffer> &buffers,
                        const std::vector<int64_t> &offsets, int64_t alignment);

/// Offsets of height at most `capacity`, if the search finds any. `isComplete`
/// says that there are none if it found none.
bool searchOffsets(const std::vector<Buffer> &buffers, int64_t alignment,
                   int64_t capacity, int64_t nodes,
                   std::vector<int64_t> &offsets, bool &isComplete);

} // namespace mlir::hyperparallel::planner

#endif // HYPERPARALLEL_LIB_PLANNER_ARENA_H
