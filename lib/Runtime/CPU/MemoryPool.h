// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- MemoryPool.h - One device's memory: tiers, limits, reuse ----------===//
//
// Contract: blocks are 64-byte aligned; `used` is the sum of live blocks'
// sizes rounded up to 64 bytes, whatever the pool keeps in reserve; an
// allocation that would lift `used` over the tier's limit fails and changes
// nothing. All tiers of a virtual device are ordinary memory of the process:
// only their books differ.
//
// Algorithm: freed blocks go to a list of their size class (eight classes per
// power of two, so at most 12.5 % is lost) and are handed out again, last in,
// first out. Allocation and release are O(1). When the reserve outgrows what
// was ever live at once, it is given back to the system.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_CPU_MEMORYPOOL_H
#define HYPERPARALLEL_LIB_RUNTIME_CPU_MEMORYPOOL_H

#include "lib/Runtime/hp_runtime.h"

#include <mutex>
#include <vector>

namespace hyperparallel::runtime {

/// Who has to free a block.
enum class BlockOwner : uint32_t {
  Host, ///< hp_alloc: lives until hp_free
  Run   ///< hp_rt_alloc: freed at the end of the run at the latest
};

class MemoryPool {
public:
  MemoryPool() = default;
  MemoryPool(const MemoryPool &) = delete;
  MemoryPool &operator=(const MemoryPool &) = delete;
  ~MemoryPool();

  hp_status allocate(int64_t bytes, int64_t tier, BlockOwner owner, void **out);
  hp_status release(void *pointer);

  /// Counts bytes that somebody else allocated (arguments and results of a
  /// run); refused if they exceed the limit.
  hp_status reserve(const int64_t bytes[HP_TIER_COUNT]);
  void unreserve(const int64_t bytes[HP_TIER_COUNT]);

  /// Starts the books of a run: peaks start from what is in use.
  void beginRun();
  /// Frees what the run left behind; adds it up in `leaked`.
  void endRun(int64_t leaked[HP_TIER_COUNT]);

  hp_status setLimit(int64_t tier, int64_t limit);
  hp_status info(int64_t tier, int64_t *limit, int64_t *used, int64_t *peak);
  hp_status resetPeak(int64_t tier);
  int64_t peak(int tier);
  int64_t allocationsOfRun();

private:
  struct Block;
  struct Tier {
    int64_t limit = -1;
    int64_t used = 0;
    int64_t peak = 0;
    int64_t runPeak = 0;
  };
  static constexpr int NumClasses = 512;

  static Block *headerOf(void *pointer);
  hp_status admit(int64_t bytes, int64_t tier);
  Block *takeFree(int sizeClass);
  Block *fromSystem(int64_t capacity);
  void giveBack();
  void unlinkAndKeep(Block *block);

  std::mutex mutex;
  Tier tiers[HP_TIER_COUNT];
  std::vector<Block *> freeLists[NumClasses];
  Block *runBlocks = nullptr; ///< live blocks of the run, doubly linked
  int64_t liveCapacity = 0, peakCapacity = 0, freeCapacity = 0;
  int64_t runAllocations = 0;
};

/// "device", "pinned", "host", "file".
const char *tierName(int64_t tier);

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_CPU_MEMORYPOOL_H
