// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- PtxTraffic.h - What a kernel's warps move (a test double) ---------===//
//
// The threads of a warp that are at the same instruction access memory at once:
// a request. Of global memory it moves sectors of 32 bytes, all of a sector for
// any byte of it. Shared memory has 32 banks of words of 4 bytes: a request
// takes as many passes as one bank has different words to give; accesses of 8
// and 16 bytes are made by halves and quarters of a warp.
//
// The interpreter runs threads one after the other. Between two
// synchronisations the k-th access of an instruction by one thread is taken to
// be at the same time as the k-th of the others.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_TEST_RUNTIME_FAKES_PTXTRAFFIC_H
#define HYPERPARALLEL_TEST_RUNTIME_FAKES_PTXTRAFFIC_H

#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace fake {

/// Sums over a launch.
struct Traffic {
  uint64_t sectors = 0; ///< that requests moved
  uint64_t needed = 0;  ///< that they would move if their bytes were neighbours
  uint64_t ofBlocks = 0; ///< sectors that blocks touched, each once a block
  uint64_t distinct = 0; ///< sectors that the launch touched, each once
  uint64_t sharedPasses = 0, sharedNeeded = 0;
};

class TrafficCounter {
public:
  void access(bool isShared, bool writes, size_t instruction, size_t thread,
              uint64_t address, int bytes);
  /// The threads that accessed memory come together: a barrier, a shuffle.
  void endRequests();
  void endBlock();
  const Traffic &total() const { return sums; }

private:
  struct Request {
    bool isShared, writes;
    std::vector<std::pair<uint64_t, int>> accesses;
  };
  void countGlobal(const Request &request);
  void countShared(const Request &request);

  Traffic sums;
  /// By instruction and how often a thread executed it.
  std::map<std::pair<size_t, uint32_t>, Request> requests;
  std::map<std::pair<size_t, size_t>, uint32_t> executed;
  std::unordered_set<uint64_t> block, launch; ///< sectors, with the direction
};

/// A line of JSON about a launch.
std::string describeTraffic(const Traffic &traffic, const std::string &kernel,
                            uint64_t blocks, uint64_t threads);

} // namespace fake

#endif // HYPERPARALLEL_TEST_RUNTIME_FAKES_PTXTRAFFIC_H
