// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Timelines.h - What happens before what, and who touches what ------===//
//
// Part of the fake driver; see FakeCuda.h. Not thread-safe: the driver locks.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_TEST_RUNTIME_FAKES_TIMELINES_H
#define HYPERPARALLEL_TEST_RUNTIME_FAKES_TIMELINES_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fake {

/// How far each timeline is known to have come.
using Clock = std::vector<uint64_t>;

/// Makes `clock` know all that `other` knows.
void learn(Clock &clock, const Clock &other);

/// One action on a timeline.
struct Action {
  size_t timeline;
  uint64_t count;
  Clock known; ///< what happened before it, itself included
  std::string what;
  int device = -1; ///< the GPU whose memory alone it may touch, if one
};

class Timelines {
public:
  size_t add(const std::string &name);
  /// The next action on a timeline, after all that it and `host` know.
  Action begin(size_t timeline, const Clock &host, const std::string &what);
  Clock &clock(size_t timeline) { return clocks[timeline]; }
  const std::string &name(size_t timeline) const { return names[timeline]; }

private:
  std::vector<Clock> clocks;
  std::vector<std::string> names;
};

class MemoryMap {
public:
  explicit MemoryMap(const Timelines &timelines) : timelines(timelines) {}

  struct Block {
    uint64_t begin = 0, bytes = 0;
    bool isDevice = true;
    int device = 0;
    bool isFreed = false;
    bool isAsync = false;
    std::string freedBy;
    struct Access {
      uint64_t begin, end;
      size_t timeline;
      uint64_t count;
      bool writes;
      std::string what;
    };
    std::vector<Access> accesses;
  };

  /// `action`, if given, is what allocates in the order of a stream.
  void add(uint64_t begin, uint64_t bytes, bool isDevice, int device,
           const Action *action);
  /// The block that holds an address, freed or not; null if none does.
  Block *find(uint64_t address);
  /// Empty, or what is wrong with an access.
  std::string touch(const Action &action, uint64_t begin, uint64_t bytes,
                    bool writes);
  /// Empty, or what is wrong with a release.
  std::string release(const Action &action, uint64_t begin, bool isDevice);
  uint64_t inUse(int device) const;

private:
  std::string describe(const Block &block, uint64_t begin,
                       uint64_t bytes) const;

  const Timelines &timelines;
  std::map<uint64_t, Block> blocks; // by begin
};

} // namespace fake

#endif // HYPERPARALLEL_TEST_RUNTIME_FAKES_TIMELINES_H
