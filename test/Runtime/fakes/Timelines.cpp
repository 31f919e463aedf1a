// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/Runtime/fakes/Timelines.h"

#include <algorithm>

namespace fake {

void learn(Clock &clock, const Clock &other) {
  if (clock.size() < other.size())
    clock.resize(other.size(), 0);
  for (size_t i = 0; i < other.size(); ++i)
    clock[i] = std::max(clock[i], other[i]);
}

size_t Timelines::add(const std::string &name) {
  names.push_back(name);
  clocks.emplace_back();
  return names.size() - 1;
}

Action Timelines::begin(size_t timeline, const Clock &host,
                        const std::string &what) {
  Clock &own = clocks[timeline];
  learn(own, host);
  if (own.size() <= timeline)
    own.resize(timeline + 1, 0);
  uint64_t count = ++own[timeline];
  return {timeline, count, own, what, -1};
}

void MemoryMap::add(uint64_t begin, uint64_t bytes, bool isDevice, int device,
                    const Action *action) {
  Block block;
  block.begin = begin;
  block.bytes = bytes;
  block.isDevice = isDevice;
  block.device = device;
  block.isAsync = action != nullptr;
  if (action)
    block.accesses.push_back({begin, begin + bytes, action->timeline,
                              action->count, true, action->what});
  blocks[begin] = std::move(block);
}

MemoryMap::Block *MemoryMap::find(uint64_t address) {
  auto after = blocks.upper_bound(address);
  if (after == blocks.begin())
    return nullptr;
  Block &block = std::prev(after)->second;
  return address < block.begin + block.bytes ? &block : nullptr;
}

std::string MemoryMap::describe(const Block &block, uint64_t begin,
                                uint64_t bytes) const {
  return "bytes " + std::to_string(begin - block.begin) + " to " +
         std::to_string(begin - block.begin + bytes) + " of " +
         (block.isDevice ? "a device" : "a pinned host") + " allocation of " +
         std::to_string(block.bytes);
}

static bool knows(const Action &action, size_t timeline, uint64_t count) {
  return timeline < action.known.size() && action.known[timeline] >= count;
}

std::string MemoryMap::touch(const Action &action, uint64_t begin,
                             uint64_t bytes, bool writes) {
  if (bytes == 0)
    return "";
  Block *block = find(begin);
  if (!block)
    return action.what + " touches memory that was never allocated";
  std::string place = describe(*block, begin, bytes);
  if (begin + bytes > block->begin + block->bytes)
    return action.what + " reaches over the end: " + place;
  if (block->isFreed)
    return action.what + " touches freed memory: " + place + ", freed by " +
           block->freedBy;
  if (block->isDevice && action.device >= 0 && block->device != action.device)
    return action.what + " on GPU " + std::to_string(action.device) +
           " touches memory of GPU " + std::to_string(block->device) + ": " +
           place;
  uint64_t end = begin + bytes;
  for (const Block::Access &earlier : block->accesses) {
    if (earlier.end <= begin || earlier.begin >= end ||
        !(earlier.writes || writes) ||
        knows(action, earlier.timeline, earlier.count))
      continue;
    return "race: " + action.what + " on " + timelines.name(action.timeline) +
           (writes ? " writes " : " reads ") + place + ", which " +
           earlier.what + " on " + timelines.name(earlier.timeline) +
           (earlier.writes ? " writes" : " reads") +
           "; no event orders the two";
  }
  auto isReplaced = [&](const Block::Access &earlier) {
    return earlier.begin >= begin && earlier.end <= end &&
           (writes ||
            (!earlier.writes && earlier.timeline == action.timeline)) &&
           knows(action, earlier.timeline, earlier.count);
  };
  auto &accesses = block->accesses;
  accesses.erase(std::remove_if(accesses.begin(), accesses.end(), isReplaced),
                 accesses.end());
  accesses.push_back(
      {begin, end, action.timeline, action.count, writes, action.what});
  return "";
}

std::string MemoryMap::release(const Action &action, uint64_t begin,
                               bool isDevice) {
  auto found = blocks.find(begin);
  if (found == blocks.end() || found->second.isDevice != isDevice)
    return action.what + ": no allocation begins there";
  Block &block = found->second;
  if (block.isFreed)
    return action.what + ": the memory was freed before, by " + block.freedBy;
  for (const Block::Access &earlier : block.accesses)
    if (!knows(action, earlier.timeline, earlier.count))
      return "race: " + action.what + " on " + timelines.name(action.timeline) +
             " frees " + describe(block, begin, block.bytes) + ", which " +
             earlier.what + " on " + timelines.name(earlier.timeline) +
             " still uses; no event orders the two";
  block.isFreed = true;
  block.freedBy = action.what + " on " + timelines.name(action.timeline);
  block.accesses.clear();
  return "";
}

uint64_t MemoryMap::inUse(int device) const {
  uint64_t total = 0;
  for (const auto &entry : blocks)
    if (entry.second.isDevice && !entry.second.isFreed &&
        entry.second.device == device)
      total += entry.second.bytes;
  return total;
}

} // namespace fake
