// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- PtxTraffic.cpp - What a kernel's warps move -----------------------===//
//
// See PtxTraffic.h.
//
//===----------------------------------------------------------------------===//

#include "test/Runtime/fakes/PtxTraffic.h"

#include <algorithm>
#include <array>
#include <set>

namespace fake {

constexpr uint64_t SectorBytes = 32;
constexpr uint64_t WordBytes = 4, Banks = 32;

void TrafficCounter::access(bool isShared, bool writes, size_t instruction,
                            size_t thread, uint64_t address, int bytes) {
  uint32_t turn = executed[{instruction, thread}]++;
  Request &request = requests[{instruction, turn}];
  request.isShared = isShared;
  request.writes = writes;
  request.accesses.emplace_back(address, bytes);
}

void TrafficCounter::endRequests() {
  for (const auto &[key, request] : requests)
    request.isShared ? countShared(request) : countGlobal(request);
  requests.clear();
  executed.clear();
}

void TrafficCounter::endBlock() {
  sums.ofBlocks += block.size();
  block.clear();
  sums.distinct = launch.size();
}

void TrafficCounter::countGlobal(const Request &request) {
  auto sorted = request.accesses;
  std::sort(sorted.begin(), sorted.end());
  uint64_t sectors = 0, bytes = 0, end = 0, nextSector = 0;
  for (const auto &[address, size] : sorted) {
    uint64_t last = address + static_cast<uint64_t>(size);
    if (last > end)
      bytes += last - std::max(end, address);
    end = std::max(end, last);
    for (uint64_t sector = std::max(address / SectorBytes, nextSector);
         sector * SectorBytes < last; ++sector) {
      ++sectors;
      nextSector = sector + 1;
      block.insert(sector << 1 | uint64_t(request.writes));
      launch.insert(sector << 1 | uint64_t(request.writes));
    }
  }
  sums.sectors += sectors;
  sums.needed += (bytes + SectorBytes - 1) / SectorBytes;
}

void TrafficCounter::countShared(const Request &request) {
  size_t parts = static_cast<size_t>(
      std::max<uint64_t>(request.accesses.front().second / WordBytes, 1));
  size_t lanes = std::max<size_t>(Banks / parts, 1);
  for (size_t begin = 0; begin < request.accesses.size(); begin += lanes) {
    std::array<std::set<uint64_t>, Banks> words;
    std::set<uint64_t> all;
    size_t end = std::min(begin + lanes, request.accesses.size());
    for (size_t i = begin; i < end; ++i) {
      auto [address, bytes] = request.accesses[i];
      uint64_t last = address + static_cast<uint64_t>(bytes);
      for (uint64_t word = address / WordBytes; word * WordBytes < last;
           ++word) {
        words[word % Banks].insert(word);
        all.insert(word);
      }
    }
    size_t passes = 0;
    for (const std::set<uint64_t> &bank : words)
      passes = std::max(passes, bank.size());
    sums.sharedPasses += passes;
    sums.sharedNeeded += (all.size() + Banks - 1) / Banks;
  }
}

std::string describeTraffic(const Traffic &traffic, const std::string &kernel,
                            uint64_t blocks, uint64_t threads) {
  std::string text = "{\"kernel\": \"" + kernel + "\"";
  auto add = [&](const char *name, uint64_t value) {
    text += std::string(", \"") + name + "\": " + std::to_string(value);
  };
  add("blocks", blocks);
  add("threads", threads);
  add("sectors", traffic.sectors);
  add("needed_sectors", traffic.needed);
  add("block_sectors", traffic.ofBlocks);
  add("distinct_sectors", traffic.distinct);
  add("shared_passes", traffic.sharedPasses);
  add("needed_shared_passes", traffic.sharedNeeded);
  return text + "}\n";
}

} // namespace fake
