// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/CPU/MemoryPool.h"
#include "lib/Runtime/Status.h"

#include <cstdlib>
#include <sys/mman.h>

namespace hyperparallel::runtime {

static constexpr int64_t Alignment = 64;
static constexpr int64_t HugePage = int64_t(2) << 20;
/// Larger requests are refused before any arithmetic could overflow.
static constexpr int64_t LargestBlock = int64_t(1) << 46;

/// Sits in the 64 bytes before the memory that it describes.
struct alignas(64) MemoryPool::Block {
  uint64_t magic;
  int64_t size;     ///< as counted: rounded up to 64
  int64_t capacity; ///< as allocated: its size class
  int32_t tier;
  int32_t sizeClass;
  BlockOwner owner;
  Block *previous, *next; ///< among the run's live blocks
};

static constexpr uint64_t Live = 0x6870626c6f636b31;
static constexpr uint64_t Freed = 0x6870667265656431;

const char *tierName(int64_t tier) {
  static const char *const names[] = {"device", "pinned", "host", "file"};
  return tier >= 0 && tier < HP_TIER_COUNT ? names[tier] : "unknown";
}

static int64_t roundUp(int64_t bytes) {
  return bytes <= 0 ? Alignment
                    : (bytes + Alignment - 1) / Alignment * Alignment;
}

/// Classes count in units of 64 bytes: 1..8 exactly, then eight steps for each
/// power of two. `capacity` becomes the class's own size.
static int classOf(int64_t size, int64_t &capacity) {
  int64_t units = size / Alignment;
  if (units <= 8) {
    capacity = units * Alignment;
    return static_cast<int>(units);
  }
  int log = 63 - __builtin_clzll(static_cast<uint64_t>(units - 1));
  int64_t step = int64_t(1) << (log - 3 < 0 ? 0 : log - 3);
  int64_t base = int64_t(1) << log;
  int64_t index = (units - base + step - 1) / step; // 1..8
  capacity = (base + index * step) * Alignment;
  return log * 8 + static_cast<int>(index);
}

MemoryPool::Block *MemoryPool::headerOf(void *pointer) {
  return reinterpret_cast<Block *>(static_cast<char *>(pointer) -
                                   sizeof(Block));
}

MemoryPool::~MemoryPool() {
  while (runBlocks)
    unlinkAndKeep(runBlocks);
  giveBack();
}

hp_status MemoryPool::admit(int64_t bytes, int64_t tier) {
  Tier &books = tiers[tier];
  if (books.limit >= 0 && books.used + bytes > books.limit)
    return fail(HP_OUT_OF_MEMORY,
                "tier '%s' is full: asked for %lld bytes with %lld in use of "
                "a limit of %lld",
                tierName(tier), static_cast<long long>(bytes),
                static_cast<long long>(books.used),
                static_cast<long long>(books.limit));
  books.used += bytes;
  if (books.used > books.peak)
    books.peak = books.used;
  if (books.used > books.runPeak)
    books.runPeak = books.used;
  return HP_OK;
}

MemoryPool::Block *MemoryPool::takeFree(int sizeClass) {
  // A block of the next two classes wastes at most a quarter more.
  for (int c = sizeClass; c < NumClasses && c <= sizeClass + 2; ++c) {
    if (freeLists[c].empty())
      continue;
    Block *block = freeLists[c].back();
    freeLists[c].pop_back();
    freeCapacity -= block->capacity;
    return block;
  }
  return nullptr;
}

MemoryPool::Block *MemoryPool::fromSystem(int64_t capacity) {
  if (freeCapacity > 0 && liveCapacity + freeCapacity + capacity >
                              peakCapacity + peakCapacity / 2 + (64 << 20))
    giveBack();
  int64_t total = capacity + static_cast<int64_t>(sizeof(Block));
  bool huge = total >= 2 * HugePage;
  void *memory = nullptr;
  if (posix_memalign(&memory, huge ? HugePage : Alignment,
                     static_cast<size_t>(total)))
    return nullptr;
#ifdef MADV_HUGEPAGE
  if (huge)
    madvise(memory, static_cast<size_t>(total), MADV_HUGEPAGE);
#endif
  return static_cast<Block *>(memory);
}

void MemoryPool::giveBack() {
  for (std::vector<Block *> &list : freeLists) {
    for (Block *block : list)
      std::free(block);
    list.clear();
  }
  freeCapacity = 0;
}

hp_status MemoryPool::allocate(int64_t bytes, int64_t tier, BlockOwner owner,
                               void **out) {
  if (tier == HP_TIER_FILE)
    return fail(HP_UNIMPLEMENTED,
                "the cpu back end has no memory in tier 'file'");
  if (tier < 0 || tier >= HP_TIER_COUNT)
    return fail(HP_INVALID_ARGUMENT, "expected a memory tier but got %lld",
                static_cast<long long>(tier));
  if (bytes < 0 || bytes > LargestBlock)
    return fail(HP_OUT_OF_MEMORY, "cannot allocate %lld bytes",
                static_cast<long long>(bytes));
  std::lock_guard<std::mutex> lock(mutex);
  int64_t size = roundUp(bytes);
  hp_status status = admit(size, tier);
  if (status != HP_OK)
    return status;
  int64_t capacity = 0;
  int sizeClass = classOf(size, capacity);
  Block *block = takeFree(sizeClass);
  if (!block) {
    block = fromSystem(capacity);
    if (!block) {
      tiers[tier].used -= size;
      return fail(HP_OUT_OF_MEMORY, "the system has no %lld bytes left",
                  static_cast<long long>(capacity));
    }
    block->capacity = capacity;
    block->sizeClass = sizeClass;
  }
  block->magic = Live;
  block->size = size;
  block->tier = static_cast<int32_t>(tier);
  block->owner = owner;
  block->previous = block->next = nullptr;
  if (owner == BlockOwner::Run) {
    ++runAllocations;
    block->next = runBlocks;
    if (runBlocks)
      runBlocks->previous = block;
    runBlocks = block;
  }
  liveCapacity += block->capacity;
  if (liveCapacity > peakCapacity)
    peakCapacity = liveCapacity;
  *out = block + 1;
  return HP_OK;
}

void MemoryPool::unlinkAndKeep(Block *block) {
  if (block->owner == BlockOwner::Run) {
    if (block->previous)
      block->previous->next = block->next;
    else
      runBlocks = block->next;
    if (block->next)
      block->next->previous = block->previous;
  }
  tiers[block->tier].used -= block->size;
  liveCapacity -= block->capacity;
  freeCapacity += block->capacity;
  block->magic = Freed;
  freeLists[block->sizeClass].push_back(block);
}

hp_status MemoryPool::release(void *pointer) {
  if (!pointer)
    return HP_OK;
  if (reinterpret_cast<uintptr_t>(pointer) % Alignment != 0)
    return fail(HP_INVALID_ARGUMENT,
                "cannot free %p: not a pointer that the runtime allocated",
                pointer);
  std::lock_guard<std::mutex> lock(mutex);
  Block *block = headerOf(pointer);
  if (block->magic == Freed)
    return fail(HP_INVALID_ARGUMENT, "cannot free %p: it was freed before",
                pointer);
  if (block->magic != Live)
    return fail(HP_INVALID_ARGUMENT,
                "cannot free %p: not a pointer that the runtime allocated",
                pointer);
  unlinkAndKeep(block);
  return HP_OK;
}

hp_status MemoryPool::reserve(const int64_t bytes[HP_TIER_COUNT]) {
  std::lock_guard<std::mutex> lock(mutex);
  for (int tier = 0; tier < HP_TIER_COUNT; ++tier) {
    hp_status status = bytes[tier] < 0
                           ? fail(HP_INVALID_ARGUMENT,
                                  "expected resident bytes >= 0 but got %lld",
                                  static_cast<long long>(bytes[tier]))
                           : admit(bytes[tier], tier);
    if (status == HP_OK)
      continue;
    while (tier-- > 0)
      tiers[tier].used -= bytes[tier];
    return status;
  }
  return HP_OK;
}

void MemoryPool::unreserve(const int64_t bytes[HP_TIER_COUNT]) {
  std::lock_guard<std::mutex> lock(mutex);
  for (int tier = 0; tier < HP_TIER_COUNT; ++tier)
    tiers[tier].used -= bytes[tier];
}

void MemoryPool::beginRun() {
  std::lock_guard<std::mutex> lock(mutex);
  runAllocations = 0;
  for (Tier &tier : tiers)
    tier.runPeak = tier.used;
}

void MemoryPool::endRun(int64_t leaked[HP_TIER_COUNT]) {
  std::lock_guard<std::mutex> lock(mutex);
  for (int tier = 0; tier < HP_TIER_COUNT; ++tier)
    leaked[tier] = 0;
  while (runBlocks) {
    leaked[runBlocks->tier] += runBlocks->size;
    unlinkAndKeep(runBlocks);
  }
}

hp_status MemoryPool::setLimit(int64_t tier, int64_t limit) {
  if (tier < 0 || tier >= HP_TIER_COUNT)
    return fail(HP_INVALID_ARGUMENT, "expected a memory tier but got %lld",
                static_cast<long long>(tier));
  std::lock_guard<std::mutex> lock(mutex);
  tiers[tier].limit = limit < 0 ? -1 : limit;
  return HP_OK;
}

hp_status MemoryPool::info(int64_t tier, int64_t *limit, int64_t *used,
                           int64_t *peak) {
  if (tier < 0 || tier >= HP_TIER_COUNT)
    return fail(HP_INVALID_ARGUMENT, "expected a memory tier but got %lld",
                static_cast<long long>(tier));
  std::lock_guard<std::mutex> lock(mutex);
  if (limit)
    *limit = tiers[tier].limit;
  if (used)
    *used = tiers[tier].used;
  if (peak)
    *peak = tiers[tier].peak;
  return HP_OK;
}

hp_status MemoryPool::resetPeak(int64_t tier) {
  if (tier < 0 || tier >= HP_TIER_COUNT)
    return fail(HP_INVALID_ARGUMENT, "expected a memory tier but got %lld",
                static_cast<long long>(tier));
  std::lock_guard<std::mutex> lock(mutex);
  tiers[tier].peak = tiers[tier].used;
  return HP_OK;
}

int64_t MemoryPool::peak(int tier) {
  std::lock_guard<std::mutex> lock(mutex);
  return tiers[tier].runPeak;
}

int64_t MemoryPool::allocationsOfRun() {
  std::lock_guard<std::mutex> lock(mutex);
  return runAllocations;
}

} // namespace hyperparallel::runtime
