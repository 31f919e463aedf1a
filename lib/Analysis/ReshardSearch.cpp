//===- ReshardSearch.cpp - shortest path over arrangements ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A* search, with this bound on what is still to come: a device lacks at least
// as many bytes as its target block is larger than the one it holds, and all of
// its target block while it holds but a term of a sum. Ahead of it, single
// moves are tried that nothing can beat. The moves out of an arrangement:
//   1. gather      a tail of a dimension's atoms leaves it
//   2. slice       unused atoms join a dimension at its tail
//   3. all-to-all  a tail of one dimension becomes the tail of another
//   4. all-reduce  some atoms leave the partial sum
//   5. scatter     atoms go from the partial sum to the tail of a dimension
//   6. rename      copies become terms of a partial max, min, and, or, avg
//   7. permute     to any arrangement with as many shards in every dimension
//                  and in the partial sum
// Where blocks do not nest (`blocksNest`), 1, 2, 3 and 5 exist only for all the
// atoms of a dimension at once.
//
// A permute costs the same for all arrangements of one class (equal shards), so
// only the first of a class that is settled needs its permutes: the edges are
// then O(arrangements), not O(arrangements of a class squared).
//
// Cost: with m atoms and r dimensions there are at most sum_k m!/(m-k)! *
// C(k+r-1, k) * 2^(m-k) arrangements: the caller bounds that number (it is 28
// for two axes and three dimensions), and each has O(m*r^2 + 2^m) moves;
// ordered sets of atoms are tried up to four atoms, above that only single ones
// and the ones that `to` asks for.
//===----------------------------------------------------------------------===//
#include "lib/Analysis/ReshardSearch.h"

#include "lib/Analysis/TensorLayout.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include <map>
#include <queue>
#include <set>

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

//===----------------------------------------------------------------------===//
// Arrangements
//===----------------------------------------------------------------------===//

uint64_t Arrangement::key() const {
  uint64_t key = 0;
  for (auto [dim, list] : llvm::enumerate(dims))
    for (auto [position, atom] : llvm::enumerate(list))
      key |= uint64_t(8 * (dim + 1) + position) << (8 * atom);
  for (unsigned atom = 0; atom < kMaxAtoms; ++atom)
    if (partial >> atom & 1)
      key |= uint64_t(1) << (8 * atom);
  return key;
}

unsigned Arrangement::used() const {
  unsigned mask = partial;
  for (const AtomList &list : dims)
    for (uint8_t atom : list)
      mask |= 1u << atom;
  return mask;
}

int64_t ReshardSpace::sizeOf(ArrayRef<uint8_t> list) const {
  int64_t size = 1;
  for (uint8_t atom : list)
    size *= atoms[atom].size;
  return size;
}

int64_t ReshardSpace::sizeOfMask(unsigned mask) const {
  int64_t size = 1;
  for (unsigned atom = 0; atom < atoms.size(); ++atom)
    if (mask >> atom & 1)
      size *= atoms[atom].size;
  return size;
}

int64_t ReshardSpace::shards(const Arrangement &at, unsigned dim) const {
  return fixedShards[dim] * sizeOf(at.dims[dim]);
}

int64_t ReshardSpace::localBytes(const Arrangement &at) const {
  int64_t bytes = outsideBytes;
  for (unsigned dim = 0; dim < sizes.size(); ++dim)
    bytes *= blockSize(sizes[dim], shards(at, dim));
  return bytes;
}

double ReshardSpace::numArrangements() const {
  double m = atoms.size(), r = sizes.size(), total = 0, ways = 1;
  // `ways`: k atoms chosen, ordered, and the order cut into r lists.
  for (unsigned k = 0; k <= atoms.size(); ++k) {
    total += ways * (from.partial || to.partial ? std::exp2(m - k) : 1);
    ways *= (m - k) * (k + r) / (k + 1);
  }
  return total;
}

bool hyperparallel::blocksNest(int64_t size, int64_t coarse, int64_t parts) {
  return coarse == 1 ||
         parts * blockSize(size, coarse * parts) == blockSize(size, coarse);
}

//===----------------------------------------------------------------------===//
// Enumeration
//===----------------------------------------------------------------------===//

/// Every ordered choice of 1 to `limit` atoms of a mask.
static void forEachSequence(unsigned mask, unsigned limit,
                            function_ref<void(const AtomList &)> visit) {
  AtomList chosen;
  auto extend = [&](auto &self, unsigned rest) -> void {
    if (chosen.size() == limit)
      return;
    for (unsigned atom = 0; atom < kMaxAtoms; ++atom) {
      if (!(rest >> atom & 1))
        continue;
      chosen.push_back(atom);
      visit(chosen);
      self(self, rest & ~(1u << atom));
      chosen.pop_back();
    }
  };
  extend(extend, mask);
}

static unsigned maskOf(ArrayRef<uint8_t> list) {
  unsigned mask = 0;
  for (uint8_t atom : list)
    mask |= 1u << atom;
  return mask;
}

static AtomList listOf(unsigned mask) {
  AtomList list;
  for (unsigned atom = 0; atom < kMaxAtoms; ++atom)
    if (mask >> atom & 1)
      list.push_back(atom);
  return list;
}

namespace {
class MoveGenerator {
public:
  MoveGenerator(const ReshardSpace &space, const Arrangement &at,
                function_ref<void(ReshardMove)> visit)
      : space(space), at(at), visit(visit), localBytes(space.localBytes(at)) {}

  void all() {
    for (unsigned dim = 0; dim < space.sizes.size(); ++dim) {
      gathers(dim);
      exchanges(dim);
      joins(dim, space.allAtoms() & ~at.used(), CollectiveKind::SliceLocal);
      joins(dim, at.partial, CollectiveKind::ReduceScatter);
    }
    reduces();
    renames();
  }

  /// Not part of `all`: wanted once per class.
  void permutes();

private:
  ReshardMove move(CollectiveKind kind) const {
    ReshardMove move;
    move.kind = kind;
    move.after = at;
    return move;
  }
  void finish(ReshardMove next, int64_t sentBytes) {
    next.bytes = CommunicationCost::bytesReceived(
        next.kind, space.sizeOf(next.atoms), sentBytes);
    visit(std::move(next));
  }
  /// What is sent when dimension `dim` is padded to `parts` whole blocks.
  int64_t paddedBytes(unsigned dim, int64_t parts) const {
    int64_t size = space.sizes[dim], shards = space.shards(at, dim);
    int64_t block = blockSize(size, shards);
    if (block == 0)
      return 0;
    return localBytes / block * parts * blockSize(size, shards * parts);
  }

  void gathers(unsigned dim);
  void exchanges(unsigned dim);
  void joins(unsigned dim, unsigned mask, CollectiveKind kind);
  void join(unsigned dim, const AtomList &atoms, CollectiveKind kind);
  void reduces();
  void renames();

  const ReshardSpace &space;
  const Arrangement &at;
  function_ref<void(ReshardMove)> visit;
  int64_t localBytes;
};
} // namespace

void MoveGenerator::gathers(unsigned dim) {
  const AtomList &list = at.dims[dim];
  for (size_t count = 1; count <= list.size(); ++count) {
    ArrayRef<uint8_t> tail = ArrayRef(list).take_back(count);
    int64_t parts = space.sizeOf(tail);
    if (!blocksNest(space.sizes[dim], space.shards(at, dim) / parts, parts))
      continue;
    ReshardMove next = move(CollectiveKind::AllGather);
    next.dim = dim;
    next.atoms.assign(tail.begin(), tail.end());
    next.after.dims[dim].truncate(list.size() - count);
    finish(std::move(next), localBytes);
  }
}

void MoveGenerator::exchanges(unsigned concat) {
  const AtomList &list = at.dims[concat];
  for (size_t count = 1; count <= list.size(); ++count) {
    ArrayRef<uint8_t> tail = ArrayRef(list).take_back(count);
    int64_t parts = space.sizeOf(tail);
    if (!blocksNest(space.sizes[concat], space.shards(at, concat) / parts,
                    parts))
      continue;
    for (unsigned split = 0; split < space.sizes.size(); ++split) {
      if (split == concat ||
          !blocksNest(space.sizes[split], space.shards(at, split), parts))
        continue;
      ReshardMove next = move(CollectiveKind::AllToAll);
      next.dim = split;
      next.concatDim = concat;
      next.atoms.assign(tail.begin(), tail.end());
      next.after.dims[concat].truncate(list.size() - count);
      llvm::append_range(next.after.dims[split], tail);
      finish(std::move(next), paddedBytes(split, parts));
    }
  }
}

void MoveGenerator::join(unsigned dim, const AtomList &atoms,
                         CollectiveKind kind) {
  int64_t parts = space.sizeOf(atoms);
  if (!blocksNest(space.sizes[dim], space.shards(at, dim), parts))
    return;
  ReshardMove next = move(kind);
  next.dim = dim;
  next.atoms = atoms;
  llvm::append_range(next.after.dims[dim], atoms);
  next.after.partial &= ~maskOf(atoms);
  finish(std::move(next), paddedBytes(dim, parts));
}

void MoveGenerator::joins(unsigned dim, unsigned mask, CollectiveKind kind) {
  if (space.atoms.size() <= 4) {
    forEachSequence(mask, 4,
                    [&](const AtomList &atoms) { join(dim, atoms, kind); });
    return;
  }
  forEachSequence(mask, 1,
                  [&](const AtomList &atoms) { join(dim, atoms, kind); });
  // And what `to` has next in this dimension, as far as the mask has it.
  const AtomList &list = at.dims[dim], &wanted = space.to.dims[dim];
  if (list.size() > wanted.size() ||
      !std::equal(list.begin(), list.end(), wanted.begin()))
    return;
  AtomList atoms;
  for (uint8_t atom : ArrayRef(wanted).drop_front(list.size())) {
    if (!(mask >> atom & 1))
      break;
    atoms.push_back(atom);
    if (atoms.size() > 1)
      join(dim, atoms, kind);
  }
}

void MoveGenerator::reduces() {
  // Every subset that is not empty.
  for (unsigned mask = at.partial; mask != 0; mask = (mask - 1) & at.partial) {
    ReshardMove next = move(CollectiveKind::AllReduce);
    next.atoms = listOf(mask);
    next.after.partial &= ~mask;
    finish(std::move(next), localBytes);
  }
}

void MoveGenerator::renames() {
  if (!space.canRename)
    return;
  unsigned copies = space.to.partial & ~at.used();
  for (unsigned mask = copies; mask != 0; mask = (mask - 1) & copies) {
    ReshardMove next = move(CollectiveKind::AllReduce);
    next.after.partial |= mask;
    finish(std::move(next), localBytes);
  }
}

/// The order of all atoms in which a permute sees two arrangements: the
/// dimensions, the partial sum, the copies; what both have in the last two
/// comes last in each, so that it need not move.
static AtomList permuteOrder(const ReshardSpace &space, const Arrangement &at,
                             const Arrangement &other) {
  AtomList order;
  for (const AtomList &list : at.dims)
    llvm::append_range(order, list);
  llvm::append_range(order, listOf(at.partial & ~other.partial));
  llvm::append_range(order, listOf(at.partial & other.partial));
  unsigned unused = space.allAtoms() & ~at.used();
  unsigned otherUnused = space.allAtoms() & ~other.used();
  llvm::append_range(order, listOf(unused & ~otherUnused));
  llvm::append_range(order, listOf(unused & otherUnused));
  return order;
}

/// Drops atoms whose coordinate the permute keeps: those with the same product
/// of sizes after them on both sides.
static void dropFixedAtoms(const ReshardSpace &space, AtomList &from,
                           AtomList &to) {
  auto suffix = [&](const AtomList &list, uint8_t atom) {
    auto it = llvm::find(list, atom);
    return space.sizeOf(ArrayRef(it + 1, list.end()));
  };
  unsigned fixed = 0;
  for (uint8_t atom : from)
    if (suffix(from, atom) == suffix(to, atom))
      fixed |= 1u << atom;
  auto isFixed = [&](uint8_t atom) { return fixed >> atom & 1; };
  llvm::erase_if(from, isFixed);
  llvm::erase_if(to, isFixed);
}

void MoveGenerator::permutes() {
  // Fills one dimension after the other with as many shards as it has.
  ReshardMove next = move(CollectiveKind::Permute);
  int64_t partialSize = space.sizeOfMask(at.partial);
  auto fillPartial = [&](unsigned rest) {
    for (unsigned mask = rest;; mask = (mask - 1) & rest) {
      next.after.partial = mask;
      if (space.sizeOfMask(mask) == partialSize) {
        next.atoms = permuteOrder(space, at, next.after);
        next.toAtoms = permuteOrder(space, next.after, at);
        dropFixedAtoms(space, next.atoms, next.toAtoms);
        if (!next.atoms.empty())
          finish(next, localBytes);
      }
      if (mask == 0)
        return;
    }
  };
  auto fill = [&](auto &self, unsigned dim, int64_t parts,
                  unsigned rest) -> void {
    if (parts == 1) {
      if (++dim == space.sizes.size()) {
        fillPartial(rest);
        return;
      }
      AtomList saved = std::move(next.after.dims[dim]);
      next.after.dims[dim].clear();
      self(self, dim, space.sizeOf(at.dims[dim]), rest);
      next.after.dims[dim] = std::move(saved);
      return;
    }
    for (unsigned atom = 0; atom < space.atoms.size(); ++atom) {
      if (!(rest >> atom & 1) || parts % space.atoms[atom].size != 0)
        continue;
      next.after.dims[dim].push_back(atom);
      self(self, dim, parts / space.atoms[atom].size, rest & ~(1u << atom));
      next.after.dims[dim].pop_back();
    }
  };
  if (space.sizes.empty()) {
    fillPartial(space.allAtoms());
    return;
  }
  next.after.dims[0].clear();
  fill(fill, 0, space.sizeOf(at.dims[0]), space.allAtoms());
}

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

namespace {
struct Node {
  Arrangement at;
  PathCost cost;
  int previous;
  ReshardMove move;
  bool isSettled = false;
};
} // namespace

/// Shards in every dimension and in the partial sum.
static SmallVector<int64_t, 5> classOf(const ReshardSpace &space,
                                       const Arrangement &at) {
  SmallVector<int64_t, 5> shards;
  for (unsigned dim = 0; dim < space.sizes.size(); ++dim)
    shards.push_back(space.shards(at, dim));
  shards.push_back(space.sizeOfMask(at.partial));
  return shards;
}

/// Bytes of its target block that a device does not hold, for a device where
/// that is the most; exact where no dimension has padding, else a lower bound.
static int64_t missingBytes(const ReshardSpace &space) {
  int64_t wanted = space.localBytes(space.to);
  int64_t common = space.outsideBytes;
  for (unsigned dim = 0; dim < space.sizes.size(); ++dim) {
    const AtomList &from = space.from.dims[dim], &to = space.to.dims[dim];
    int64_t shards[] = {space.shards(space.from, dim),
                        space.shards(space.to, dim)};
    if (space.sizes[dim] % shards[0] != 0 || space.sizes[dim] % shards[1] != 0)
      return std::max<int64_t>(0, wanted - space.localBytes(space.from));
    auto [restFrom, restTo] =
        std::mismatch(from.begin(), from.end(), to.begin(), to.end());
    // Split by different atoms, some device holds another part.
    if (restFrom != from.end() && restTo != to.end())
      return wanted;
    common *= space.sizes[dim] / std::max(shards[0], shards[1]);
  }
  return wanted - common;
}

std::optional<ReshardMove>
hyperparallel::findOptimalMove(const ReshardSpace &space) {
  std::optional<ReshardMove> best;
  const uint64_t goal = space.to.key();
  auto keepBest = [&](ReshardMove move) {
    if (move.after.key() == goal && (!best || move.bytes < best->bytes))
      best = std::move(move);
  };
  MoveGenerator moves(space, space.from, keepBest);
  moves.all();
  if (!best)
    moves.permutes();
  if (!best)
    return std::nullopt;
  // A reduction without padding receives as little as any can.
  bool reduces = best->kind == CollectiveKind::AllReduce ||
                 best->kind == CollectiveKind::ReduceScatter;
  bool isPadded = space.localBytes(space.from) % space.sizeOf(best->atoms) != 0;
  for (unsigned dim = 0; dim < space.sizes.size(); ++dim)
    isPadded |= space.sizes[dim] % space.shards(space.to, dim) != 0;
  if (reduces ? !isPadded : best->bytes == missingBytes(space))
    return best;
  return std::nullopt;
}

std::optional<std::vector<ReshardMove>> hyperparallel::findCheapestMoves(
    const ReshardSpace &space, PathObjective objective,
    std::optional<PathCost> bound, size_t limit, bool &gaveUp) {
  // By cost so far and bound on the rest, then by number: a total order, so
  // that the result is the same on every machine.
  using Entry = std::pair<PathCost, int>;
  auto later = [](const Entry &a, const Entry &b) {
    return b.first < a.first || (!(a.first < b.first) && b.second < a.second);
  };
  std::priority_queue<Entry, std::vector<Entry>, decltype(later)> queue(later);
  std::vector<Node> nodes;
  llvm::DenseMap<uint64_t, int> numberOf;
  std::set<SmallVector<int64_t, 5>> permutedClasses;

  const int64_t wanted = space.localBytes(space.to);
  auto remaining = [&](const Arrangement &at) {
    bool isTerm = at.partial != 0 && space.to.partial == 0;
    int64_t lacking = isTerm ? wanted : wanted - space.localBytes(at);
    return objective.leastCostOf(std::max<int64_t>(0, lacking));
  };
  nodes.push_back({space.from, {}, -1, {}});
  numberOf[space.from.key()] = 0;
  queue.push({{}, 0});
  const uint64_t goal = space.to.key();

  while (!queue.empty()) {
    int current = queue.top().second;
    queue.pop();
    if (nodes[current].isSettled)
      continue;
    nodes[current].isSettled = true;
    Arrangement at = nodes[current].at;
    if (at.key() == goal) {
      std::vector<ReshardMove> path;
      for (int node = current; node != 0; node = nodes[node].previous)
        path.push_back(nodes[node].move);
      std::reverse(path.begin(), path.end());
      return path;
    }
    if (nodes.size() > limit) {
      gaveUp = true;
      return std::nullopt;
    }
    PathCost here = nodes[current].cost;
    auto relax = [&](ReshardMove move) {
      PathCost cost = here + objective.costOf(move);
      PathCost estimate = cost + remaining(move.after);
      if (bound && *bound < estimate)
        return;
      auto [it, isNew] = numberOf.try_emplace(move.after.key(), nodes.size());
      if (isNew) {
        nodes.push_back({move.after, cost, current, std::move(move)});
      } else {
        Node &node = nodes[it->second];
        if (node.isSettled || !(cost < node.cost))
          return;
        node.cost = cost;
        node.previous = current;
        node.move = std::move(move);
      }
      queue.push({estimate, it->second});
    };
    MoveGenerator moves(space, at, relax);
    moves.all();
    if (permutedClasses.insert(classOf(space, at)).second)
      moves.permutes();
  }
  return std::nullopt;
}
