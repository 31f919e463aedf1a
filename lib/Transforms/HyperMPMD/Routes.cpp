//===- Routes.cpp - which block goes from which device to which -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/Transforms/HyperMPMD/Routes.h"

#include <map>
#include <set>

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypermpmd;

std::pair<SmallVector<int64_t, 4>, SmallVector<int64_t, 4>>
GroupLayout::box(int64_t device, ArrayRef<int64_t> shape) const {
  SmallVector<int64_t, 4> begin, sizes;
  for (auto [size, axes] : llvm::zip_equal(shape, layout.dims)) {
    int64_t block = blockSize(size, hypershard::numShards(axes));
    int64_t first = std::min(size, block * mesh.linearIndex(device, axes));
    begin.push_back(first);
    sizes.push_back(std::min(block, size - first));
  }
  return {begin, sizes};
}

namespace {
/// The devices that hold one block, the one that has least to send first.
using Holders = std::set<std::pair<int64_t, int64_t>>;

class Senders {
public:
  Senders(const GroupLayout &from, ArrayRef<int64_t> shape) {
    for (int64_t device = 0; device < from.mesh.numDevices(); ++device) {
      SmallVector<int64_t, 4> key;
      for (auto [size, axes] : llvm::zip_equal(shape, from.layout.dims))
        key.push_back(from.mesh.linearIndex(device, axes));
      holders[std::vector<int64_t>(key.begin(), key.end())].insert({0, device});
    }
  }

  /// Whom the block of that number in each dimension comes from.
  int64_t take(ArrayRef<int64_t> block, int64_t elements) {
    Holders &those = holders[std::vector<int64_t>(block.begin(), block.end())];
    auto [sent, device] = *those.begin();
    those.erase(those.begin());
    those.insert({sent + elements, device});
    return device;
  }

private:
  /// A device holds one block, so that what it sends is counted in one place.
  std::map<std::vector<int64_t>, Holders> holders;
};
} // namespace

SmallVector<RoutedBlock> hypermpmd::findRoute(const GroupLayout &from,
                                              const GroupLayout &to,
                                              ArrayRef<int64_t> shape) {
  Senders senders(from, shape);
  SmallVector<int64_t, 4> blocks;
  for (auto [size, axes] : llvm::zip_equal(shape, from.layout.dims))
    blocks.push_back(blockSize(size, hypershard::numShards(axes)));
  SmallVector<RoutedBlock> route;
  for (int64_t device = 0; device < to.mesh.numDevices(); ++device) {
    auto [begin, sizes] = to.box(device, shape);
    if (llvm::is_contained(sizes, 0))
      continue;
    // Count through the senders' blocks that overlap the box.
    SmallVector<int64_t, 4> first, last;
    for (auto [start, size, block] : llvm::zip_equal(begin, sizes, blocks)) {
      first.push_back(start / block);
      last.push_back((start + size - 1) / block);
    }
    SmallVector<int64_t, 4> index = first;
    while (true) {
      RoutedBlock part = {0, device, {}, {}};
      for (unsigned dim = 0; dim < shape.size(); ++dim) {
        int64_t low = std::max(begin[dim], index[dim] * blocks[dim]);
        int64_t high =
            std::min(begin[dim] + sizes[dim], (index[dim] + 1) * blocks[dim]);
        part.begin.push_back(low);
        part.sizes.push_back(high - low);
      }
      part.sender = senders.take(index, ShapedType::getNumElements(part.sizes));
      route.push_back(std::move(part));
      int64_t dim = int64_t(shape.size()) - 1;
      while (dim >= 0 && index[dim] == last[dim]) {
        index[dim] = first[dim];
        --dim;
      }
      if (dim < 0)
        break;
      ++index[dim];
    }
  }
  llvm::stable_sort(route, [](const RoutedBlock &a, const RoutedBlock &b) {
    return std::tie(a.sender, a.receiver) < std::tie(b.sender, b.receiver);
  });
  return route;
}
