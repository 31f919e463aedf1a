//===- ReshardSearch.h - shortest path over arrangements --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A reshard without names: *atoms* are the parts of mesh axes that both layouts
// are made of, and an arrangement says where each atom is: in a dimension, at a
// position; in the partial sum; or nowhere (copies). ReshardPath.h is what
// other code uses.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_ANALYSIS_RESHARDSEARCH_H
#define HYPERPARALLEL_LIB_ANALYSIS_RESHARDSEARCH_H

#include "lib/Analysis/CommunicationCost.h"

namespace mlir::hyperparallel {

/// More atoms than this are not searched; an arrangement is then one integer.
inline constexpr unsigned kMaxAtoms = 8;
inline constexpr unsigned kMaxSearchDims = 30;

/// Atoms by number, major to minor.
using AtomList = SmallVector<uint8_t, 4>;

struct Arrangement {
  SmallVector<AtomList, 4> dims;
  /// Bit i: atom i is in the partial sum.
  unsigned partial = 0;

  uint64_t key() const;
  /// Bit i: atom i splits a dimension or is in the partial sum.
  unsigned used() const;
};

struct ReshardSpace {
  SmallVector<hypershard::Axis, kMaxAtoms> atoms;
  /// Of the dimensions that may change: the global size, and the number of
  /// shards by axes that stay at its head.
  SmallVector<int64_t, 4> sizes, fixedShards;
  /// Bytes of an element times the local sizes of all other dimensions.
  int64_t outsideBytes = 1;
  Arrangement from, to;
  /// Copies are terms of the partial value that `to` asks for.
  bool canRename = false;

  unsigned allAtoms() const { return (1u << atoms.size()) - 1; }
  int64_t sizeOf(ArrayRef<uint8_t> list) const;
  int64_t sizeOfMask(unsigned mask) const;
  /// Shards of a dimension, those of the fixed axes included.
  int64_t shards(const Arrangement &at, unsigned dim) const;
  /// Bytes that a device holds.
  int64_t localBytes(const Arrangement &at) const;
  /// An upper bound on the number of arrangements.
  double numArrangements() const;
};

/// May a dimension of `size` go from `coarse` shards to `coarse * parts` or
/// back without looking at other devices' blocks? Yes if the fine blocks,
/// padding included, tile the coarse ones; and from one shard, which can be
/// padded and trimmed.
bool blocksNest(int64_t size, int64_t coarse, int64_t parts);

struct ReshardMove {
  CollectiveKind kind;
  int dim = -1, concatDim = -1;
  AtomList atoms, toAtoms;
  int64_t bytes = 0;
  Arrangement after;
};

/// What a path costs; the first number decides.
struct PathCost {
  double first = 0, second = 0;
  PathCost operator+(const PathCost &o) const {
    return {first + o.first, second + o.second};
  }
  bool operator<(const PathCost &o) const {
    return std::tie(first, second) < std::tie(o.first, o.second);
  }
};

/// One move that does it, if there is one and no sequence of moves receives
/// fewer bytes.
std::optional<ReshardMove> findOptimalMove(const ReshardSpace &space);

/// What a search minimises.
struct PathObjective {
  function_ref<PathCost(const ReshardMove &)> costOf;
  /// A lower bound on the cost of receiving so many bytes.
  function_ref<PathCost(int64_t bytes)> leastCostOf;
};

/// The cheapest moves from `space.from` to `space.to`, nullopt if there are
/// none of at most `bound`.
std::optional<std::vector<ReshardMove>>
findCheapestMoves(const ReshardSpace &space, PathObjective objective,
                  std::optional<PathCost> bound, size_t limit, bool &gaveUp);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_ANALYSIS_RESHARDSEARCH_H
