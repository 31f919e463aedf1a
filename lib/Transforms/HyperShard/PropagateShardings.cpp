//===- PropagateShardings.cpp - a sharding for every tensor ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What: axes travel from annotated values along factors until nothing changes.
// In: a mesh and some annotations. Out: every tensor has a closed sharding.
//
// How: a visit of a node (op or data-flow edge) collects, per factor, what axes
// its tensors hold there, agrees on one list per factor, and lets every tensor
// whose dimensions are open extend to it on the minor side. Dimensions only
// grow, so a work list reaches a fixed point.
//   for each user priority p:           dimensions of later priorities are
//   unseen
//     Elementwise   one-to-one ops, edges: what has one meaning spreads first
//     PassThrough   all ops, factors that every device computes for itself
//     Agreed        all factors, as far as all tensors of a node agree
//     ByCost        one axis wanted by two factors, or two lists for one: the
//                   claim that would cost more bytes to give up wins
// Earlier levels run to their fixed point first, and are part of later ones.
//
// Cost: each dimension grows at most once per part of an axis, and a growth
// revisits the nodes of one value: O((ops + uses) * axes).
// Limits: one mesh; static shapes. Dimensions smaller than the devices along an
// axis are not split further by propagation, only by annotation.
// Source: the nesting of priorities follows Shardy; conflicts by cost are ours.
//===----------------------------------------------------------------------===//
#include "lib/Analysis/PropagationGraph.h"
#include "lib/Transforms/HyperShard/Passes.h"

#include "mlir/IR/Remarks.h"
#include <deque>
#include <set>

#define DEBUG_TYPE "hypershard-propagate-shardings"

namespace mlir::hyperparallel::hypershard {
#define GEN_PASS_DEF_PROPAGATESHARDINGSPASS
#include "lib/Transforms/HyperShard/Passes.h.inc"
} // namespace mlir::hyperparallel::hypershard

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

namespace {

enum class Level { Elementwise, PassThrough, Agreed, ByCost };

/// One tensor of a node claims axes for a factor.
struct Claim {
  unsigned factor;
  AxisList axes;
  /// Bytes that are moved if the claim is given up.
  int64_t bytes;
};

class Propagation {
public:
  explicit Propagation(PropagationGraph &graph) : graph(graph) {}

  void run();
  int64_t numVisits = 0;
  int64_t numConflicts = 0;

private:
  void runLevel(Level level);
  void visit(unsigned node);
  bool takesPart(const Factor &factor) const;
  SmallVector<Claim> collectClaims(const PropagationNode &node) const;
  FactorAxes agree(const PropagationNode &node, ArrayRef<Claim> claims) const;
  FactorAxes decideByCost(PropagationNode &node, ArrayRef<Claim> claims);
  void extend(const NodeTensor &tensor, const PropagationNode &node,
              const FactorAxes &axes);

  PropagationGraph &graph;
  Level level = Level::Elementwise;
  int64_t priority = 0;
  std::deque<unsigned> queue;
  std::vector<bool> isQueued;
};

} // namespace

//===----------------------------------------------------------------------===//
// Claims
//===----------------------------------------------------------------------===//

bool Propagation::takesPart(const Factor &factor) const {
  switch (factor.kind) {
  case FactorKind::PassThrough:
    return true;
  case FactorKind::NeedReplication:
    return false;
  case FactorKind::Reduction:
  case FactorKind::Window:
    return level >= Level::Agreed;
  }
  llvm_unreachable("closed enum");
}

/// As `project` in FactorSharding.h, on the state of propagation.
SmallVector<Claim>
Propagation::collectClaims(const PropagationNode &node) const {
  SmallVector<Claim> claims;
  for (const NodeTensor &tensor : node.tensors) {
    if (!tensor.isSource)
      continue;
    const ValueState &value = graph.values[tensor.value];
    for (auto [factors, dim] : llvm::zip_equal(tensor.dims, value.dims)) {
      if (dim.axes.empty() || dim.priority > priority)
        continue;
      AxisList rest = dim.axes;
      for (auto [index, factor] : llvm::enumerate(factors)) {
        if (rest.empty())
          break;
        AxisList head = rest;
        int64_t size = node.factors[factor].size;
        bool isMinor = index + 1 == factors.size();
        if (!isMinor &&
            !(numShards(rest) <= size && size % numShards(rest) == 0)) {
          auto parts = splitAxes(rest, size);
          if (!parts)
            break;
          head = mergeAxes(parts->first);
          rest = mergeAxes(parts->second);
        } else {
          rest.clear();
        }
        if (takesPart(node.factors[factor]))
          claims.push_back({factor, std::move(head), value.bytes});
      }
    }
  }
  return claims;
}

/// What no claim contradicts: per factor the longest list of which all others
/// are heads (or what they have in common), as far as no other factor claims
/// the same axes.
FactorAxes Propagation::agree(const PropagationNode &node,
                              ArrayRef<Claim> claims) const {
  FactorAxes axes(node.factors.size());
  SmallVector<bool> isContradicted(node.factors.size(), false);
  for (const Claim &claim : claims) {
    AxisList &agreed = axes[claim.factor];
    if (isContradicted[claim.factor]) {
      agreed = commonPrefix(agreed, claim.axes);
      continue;
    }
    if (removePrefix(claim.axes, agreed)) {
      agreed = claim.axes;
      continue;
    }
    if (removePrefix(agreed, claim.axes))
      continue;
    agreed = commonPrefix(agreed, claim.axes);
    isContradicted[claim.factor] = true;
  }
  for (auto [factor, agreed] : llvm::enumerate(axes)) {
    if (agreed.empty())
      continue;
    AxisList others;
    for (const Claim &claim : claims)
      if (claim.factor != factor)
        others.append(claim.axes);
    agreed = prefixWithoutOverlap(agreed, others);
  }
  return axes;
}

static std::string toString(const MeshAxes &mesh, ArrayRef<Axis> axes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << '{';
  llvm::interleaveComma(axes, os, [&](Axis axis) {
    AxisRefAttr attr = mesh.toAttr(axis);
    os << '"' << attr.getName() << '"';
    if (attr.isSubAxis())
      os << ":(" << attr.getPreSize() << ')' << attr.getSize();
  });
  os << '}';
  return text;
}

/// Grants claims in the order of what giving them up would cost. A tie goes to
/// the factor that comes first, and then to the claim that was made first, so
/// that the outcome does not depend on addresses.
FactorAxes Propagation::decideByCost(PropagationNode &node,
                                     ArrayRef<Claim> claims) {
  // Equal claims stand together.
  SmallVector<Claim> sums;
  for (const Claim &claim : claims) {
    auto same = llvm::find_if(sums, [&](const Claim &sum) {
      return sum.factor == claim.factor && sum.axes == claim.axes;
    });
    if (same == sums.end())
      sums.push_back(claim);
    else
      same->bytes += claim.bytes;
  }
  llvm::stable_sort(sums, [](const Claim &a, const Claim &b) {
    return std::make_pair(-a.bytes, a.factor) <
           std::make_pair(-b.bytes, b.factor);
  });
  FactorAxes axes(node.factors.size());
  AxisList granted;
  for (const Claim &claim : sums) {
    std::optional<AxisList> more = removePrefix(claim.axes, axes[claim.factor]);
    bool isHead = removePrefix(axes[claim.factor], claim.axes).has_value();
    AxisList fits = more ? prefixWithoutOverlap(*more, granted) : AxisList();
    if ((!more || fits != *more) && !isHead && !node.wasInConflict) {
      node.wasInConflict = true;
      ++numConflicts;
      remark::missed(node.op->getLoc(),
                     remark::RemarkOpts::name("conflict").category(DEBUG_TYPE))
          << remark::add("{0} on factor {1} gives way: keeping it would save "
                         "{2} bytes, less than what it conflicts with",
                         toString(graph.mesh, claim.axes), claim.factor,
                         claim.bytes);
    }
    axes[claim.factor].append(fits);
    granted.append(fits);
    axes[claim.factor] = mergeAxes(axes[claim.factor]);
  }
  return axes;
}

//===----------------------------------------------------------------------===//
// Visits
//===----------------------------------------------------------------------===//

/// Lets the tensor's open dimensions take what was agreed for their factors.
void Propagation::extend(const NodeTensor &tensor, const PropagationNode &node,
                         const FactorAxes &axes) {
  ValueState &value = graph.values[tensor.value];
  bool hasGrown = false;
  for (auto [index, factors] : llvm::enumerate(tensor.dims)) {
    DimState &dim = value.dims[index];
    if (factors.empty() || !dim.isOpen || dim.priority > priority)
      continue;
    AxisList wanted;
    for (auto [place, factor] : llvm::enumerate(factors)) {
      const Factor &loop = node.factors[factor];
      int64_t shards = numShards(axes[factor]);
      bool isMinor = place + 1 == factors.size();
      if (!isMinor && loop.size % shards != 0)
        break;
      wanted.append(axes[factor]);
      if (shards != loop.size)
        break;
    }
    std::optional<AxisList> more = removePrefix(mergeAxes(wanted), dim.axes);
    if (!more || more->empty())
      continue;
    AxisList taken = value.blocked;
    for (auto [other, state] : llvm::enumerate(value.dims))
      if (other != index)
        taken.append(state.axes);
    AxisList fits = prefixWithoutOverlap(*more, taken);
    if (fits.empty() ||
        numShards(fits) * numShards(dim.axes) > value.type.getDimSize(index))
      continue;
    dim.axes.append(fits);
    dim.axes = mergeAxes(dim.axes);
    hasGrown = true;
  }
  if (!hasGrown)
    return;
  for (unsigned user : graph.users[tensor.value])
    if (!isQueued[user] &&
        (level != Level::Elementwise || graph.nodes[user].isElementwise)) {
      isQueued[user] = true;
      queue.push_back(user);
    }
}

void Propagation::visit(unsigned id) {
  ++numVisits;
  PropagationNode &node = graph.nodes[id];
  SmallVector<Claim> claims = collectClaims(node);
  if (claims.empty())
    return;
  FactorAxes axes =
      level == Level::ByCost ? decideByCost(node, claims) : agree(node, claims);
  for (const NodeTensor &tensor : node.tensors)
    if (tensor.isTarget)
      extend(tensor, node, axes);
}

void Propagation::runLevel(Level newLevel) {
  level = newLevel;
  isQueued.assign(graph.nodes.size(), false);
  for (unsigned id = 0; id < graph.nodes.size(); ++id)
    if (level != Level::Elementwise || graph.nodes[id].isElementwise) {
      isQueued[id] = true;
      queue.push_back(id);
    }
  while (!queue.empty()) {
    unsigned id = queue.front();
    queue.pop_front();
    isQueued[id] = false;
    visit(id);
  }
}

void Propagation::run() {
  std::set<int64_t> priorities = {0};
  for (const ValueState &value : graph.values)
    for (const DimState &dim : value.dims)
      priorities.insert(dim.priority);
  for (int64_t next : priorities) {
    priority = next;
    for (Level each :
         {Level::Elementwise, Level::PassThrough, Level::Agreed, Level::ByCost})
      runLevel(each);
  }
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct PropagateShardingsPass final
    : mlir::hyperparallel::hypershard::impl::PropagateShardingsPassBase<
          PropagateShardingsPass> {
  void runOnOperation() override {
    FailureOr<MeshOp> mesh = getOnlyMesh(getOperation());
    if (failed(mesh))
      return signalPassFailure();
    FailureOr<PropagationGraph> graph =
        PropagationGraph::build(getOperation(), *mesh);
    if (failed(graph))
      return signalPassFailure();
    Propagation propagation(*graph);
    propagation.run();
    numVisits += propagation.numVisits;
    numConflicts += propagation.numConflicts;
    graph->writeShardings();
  }
};
} // namespace
