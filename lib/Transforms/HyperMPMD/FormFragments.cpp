//===- FormFragments.cpp - which group runs which ops ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// In: an imported @main, and a plan with exact paths. Out: @main consists of
// fragments; the module has the topology.
//
//   1. Place: a call that the plan speaks of has its stage; phase and
//      microbatch are on it. With the kind that makes a *place*. Places have a
//      natural order, in which data flows in a training step:
//        forward 0, 1, .. n-1; backward n-1 .. 1, 0; weights; updates.
//      Any other op: from below, the group that uses it, if it is one; then
//      from above: nothing but arguments behind it: free. Makes more bytes than
//      it reads, and one other group uses it: the first place that does. Else:
//      the last place that made one of its operands.
//      Before, sums over several groups are regrouped (GroupSums.h), and what
//      functions make of constants and inputs alone is taken out of them
//      (FreeResults.h).
//   2. Rounds: an op that reads what a later place made begins another round,
//      so that edges never go back: (round, place) is one fragment, and in this
//      order fragments never wait for one after them.
//   3. Build each fragment; free ops are made in every one that reads them.
//
// Cost: O(ops), but for ops that are made several times.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/HyperMPMD/EntryProgram.h"
#include "lib/Transforms/HyperMPMD/FreeResults.h"
#include "lib/Transforms/HyperMPMD/GroupSums.h"
#include "lib/Transforms/HyperMPMD/Passes.h"
#include "lib/Transforms/HyperMPMD/StagePlan.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include <map>

namespace mlir::hyperparallel::hypermpmd {
#define GEN_PASS_DEF_FORMFRAGMENTSPASS
#include "lib/Transforms/HyperMPMD/Passes.h.inc"
} // namespace mlir::hyperparallel::hypermpmd

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypermpmd;

namespace {
struct Place {
  FragmentKind kind = FragmentKind::Forward;
  int64_t stage = 0;
  int64_t microbatch = -1;

  /// In the order in which data flows.
  std::tuple<int, int64_t, int64_t> rank() const {
    switch (kind) {
    case FragmentKind::Forward:
      return {0, stage, microbatch};
    case FragmentKind::Backward:
    case FragmentKind::BackwardInput:
      return {1, -stage, microbatch};
    case FragmentKind::BackwardWeight:
      return {2, -stage, microbatch};
    case FragmentKind::Update:
      return {3, stage, microbatch};
    }
    llvm_unreachable("unknown kind of fragment");
  }
  bool operator<(const Place &other) const { return rank() < other.rank(); }
};

/// Which place uses a value first, and whether all that do are of one group.
struct Uses {
  std::optional<Place> first;
  StringAttr group;
  bool severalGroups = false;

  void add(const Place &place, StringAttr placeGroup) {
    severalGroups |= group && group != placeGroup;
    group = placeGroup;
    if (!first || place < *first)
      first = place;
  }
  void add(const Uses &other) {
    if (!other.first)
      return;
    add(*other.first, other.group);
    severalGroups |= other.severalGroups;
  }
};

/// Where the ops of @main go.
class Placement {
public:
  Placement(func::FuncOp main, const StagePlan &plan)
      : body(main.getBody().front()), plan(plan) {}

  LogicalResult run();

  /// Null for a free op.
  const Place *of(Operation *op) const {
    auto found = places.find(op);
    return found == places.end() ? nullptr : &found->second;
  }
  /// The place of what makes the value; null for arguments and free ops.
  const Place *of(Value value) const {
    Operation *maker = value.getDefiningOp();
    return maker ? of(maker) : nullptr;
  }
  int64_t numPlaced = 0;

private:
  LogicalResult placeMarked();
  void collectUses();
  void placeOthers();
  StringAttr groupOf(const Place &place) const {
    return plan.groups[place.stage];
  }

  Block &body;
  const StagePlan &plan;
  DenseMap<Operation *, Place> places;
  DenseMap<Operation *, Uses> uses;
};

/// A fragment to be.
struct Part {
  Place place;
  SmallVector<Operation *> ops;
};
} // namespace

//===----------------------------------------------------------------------===//
// Place
//===----------------------------------------------------------------------===//

LogicalResult Placement::placeMarked() {
  for (Operation &op : body.without_terminator()) {
    auto path = op.getAttrOfType<StringAttr>("hp.path");
    auto stage =
        path ? plan.stageOfPath.find(path.getValue()) : plan.stageOfPath.end();
    if (stage == plan.stageOfPath.end())
      continue;
    Place place;
    place.stage = stage->second;
    if (auto phase = op.getAttrOfType<StringAttr>("hp.phase")) {
      std::optional<FragmentKind> kind =
          symbolizeFragmentKind(phase.getValue());
      if (!kind)
        return op.emitError("expected hp.phase to be forward, backward, "
                            "backward_input, backward_weight or update but "
                            "got ")
               << phase;
      place.kind = *kind;
    }
    if (auto microbatch = op.getAttrOfType<IntegerAttr>(
            HyperMPMDDialect::kMicrobatchAttrName))
      place.microbatch = microbatch.getInt();
    places[&op] = place;
  }
  if (places.empty())
    return body.getParentOp()->emitError(
        "expected calls with hp.path of the plan's blocks but got none");
  return success();
}

/// The op of `body` that a user is, or is in.
static Operation *inBlock(Block &body, Operation *user) {
  return body.findAncestorOpInBlock(*user);
}

void Placement::collectUses() {
  for (Operation &op : llvm::reverse(body)) {
    Uses &mine = uses[&op];
    for (Operation *user : op.getUsers()) {
      Operation *outer = inBlock(body, user);
      if (const Place *place = of(outer))
        mine.add(*place, groupOf(*place));
      else
        mine.add(Uses(uses.lookup(outer)));
    }
  }
}

static int64_t bytesOf(TypeRange types) {
  int64_t bytes = 0;
  for (Type type : types)
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      bytes += byteSize(tensor);
  return bytes;
}

/// What the op reads, in its regions too, from outside of it.
static SmallVector<Value> readFromOutside(Operation *op) {
  llvm::SetVector<Value> values;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (!op->isProperAncestor(operand.getParentBlock()->getParentOp()) &&
          operand.getParentBlock()->getParentOp() != op)
        values.insert(operand);
  });
  return values.takeVector();
}

void Placement::placeOthers() {
  Place first = places.begin()->second;
  for (auto &[op, place] : places)
    first = std::min(first, place);
  llvm::SmallPtrSet<Operation *, 8> returned;
  for (Value value : body.getTerminator()->getOperands())
    if (Operation *maker = value.getDefiningOp())
      returned.insert(maker);
  for (Operation &op : body.without_terminator()) {
    if (places.contains(&op))
      continue;
    const Place *last = nullptr;
    int64_t read = 0;
    for (Value value : readFromOutside(&op))
      if (const Place *place = of(value)) {
        read += bytesOf(value.getType());
        last = !last || *last < *place ? place : last;
      }
    const Uses &mine = uses[&op];
    if (!last) {
      if (!returned.contains(&op))
        continue; // free
      Place chosen = mine.first ? std::max(*mine.first, first) : first;
      places[&op] = chosen;
      ++numPlaced;
      continue;
    }
    bool growsElsewhere = mine.first && !mine.severalGroups &&
                          mine.group != groupOf(*last) &&
                          bytesOf(op.getResultTypes()) > read;
    // Not in one expression: `last` is in the map, which moves when it grows.
    Place chosen = growsElsewhere ? *mine.first : *last;
    places[&op] = chosen;
    ++numPlaced;
  }
}

LogicalResult Placement::run() {
  if (failed(placeMarked()))
    return failure();
  collectUses();
  placeOthers();
  return success();
}

//===----------------------------------------------------------------------===//
// Rounds
//===----------------------------------------------------------------------===//

static SmallVector<Part> formParts(Block &body, const Placement &placement) {
  DenseMap<Operation *, int64_t> rounds;
  std::map<std::pair<int64_t, std::tuple<int, int64_t, int64_t>>, Part> parts;
  for (Operation &op : body.without_terminator()) {
    const Place *place = placement.of(&op);
    if (!place)
      continue;
    int64_t round = 0;
    for (Value value : readFromOutside(&op))
      if (const Place *source = placement.of(value))
        round = std::max(round, rounds.lookup(value.getDefiningOp()) +
                                    (*place < *source ? 1 : 0));
    rounds[&op] = round;
    Part &part = parts[{round, place->rank()}];
    part.place = *place;
    part.ops.push_back(&op);
  }
  SmallVector<Part> result;
  for (auto &[key, part] : parts)
    result.push_back(std::move(part));
  return result;
}

//===----------------------------------------------------------------------===//
// Build
//===----------------------------------------------------------------------===//

namespace {
class FragmentBuilder {
public:
  FragmentBuilder(Block &body, const Placement &placement,
                  const StagePlan &plan)
      : body(body), placement(placement), plan(plan),
        builder(body.getTerminator()) {
    for (auto [number, op] : llvm::enumerate(body))
      numbers[&op] = number;
  }

  void build(const Part &part);
  /// Points what is left at the fragments, and drops the old ops.
  void finish();
  int64_t numCloned = 0;

private:
  SmallVector<Operation *> withFreeOps(const Part &part);
  bool isUsedOutside(OpResult result, const Part &part);

  Block &body;
  const Placement &placement;
  const StagePlan &plan;
  OpBuilder builder;
  DenseMap<Operation *, unsigned> numbers;
  DenseMap<Operation *, const Part *> partOf;
  llvm::SmallPtrSet<Operation *, 32> madeFree;
  /// From old values to results of fragments.
  IRMapping made;
};
} // namespace

/// The part's ops, and the free ones that they need, in the order of the
/// program.
SmallVector<Operation *> FragmentBuilder::withFreeOps(const Part &part) {
  llvm::SetVector<Operation *> ops(part.ops.begin(), part.ops.end());
  for (unsigned next = 0; next < ops.size(); ++next)
    for (Value value : readFromOutside(ops[next])) {
      Operation *maker = value.getDefiningOp();
      if (maker && !placement.of(maker))
        ops.insert(maker);
    }
  SmallVector<Operation *> sorted = ops.takeVector();
  llvm::sort(sorted, [&](Operation *a, Operation *b) {
    return numbers.lookup(a) < numbers.lookup(b);
  });
  for (Operation *op : sorted)
    if (!placement.of(op) && !madeFree.insert(op).second)
      ++numCloned;
  return sorted;
}

bool FragmentBuilder::isUsedOutside(OpResult result, const Part &part) {
  return llvm::any_of(result.getUsers(), [&](Operation *user) {
    Operation *outer = inBlock(body, user);
    return partOf.lookup(outer) != &part;
  });
}

void FragmentBuilder::build(const Part &part) {
  for (Operation *op : part.ops)
    partOf[op] = &part;
  SmallVector<Operation *> ops = withFreeOps(part);
  llvm::SmallPtrSet<Operation *, 16> inside(ops.begin(), ops.end());
  llvm::SetVector<Value> inputs;
  SmallVector<OpResult> outputs;
  for (Operation *op : ops) {
    for (Value value : readFromOutside(op))
      if (!inside.contains(value.getDefiningOp()))
        inputs.insert(value);
    if (placement.of(op))
      for (OpResult result : op->getResults())
        if (isUsedOutside(result, part))
          outputs.push_back(result);
  }
  SmallVector<Value> operands;
  for (Value value : inputs)
    operands.push_back(made.lookupOrDefault(value));
  SmallVector<Type> types;
  for (OpResult result : outputs)
    types.push_back(result.getType());
  const Place &place = part.place;
  auto fragment = FragmentOp::create(
      builder, part.ops.front()->getLoc(), types, plan.groups[place.stage],
      builder.getI64IntegerAttr(place.stage),
      place.microbatch < 0 ? IntegerAttr()
                           : builder.getI64IntegerAttr(place.microbatch),
      FragmentKindAttr::get(builder.getContext(), place.kind), operands);
  Block *block = new Block();
  fragment.getBody().push_back(block);
  IRMapping mapping;
  for (Value value : inputs)
    mapping.map(value, block->addArgument(value.getType(), value.getLoc()));
  OpBuilder inner = OpBuilder::atBlockEnd(block);
  for (Operation *op : ops)
    inner.clone(*op, mapping)
        ->removeAttr(HyperMPMDDialect::kMicrobatchAttrName);
  SmallVector<Value> yielded;
  for (OpResult result : outputs)
    yielded.push_back(mapping.lookup(result));
  YieldOp::create(inner, fragment.getLoc(), yielded);
  for (auto [old, result] : llvm::zip_equal(outputs, fragment.getResults()))
    made.map(Value(old), result);
}

void FragmentBuilder::finish() {
  Operation *terminator = body.getTerminator();
  for (OpOperand &operand : terminator->getOpOperands())
    operand.set(made.lookupOrDefault(operand.get()));
  SmallVector<Operation *> old;
  for (auto [op, number] : numbers)
    if (op != terminator)
      old.push_back(op);
  llvm::sort(old, [&](Operation *a, Operation *b) {
    return numbers.lookup(a) > numbers.lookup(b);
  });
  for (Operation *op : old)
    op->erase();
}

namespace {
struct FormFragmentsPass
    : hypermpmd::impl::FormFragmentsPassBase<FormFragmentsPass> {
  using FormFragmentsPassBase::FormFragmentsPassBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> main = getEntry(getOperation());
    if (failed(main))
      return signalPassFailure();
    FailureOr<StagePlan> stages = StagePlan::read(plan, *main);
    if (failed(stages))
      return signalPassFailure();
    numSums = groupSums(*main, *stages);
    numFree = freeResults(*main, *stages);
    Placement placement(*main, *stages);
    if (failed(placement.run()))
      return signalPassFailure();
    getOperation()->setAttr(HyperMPMDDialect::kTopologyAttrName,
                            stages->topology);
    Block &body = main->getBody().front();
    SmallVector<Part> parts = formParts(body, placement);
    FragmentBuilder builder(body, placement, *stages);
    for (const Part &part : parts)
      builder.build(part);
    builder.finish();
    numFragments = parts.size();
    numCloned = builder.numCloned;
    numPlaced = placement.numPlaced;
  }
};
} // namespace
