//===- ReshardPath.cpp - from one layout to another, at least cost --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// 1. Refuse what cannot be said in collectives (copies into a partial sum).
// 2. Make the gathering plan: reduce, gather every dimension that differs down
//    to the head that both layouts share, slice. It always exists, bounds the
//    search, and is what a remark names as refused.
// 3. Cut the axes of both layouts into common atoms, and search the
//    arrangements of atoms (ReshardSearch.cpp) in the largest space that the
//    budget allows:
//      a. atoms of prime size, all dimensions as stops on the way;
//      b. common atoms, all dimensions;
//      c. as b, with the common head of every dimension held fixed;
//      d. as c, without stops in dimensions that stay as they are; of a space
//         that is too large, as much as the budget allows.
//    If that does not reach the target, or an axis is cut in ways that have no
//    common refinement (parts of 2 and of 3 at the head of 6), the plan is that
//    of 2.
// 4. Turn moves of atoms into steps, joining neighbours that are one
// collective.
//
// Cost: a search visits at most kMaxArrangements arrangements, so a plan is
// bounded however many axes and dimensions there are: 20 us for two axes, 10 ms
// for four axes that all move among six dimensions. Plans are remembered.
//===----------------------------------------------------------------------===//
#include "lib/Analysis/ReshardPath.h"

#include "dialects/Interfaces/CostOpInterface.h"
#include "lib/Analysis/ReshardSearch.h"

#include "llvm/Support/raw_ostream.h"
#include <limits>
#include <set>

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

static constexpr unsigned kMaxArrangements = 8000;
/// Stops on the way in other dimensions are tried in smaller spaces only: they
/// are seldom of use.
static constexpr unsigned kMaxWithStops = 3000;
/// Of more atoms than this, the permutes alone are too many.
static constexpr unsigned kMaxPartlyAtoms = 6;

//===----------------------------------------------------------------------===//
// Refusal
//===----------------------------------------------------------------------===//

/// Are equal copies terms of such a partial value?
static bool copiesAreTerms(Reduction kind) {
  return kind != Reduction::Sum && kind != Reduction::Prod;
}

static std::string describe(const MeshAxes &mesh, const TensorLayout &layout) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << stringifyReduction(layout.kind) << " {";
  llvm::interleaveComma(layout.partial, os, [&](Axis axis) {
    AxisRefAttr ref = mesh.toAttr(axis);
    os << '"' << ref.getName() << '"';
    if (ref.isSubAxis())
      os << ":(" << ref.getPreSize() << ')' << ref.getSize();
  });
  os << '}';
  return text;
}

static std::string refusalOf(const MeshAxes &mesh, const TensorLayout &from,
                             const TensorLayout &to) {
  if (to.partial.empty())
    return {};
  if (!from.partial.empty() && from.kind != to.kind)
    return "a value that is partial over " + describe(mesh, from) +
           " cannot become partial over " + describe(mesh, to) +
           "; reduce it first";
  // A sum keeps its number of terms; they may change places.
  if (!copiesAreTerms(to.kind) &&
      numShards(from.partial) % numShards(to.partial) != 0)
    return "copies cannot become the terms of a partial value over " +
           describe(mesh, to) +
           "; only terms of max, min, and, or, avg may be "
           "equal";
  return {};
}

//===----------------------------------------------------------------------===//
// The gathering plan
//===----------------------------------------------------------------------===//

/// Adds the costs of a step and puts it at the end of a plan, in one with the
/// step before it where the two are one collective.
static void append(ReshardPlan &plan, ReshardStep step, const MeshAxes &mesh,
                   const CommunicationCost &cost) {
  bool isGather = step.kind == CollectiveKind::AllGather;
  bool joins = isGather || step.kind == CollectiveKind::SliceLocal ||
               step.kind == CollectiveKind::ReduceScatter;
  if (joins && !plan.steps.empty() && plan.steps.back().kind == step.kind &&
      plan.steps.back().dim == step.dim) {
    ReshardStep last = plan.steps.pop_back_val();
    plan.bytes -= last.bytes;
    plan.seconds -= last.seconds;
    // A gather takes the minor axes first, a slice gives them last.
    AxisList axes(isGather ? step.axes : last.axes);
    axes.append(isGather ? last.axes : step.axes);
    step.axes = mergeAxes(axes);
    step.bytes += last.bytes;
  }
  step.seconds = cost.seconds(step.kind, mesh, step.axes, step.bytes);
  plan.bytes += step.bytes;
  plan.seconds += step.seconds;
  plan.steps.push_back(std::move(step));
}

/// `axes` without `others`; nullopt if an axis cannot be cut so.
static std::optional<AxisList> subtract(ArrayRef<Axis> axes,
                                        ArrayRef<Axis> others) {
  AxisList rest(axes);
  for (Axis other : others) {
    AxisList next;
    int64_t otherEnd = other.pre * other.size;
    for (Axis axis : rest) {
      if (!axis.overlaps(other)) {
        next.push_back(axis);
        continue;
      }
      int64_t end = axis.pre * axis.size;
      if (other.pre > axis.pre) {
        if (other.pre % axis.pre != 0)
          return std::nullopt;
        next.push_back({axis.axis, axis.pre, other.pre / axis.pre});
      }
      if (otherEnd < end) {
        if (end % otherEnd != 0)
          return std::nullopt;
        next.push_back({axis.axis, otherEnd, end / otherEnd});
      }
    }
    rest = std::move(next);
  }
  return rest;
}

/// The head that a dimension can keep when all else is gathered, then sliced.
static AxisList keptHead(int64_t size, ArrayRef<Axis> from, ArrayRef<Axis> to) {
  AxisList head = commonPrefix(from, to);
  int64_t shards = numShards(head);
  if (blocksNest(size, shards, numShards(from) / shards) &&
      blocksNest(size, shards, numShards(to) / shards))
    return head;
  return from == to ? AxisList(from) : AxisList();
}

/// Nothing if it would have to make terms of a sum.
static std::optional<ReshardPlan> planByGathering(const MeshAxes &mesh,
                                                  const CommunicationCost &cost,
                                                  RankedTensorType type,
                                                  const TensorLayout &from,
                                                  const TensorLayout &to) {
  ReshardPlan plan;
  TensorLayout at = from;
  auto step = [&](CollectiveKind kind, int64_t dim, ArrayRef<Axis> axes,
                  TensorLayout after) {
    ReshardStep step;
    step.kind = kind;
    step.dim = dim;
    step.axes.assign(axes.begin(), axes.end());
    step.bytes = CommunicationCost::bytesReceived(kind, numShards(axes),
                                                  at.localBytes(type));
    at = std::move(after);
    step.after = at;
    append(plan, std::move(step), mesh, cost);
  };

  // Sums first: what is gathered later is then the least.
  std::optional<AxisList> reduced = subtract(from.partial, to.partial);
  if (!reduced)
    reduced = from.partial;
  AxisList kept = *subtract(from.partial, *reduced);
  if (kept != to.partial && !copiesAreTerms(to.kind))
    return std::nullopt;
  if (!reduced->empty()) {
    TensorLayout after = at;
    after.setPartial(from.kind, kept);
    step(CollectiveKind::AllReduce, -1, *reduced, after);
  }
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    AxisList head = keptHead(size, from.dims[dim], to.dims[dim]);
    AxisList rest = *removePrefix(from.dims[dim], head);
    if (rest.empty())
      continue;
    TensorLayout after = at;
    after.dims[dim] = head;
    step(CollectiveKind::AllGather, dim, rest, after);
  }
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    AxisList rest = *removePrefix(to.dims[dim], at.dims[dim]);
    if (rest.empty())
      continue;
    TensorLayout after = at;
    after.dims[dim] = to.dims[dim];
    step(CollectiveKind::SliceLocal, dim, rest, after);
  }
  if (at.partial != to.partial)
    step(CollectiveKind::AllReduce, -1, {}, to);
  return plan;
}

//===----------------------------------------------------------------------===//
// Common atoms
//===----------------------------------------------------------------------===//

namespace {
/// The parts of mesh axes of which two layouts are made.
class Atoms {
public:
  /// nullopt if there are none: the layouts cut an axis in incompatible ways.
  static std::optional<Atoms> create(const TensorLayout &from,
                                     const TensorLayout &to, bool prime) {
    std::map<uint32_t, std::set<int64_t>> cuts;
    AxisList all;
    for (const TensorLayout *layout : {&from, &to}) {
      all.append(layout->partial);
      for (const AxisList &axes : layout->dims)
        all.append(axes);
    }
    for (Axis axis : all)
      cuts[axis.axis].insert({axis.pre, axis.pre * axis.size});
    Atoms result;
    for (auto &[axis, points] : cuts)
      for (auto it = points.begin(); std::next(it) != points.end(); ++it) {
        int64_t pre = *it, end = *std::next(it);
        if (end % pre != 0)
          return std::nullopt;
        if (overlaps(all, Axis{axis, pre, end / pre}))
          result.add({axis, pre, end / pre}, prime);
      }
    return result;
  }

  ArrayRef<Axis> get() const { return atoms; }
  /// Numbers of the atoms that make up the axes.
  SmallVector<unsigned> numbersOf(ArrayRef<Axis> axes) const {
    SmallVector<unsigned> numbers;
    for (Axis axis : axes)
      for (auto [number, atom] : llvm::enumerate(atoms))
        if (atom.overlaps(axis))
          numbers.push_back(number);
    return numbers;
  }

private:
  void add(Axis part, bool prime) {
    int64_t rest = part.size;
    for (int64_t factor = 2; prime && factor * factor <= rest;)
      if (rest % factor == 0) {
        atoms.push_back({part.axis, part.pre, factor});
        part.pre *= factor;
        rest /= factor;
      } else {
        ++factor;
      }
    if (rest > 1)
      atoms.push_back({part.axis, part.pre, rest});
  }

  SmallVector<Axis> atoms;
};

/// How much of the space of layouts is searched.
struct SearchScope {
  bool primeAtoms, freezeHeads, onlyTouchedDims;
  /// The space may be larger than what is searched of it.
  bool partly = false;
};

/// A space, and what its arrangements mean.
struct NamedSpace {
  ReshardSpace space;
  /// Of each searched dimension, the tensor's dimension.
  SmallVector<unsigned, 4> dims;
  /// Of each dimension of the tensor, the axes at its head that stay.
  SmallVector<AxisList, 4> fixed;
  Reduction kind;

  AxisList axesOf(ArrayRef<uint8_t> list) const {
    AxisList axes;
    for (uint8_t atom : list)
      axes.push_back(space.atoms[atom]);
    return axes;
  }
  TensorLayout layoutOf(const Arrangement &at) const {
    TensorLayout layout;
    layout.dims.assign(fixed.begin(), fixed.end());
    for (auto [list, dim] : llvm::zip_equal(at.dims, dims)) {
      layout.dims[dim].append(axesOf(list));
      layout.dims[dim] = mergeAxes(layout.dims[dim]);
    }
    AxisList partial;
    for (unsigned atom = 0; atom < space.atoms.size(); ++atom)
      if (at.partial >> atom & 1)
        partial.push_back(space.atoms[atom]);
    layout.setPartial(kind, partial);
    return layout;
  }
};
} // namespace

/// How many atoms the lists share at their head and may keep.
static size_t frozenHead(ArrayRef<Axis> atoms, ArrayRef<unsigned> from,
                         ArrayRef<unsigned> to, int64_t size) {
  if (from == to)
    return from.size();
  auto shards = [&](ArrayRef<unsigned> list) {
    int64_t count = 1;
    for (unsigned atom : list)
      count *= atoms[atom].size;
    return count;
  };
  size_t head = 0;
  while (head < std::min(from.size(), to.size()) && from[head] == to[head])
    ++head;
  for (; head > 0; --head) {
    int64_t coarse = shards(from.take_front(head));
    if (blocksNest(size, coarse, shards(from.drop_front(head))) &&
        blocksNest(size, coarse, shards(to.drop_front(head))))
      break;
  }
  return head;
}

/// The space of that scope; nullopt if it is too large or has no atoms.
static std::optional<NamedSpace> makeSpace(RankedTensorType type,
                                           const TensorLayout &from,
                                           const TensorLayout &to,
                                           SearchScope scope) {
  std::optional<Atoms> atoms = Atoms::create(from, to, scope.primeAtoms);
  if (!atoms)
    return std::nullopt;
  NamedSpace result;
  result.kind = from.partial.empty() ? to.kind : from.kind;
  ReshardSpace &space = result.space;
  space.canRename = !to.partial.empty() && copiesAreTerms(to.kind);
  space.outsideBytes = byteSize(type.getElementType());

  // Give numbers to the atoms that may move, in mesh order.
  SmallVector<SmallVector<unsigned>> fromLists, toLists;
  SmallVector<unsigned> moving = atoms->numbersOf(from.partial);
  llvm::append_range(moving, atoms->numbersOf(to.partial));
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    SmallVector<unsigned> source = atoms->numbersOf(from.dims[dim]);
    SmallVector<unsigned> target = atoms->numbersOf(to.dims[dim]);
    size_t head =
        scope.freezeHeads ? frozenHead(atoms->get(), source, target, size) : 0;
    AxisList fixed;
    for (unsigned atom : ArrayRef(source).take_front(head))
      fixed.push_back(atoms->get()[atom]);
    result.fixed.push_back(mergeAxes(fixed));
    source.erase(source.begin(), source.begin() + head);
    target.erase(target.begin(), target.begin() + head);
    llvm::append_range(moving, source);
    llvm::append_range(moving, target);
    // A dimension of one element is no place to put axes for a while.
    bool touched = !source.empty() || !target.empty();
    if (touched || (!scope.onlyTouchedDims && size > 1)) {
      result.dims.push_back(dim);
      space.sizes.push_back(size);
      space.fixedShards.push_back(numShards(fixed));
      fromLists.push_back(std::move(source));
      toLists.push_back(std::move(target));
    } else {
      space.outsideBytes *= blockSize(size, numShards(fixed));
    }
  }
  llvm::sort(moving);
  moving.erase(llvm::unique(moving), moving.end());
  if (moving.size() > kMaxAtoms || space.sizes.size() > kMaxSearchDims)
    return std::nullopt;
  auto renumber = [&](ArrayRef<unsigned> list) {
    return AtomList(llvm::map_range(list, [&](unsigned atom) -> uint8_t {
      return llvm::lower_bound(moving, atom) - moving.begin();
    }));
  };
  for (unsigned atom : moving)
    space.atoms.push_back(atoms->get()[atom]);
  for (auto [source, target] : llvm::zip_equal(fromLists, toLists)) {
    space.from.dims.push_back(renumber(source));
    space.to.dims.push_back(renumber(target));
  }
  for (uint8_t atom : renumber(atoms->numbersOf(from.partial)))
    space.from.partial |= 1u << atom;
  for (uint8_t atom : renumber(atoms->numbersOf(to.partial)))
    space.to.partial |= 1u << atom;
  bool isSmall = space.numArrangements() <=
                 (scope.freezeHeads ? kMaxArrangements : kMaxWithStops);
  if (!isSmall && (!scope.partly || moving.size() > kMaxPartlyAtoms))
    return std::nullopt;
  return result;
}

static std::optional<NamedSpace> largestSpace(RankedTensorType type,
                                              const TensorLayout &from,
                                              const TensorLayout &to) {
  for (SearchScope scope :
       {SearchScope{true, false, false}, SearchScope{false, false, false},
        SearchScope{false, true, false}, SearchScope{false, true, true}})
    if (auto space = makeSpace(type, from, to, scope))
      return space;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// The planner
//===----------------------------------------------------------------------===//

static ReshardStep makeStep(const NamedSpace &space, const ReshardMove &move) {
  auto dimOf = [&](int dim) -> int64_t {
    return dim < 0 ? -1 : int64_t(space.dims[dim]);
  };
  ReshardStep step;
  step.kind = move.kind;
  step.dim = dimOf(move.dim);
  step.concatDim = dimOf(move.concatDim);
  step.axes = mergeAxes(space.axesOf(move.atoms));
  step.toAxes = mergeAxes(space.axesOf(move.toAtoms));
  step.after = space.layoutOf(move.after);
  step.bytes = move.bytes;
  return step;
}

static TensorLayout normalize(const TensorLayout &layout) {
  TensorLayout result = layout;
  for (AxisList &axes : result.dims)
    axes = mergeAxes(axes);
  result.setPartial(layout.kind, layout.partial);
  return result;
}

static ReshardPlan makePlan(const MeshAxes &mesh, const CommunicationCost &cost,
                            RankedTensorType type, const TensorLayout &from,
                            const TensorLayout &to) {
  ReshardPlan plan;
  if (from == to)
    return plan;
  plan.refusal = refusalOf(mesh, from, to);
  plan.seconds = std::numeric_limits<double>::infinity();
  if (!plan.isPossible())
    return plan;

  bool bySeconds = cost.isMeasured();
  auto weigh = [&](double bytes, double seconds) {
    return bySeconds ? PathCost{seconds, bytes} : PathCost{bytes, seconds};
  };
  std::optional<ReshardPlan> gathering =
      planByGathering(mesh, cost, type, from, to);
  std::optional<PathCost> bound;
  if (gathering) // Sums of seconds in another order may differ a little.
    bound = weigh(gathering->bytes, gathering->seconds * (1 + 1e-9));

  // Slices alone cost no bytes, and one for each dimension is the fewest.
  if (gathering && gathering->bytes == 0 && from.partial == to.partial) {
    plan = *gathering;
    plan.gatherBytes = plan.bytes;
    plan.gatherSeconds = plan.seconds;
    return plan;
  }

  bool gaveUp = false;
  if (std::optional<NamedSpace> space = largestSpace(type, from, to)) {
    auto costOf = [&](const ReshardMove &move) {
      return weigh(
          move.bytes,
          cost.seconds(move.kind, mesh, space->axesOf(move.atoms), move.bytes));
    };
    auto leastCostOf = [&](int64_t bytes) {
      return weigh(bytes, cost.leastSeconds(bytes));
    };
    std::optional<std::vector<ReshardMove>> moves;
    if (!bySeconds)
      if (std::optional<ReshardMove> move = findOptimalMove(space->space))
        moves.emplace(1, std::move(*move));
    if (!moves)
      moves = findCheapestMoves(space->space, {costOf, leastCostOf}, bound,
                                kMaxArrangements, gaveUp);
    if (moves) {
      plan.seconds = 0;
      for (const ReshardMove &move : *moves)
        append(plan, makeStep(*space, move), mesh, cost);
    }
  } else {
    gaveUp = true;
  }
  if (plan.steps.empty() && gathering) {
    plan = *gathering;
    plan.isFallback = gaveUp;
  }
  if (plan.steps.empty())
    plan.refusal = "no sequence of collectives makes a value that is partial "
                   "over " +
                   describe(mesh, to);
  assert((!plan.isPossible() || plan.steps.back().after == to) &&
         "a plan ends at its target");
  if (gathering) {
    plan.gatherBytes = gathering->bytes;
    plan.gatherSeconds = gathering->seconds;
  }
  return plan;
}

static void appendLayout(std::vector<int64_t> &key,
                         const TensorLayout &layout) {
  auto append = [&](ArrayRef<Axis> axes) {
    key.push_back(axes.size());
    for (Axis axis : axes)
      key.insert(key.end(), {axis.axis, axis.pre, axis.size});
  };
  for (const AxisList &axes : layout.dims)
    append(axes);
  append(layout.partial);
  key.push_back(static_cast<int64_t>(layout.kind));
}

const ReshardPlan &ReshardPlanner::plan(RankedTensorType globalType,
                                        const TensorLayout &from,
                                        const TensorLayout &to) {
  TensorLayout source = normalize(from), target = normalize(to);
  // What the plan depends on of the type: shape and bytes of an element.
  Key key(globalType.getShape().begin(), globalType.getShape().end());
  key.push_back(byteSize(globalType.getElementType()));
  appendLayout(key, source);
  appendLayout(key, target);
  std::unique_ptr<ReshardPlan> &entry = plans[std::move(key)];
  if (!entry)
    entry = std::make_unique<ReshardPlan>(
        makePlan(mesh, cost, globalType, source, target));
  return *entry;
}
