//===- InsertTransfers.cpp - a plan's decisions as ops --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// In:  a function of one block with `offload.moves`, positions as they were
//   when it was planned.
// Out: the same values; what moves is stored, ended, fetched and waited for.
//
//   [op a] store …   wait, detach [op o] …   prefetch [op i] …   wait [op b]
//
//   1. Positions become ops before anything is inserted.
//   2. The moves of a value are taken in the order in which it comes back. From
//      then on its uses, and those of its views, are uses of what was fetched;
//      a view that was made earlier is made again. Before an op, what is freed
//      comes first, then what is fetched, in the order in which it is needed,
//      then what is waited for: so the memory that the plan counts on is there,
//      and copies queue as it says.
//   3. A move around the end of the step gives the argument its tier: what is
//      fetched then is the argument itself. If the step makes its next value,
//      that is stored, and returned from the tier. What was fetched from an
//      argument in a tier already is fetched where the plan says instead.
//   4. A move that frees and fetches before the same op only stores, so that a
//      later move of the value finds a copy below.
//   5. What is computed again is made by a copy of its maker, marked `hp.again`
//      lest it be merged with that. It is there before anything else is
//      inserted, so that what it takes is moved for it, too.
//
// Cost: linear in ops and in the uses of the values that move.
// Limits: one block; a value that moves is moved as a whole.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/Offload/Passes.h"

#include "lib/Analysis/StateUpdates.h"
#include "lib/Analysis/Storages.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::hyperparallel::offload {
#define GEN_PASS_DEF_INSERTTRANSFERSPASS
#include "lib/Transforms/Offload/Passes.h.inc"
} // namespace mlir::hyperparallel::offload

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::offload;

namespace {

/// A use of a value or of a view of it.
struct PlacedUse {
  unsigned position;
  OpOperand *operand;
};

/// The moves of a value.
struct Journey {
  /// It is fetched from the tier in which it lives between steps.
  std::optional<MoveAttr> arrival;
  SmallVector<MoveAttr> moves;
  /// It goes to the tier in which it lives between steps.
  std::optional<MoveAttr> departure;
};

class Inserter {
public:
  Inserter(FunctionOpInterface function, CostModel &model)
      : function(function), block(function.getFunctionBody().front()),
        storages(function, model) {}

  /// Checks the moves and sorts them by value.
  LogicalResult read(ArrayAttr attr);
  void insert();

  int64_t numPrefetches = 0, numStores = 0, numRecomputed = 0;

private:
  LogicalResult check(MoveAttr move);
  LogicalResult checkCopies();
  BlockArgument getPlace(Value value);
  void insertMoves(Value value, const Journey &journey);
  LogicalResult checkRecomputed(MoveAttr move, Value value);
  void recompute(Value value, MoveAttr move);
  Value useAgain(Value value, MoveAttr move, int64_t until,
                 ArrayRef<PlacedUse> &uses);
  void store(MoveAttr move, int64_t number, Value current, Value &below);
  void leave(MoveAttr move, int64_t number, Value current, Value &below);
  Value fetch(Value value, Value below, int64_t position, int64_t until,
              ArrayRef<PlacedUse> &uses);
  void placeArgument(BlockArgument argument, TierAttr tier);
  SmallVector<PlacedUse> collectUses(Value value);
  unsigned positionOf(Operation *user);
  PrefetchOp getStreamedBy(Value value);
  Operation *opAt(int64_t position);

  /// What is inserted before an op, in this order.
  enum class Step { Store, Free, Fetch, Use, Again };
  using Key = std::pair<Step, int64_t>;
  /// Lets `build` insert before the op at the position, behind what is there
  /// with a smaller key.
  void insertAt(OpBuilder &builder, int64_t position, Key key,
                function_ref<void()> build);

  FunctionOpInterface function;
  Block &block;
  Storages storages;
  SmallVector<Value> values;
  DenseMap<Operation *, unsigned> positions;
  llvm::MapVector<Value, Journey> journeys;
  /// By position: what was inserted there, by key. Stores are right behind the
  /// op before.
  DenseMap<int64_t, SmallVector<std::pair<Key, Operation *>>> inserted;
  /// What is computed again, by the move that says so.
  DenseMap<Attribute, Value> again;
  /// Others may be placed by them until all is done.
  SmallVector<Operation *> replaced;
};

} // namespace

/// The value stays: it is only stored, for a later move of it.
static bool isStoreOnly(MoveAttr move) {
  return move.getPrefetchBefore() == move.getFreeBefore() &&
         !move.getRecomputed();
}

/// The prefetch that fetches the value from an argument in a tier, or null.
PrefetchOp Inserter::getStreamedBy(Value value) {
  std::optional<uint32_t> storage = storages.lookup(value);
  return storage ? dyn_cast_or_null<PrefetchOp>(
                       storages.getStorages()[*storage].streamedBy)
                 : PrefetchOp();
}

LogicalResult Inserter::check(MoveAttr move) {
  int64_t end = storages.getOps().size();
  auto expected = [&](const Twine &what, int64_t got) {
    return function.emitError("expected ")
           << what << " but got " << got << " in " << move;
  };
  if (move.getValue() >= int64_t(values.size()))
    return expected("the number of one of " + Twine(values.size()) + " values",
                    move.getValue());
  if (move.getEvictAfter() >= end || move.getFreeBefore() > end ||
      move.getPrefetchBefore() > end)
    return expected("positions of at most " + Twine(end) + " ops",
                    std::max(move.getFreeBefore(), move.getPrefetchBefore()));
  Value value = values[move.getValue()];
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || type.getEncoding() || storages.getRoot(value) != value)
    return function.emitError("expected a tensor on the device that is no view "
                              "to move but got ")
           << value.getType() << " in " << move;
  if (move.getRecomputed())
    return checkRecomputed(move, value);
  if (!move.goesAround() || getStreamedBy(value))
    return success();
  BlockArgument place = getPlace(value);
  if (!place || (!storages.getStorages()[*storages.lookup(place)].isUpdated &&
                 value != place))
    return function.emitError(
               "expected an argument, or what is its next value, "
               "to live in a tier between steps but got another "
               "value in ")
           << move;
  if (value == place && !move.getClean())
    return function.emitError("expected an argument that the step leaves as it "
                              "is to be dropped but got a store in ")
           << move;
  return success();
}

LogicalResult Inserter::checkRecomputed(MoveAttr move, Value value) {
  Operation *maker = value.getDefiningOp();
  if (maker && maker->getNumResults() == 1 && !getStreamedBy(value) &&
      move.getPrefetchBefore() < int64_t(storages.getOps().size()))
    return success();
  return function.emitError("expected the only result of an op to be computed "
                            "again before another op but got ")
         << move;
}

/// The argument in whose memory the value is, or null.
BlockArgument Inserter::getPlace(Value value) {
  std::optional<uint32_t> storage = storages.lookup(value);
  if (!storage || !storages.getStorages()[*storage].argument)
    return {};
  return block.getArgument(*storages.getStorages()[*storage].argument);
}

LogicalResult Inserter::read(ArrayAttr attr) {
  values.assign(block.getArguments().begin(), block.getArguments().end());
  for (auto [position, op] : llvm::enumerate(storages.getOps())) {
    positions[op] = position;
    llvm::append_range(values, op->getResults());
  }
  positions[block.getTerminator()] = storages.getOps().size();
  for (Attribute entry : attr) {
    auto move = cast<MoveAttr>(entry);
    if (failed(check(move)))
      return failure();
    Value value = values[move.getValue()];
    if (!move.goesAround()) {
      journeys[value].moves.push_back(move);
      continue;
    }
    BlockArgument place = getPlace(value);
    journeys[place ? Value(place) : value].arrival = move;
    journeys[value].departure = move;
  }
  return checkCopies();
}

LogicalResult Inserter::checkCopies() {
  for (auto &[value, journey] : journeys) {
    llvm::stable_sort(journey.moves, [](MoveAttr a, MoveAttr b) {
      return a.getPrefetchBefore() < b.getPrefetchBefore();
    });
    bool hasCopyBelow = journey.arrival.has_value();
    // What is computed again leaves no copy.
    SmallVector<MoveAttr> moves(journey.moves);
    if (journey.departure)
      moves.push_back(*journey.departure);
    for (MoveAttr move : moves) {
      if (move.getClean() && !hasCopyBelow)
        return function.emitError(
                   "expected a value with a copy below to be "
                   "dropped but got one that was never stored in ")
               << move;
      hasCopyBelow |= !move.getRecomputed();
    }
  }
  return success();
}

unsigned Inserter::positionOf(Operation *user) {
  return positions.lookup(block.findAncestorOpInBlock(*user));
}

Operation *Inserter::opAt(int64_t position) {
  ArrayRef<Operation *> ops = storages.getOps();
  return position < int64_t(ops.size()) ? ops[position] : block.getTerminator();
}

void Inserter::insertAt(OpBuilder &builder, int64_t position, Key key,
                        function_ref<void()> build) {
  auto &there = inserted[position];
  auto next = llvm::upper_bound(
      there, key, [](Key a, const auto &other) { return a < other.first; });
  if (key.first == Step::Store) {
    // Right behind what makes the value, before views that follow it.
    Operation *before = next != there.begin() ? std::prev(next)->second
                        : position > 0        ? opAt(position - 1)
                                              : nullptr;
    if (before)
      builder.setInsertionPointAfter(before);
    else
      builder.setInsertionPointToStart(&block);
  } else {
    builder.setInsertionPoint(next != there.end() ? next->second
                                                  : opAt(position));
  }
  Operation *end = &*builder.getInsertionPoint();
  Operation *last = end->getPrevNode();
  build();
  Operation *first = last ? last->getNextNode() : &block.front();
  if (first != end)
    there.insert(next, {key, first});
}

/// All uses of the value and of its views, in order; not those by which views
/// are made of it.
SmallVector<PlacedUse> Inserter::collectUses(Value value) {
  SmallVector<PlacedUse> uses;
  SmallVector<Value> worklist = {value};
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    for (OpOperand &use : next.getUses()) {
      if (storages.isView(use.getOwner()) && use.getOperandNumber() == 0)
        llvm::append_range(worklist, use.getOwner()->getResults());
      else
        uses.push_back({positionOf(use.getOwner()), &use});
    }
  }
  llvm::sort(uses, [](const PlacedUse &a, const PlacedUse &b) {
    return std::make_pair(a.position, a.operand->getOperandNumber()) <
           std::make_pair(b.position, b.operand->getOperandNumber());
  });
  return uses;
}

/// Views of an argument, made again at another place.
static Value makeAgain(OpBuilder &builder, Value view) {
  SmallVector<Operation *> chain;
  for (Value value = view; Operation *op = value.getDefiningOp();
       value = op->getOperand(0))
    chain.push_back(op);
  IRMapping mapping;
  for (Operation *op : llvm::reverse(chain))
    builder.clone(*op, mapping);
  return mapping.lookupOrDefault(view);
}

/// What stands for `view` if `root` is replaced by `fetched`; made before op
/// `before` unless it was made already.
static Value makeViewAgain(Value view, Value root, Operation *before,
                           const Storages &storages, IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(view))
    return known;
  // From the root to the view.
  SmallVector<Operation *> chain;
  for (Value value = view; value != root;
       value = value.getDefiningOp()->getOperand(0))
    chain.push_back(value.getDefiningOp());
  OpBuilder builder(before);
  for (Operation *op : llvm::reverse(chain))
    if (!mapping.contains(op->getResult(0)))
      builder.clone(*op, mapping);
  return mapping.lookup(view);
}

/// Stores the value unless there is a copy below; what was stored after
/// `number` others of its moves is waited for after what they freed.
void Inserter::store(MoveAttr move, int64_t number, Value current,
                     Value &below) {
  if (below)
    return;
  OpBuilder builder(function.getContext());
  Location loc = current.getLoc();
  auto stored = cast<RankedTensorType>(
      inTier(cast<RankedTensorType>(current.getType()), move.getTier()));
  Value future;
  insertAt(builder, move.getEvictAfter() + 1,
           {Step::Store, move.getFreeBefore()}, [&] {
             future = StoreOp::create(
                 builder, loc, FutureType::get(builder.getContext(), stored),
                 current);
           });
  insertAt(builder, move.getFreeBefore(), {Step::Free, number},
           [&] { below = WaitOp::create(builder, loc, future); });
  ++numStores;
}

/// Stores the value unless there is a copy below, and ends its residency.
void Inserter::leave(MoveAttr move, int64_t number, Value current,
                     Value &below) {
  store(move, number, current, below);
  OpBuilder builder(function.getContext());
  if (current)
    insertAt(builder, move.getFreeBefore(), {Step::Free, number},
             [&] { DetachOp::create(builder, current.getLoc(), current); });
}

/// Fetches the value before op `position` for its uses from there to op
/// `until`, which are taken off `uses`; null if there is none.
Value Inserter::fetch(Value value, Value below, int64_t position, int64_t until,
                      ArrayRef<PlacedUse> &uses) {
  while (!uses.empty() && int64_t(uses.front().position) < position)
    uses = uses.drop_front();
  if (uses.empty() || int64_t(uses.front().position) >= until)
    return {};
  Location loc = value.getLoc();
  OpBuilder builder(function.getContext());
  PrefetchOp streamed = getStreamedBy(value);
  auto type = cast<RankedTensorType>(value.getType());
  Value future, fetched;
  int64_t firstUse = uses.front().position;
  insertAt(builder, position, {Step::Fetch, firstUse}, [&] {
    future = PrefetchOp::create(
        builder, loc,
        FutureType::get(builder.getContext(), inTier(type, TierAttr())),
        streamed ? makeAgain(builder, streamed.getSource()) : below);
  });
  insertAt(builder, firstUse, {Step::Use, 0},
           [&] { fetched = WaitOp::create(builder, loc, future); });
  ++numPrefetches;
  IRMapping mapping;
  mapping.map(value, fetched);
  // Before whatever uses it, be it an op that computes something again.
  Operation *next = fetched.getDefiningOp()->getNextNode();
  for (; !uses.empty() && int64_t(uses.front().position) < until;
       uses = uses.drop_front())
    uses.front().operand->set(makeViewAgain(uses.front().operand->get(), value,
                                            next, storages, mapping));
  return fetched;
}

/// Makes the value again right before the op that the move names.
void Inserter::recompute(Value value, MoveAttr move) {
  OpBuilder builder(function.getContext());
  int64_t position = move.getPrefetchBefore();
  insertAt(builder, position, {Step::Again, 0}, [&] {
    Operation *copy = builder.clone(*value.getDefiningOp());
    copy->setAttr("hp.again", builder.getUnitAttr());
    positions[copy] = position;
    again[move] = copy->getResult(0);
  });
  ++numRecomputed;
}

/// The uses from where the value is computed again take that.
Value Inserter::useAgain(Value value, MoveAttr move, int64_t until,
                         ArrayRef<PlacedUse> &uses) {
  Value made = again.lookup(move);
  while (!uses.empty() &&
         int64_t(uses.front().position) < move.getPrefetchBefore())
    uses = uses.drop_front();
  IRMapping mapping;
  mapping.map(value, made);
  Operation *next = made.getDefiningOp()->getNextNode();
  for (; !uses.empty() && int64_t(uses.front().position) < until;
       uses = uses.drop_front())
    uses.front().operand->set(makeViewAgain(uses.front().operand->get(), value,
                                            next, storages, mapping));
  return made;
}

/// The argument lives in the tier, and so does what it is next.
void Inserter::placeArgument(BlockArgument argument, TierAttr tier) {
  unsigned number = argument.getArgNumber();
  Type placed = inTier(cast<RankedTensorType>(argument.getType()), tier);
  argument.setType(placed);
  SmallVector<Type> inputs(function.getArgumentTypes());
  SmallVector<Type> results(function.getResultTypes());
  inputs[number] = placed;
  for (auto [result, updated] : llvm::enumerate(getUpdatedArguments(function)))
    if (updated == number)
      results[result] = placed;
  function.setType(FunctionType::get(function.getContext(), inputs, results));
}

void Inserter::insertMoves(Value value, const Journey &journey) {
  SmallVector<PlacedUse> found = collectUses(value);
  SmallVector<OpOperand *> returned;
  BlockArgument place = getPlace(value);
  if (journey.departure && place) {
    // The next value of an argument is returned from where it is stored.
    auto updates = getUpdatedArguments(function);
    llvm::erase_if(found, [&](const PlacedUse &use) {
      OpOperand *operand = use.operand;
      bool isNext = operand->getOwner() == block.getTerminator() &&
                    updates[operand->getOperandNumber()] ==
                        std::optional<unsigned>(place.getArgNumber());
      if (isNext)
        returned.push_back(operand);
      return isNext;
    });
  }
  ArrayRef<PlacedUse> uses = found;
  int64_t end = storages.getOps().size() + 1;
  ArrayRef<MoveAttr> moves = journey.moves;
  // Up to where what is there after `number` of the moves is used.
  auto getEnd = [&](size_t number) {
    for (MoveAttr move : moves.drop_front(number))
      if (!isStoreOnly(move))
        return move.getPrefetchBefore();
    return end;
  };
  Value below, current = value;
  if (journey.arrival) {
    below = value;
    current = fetch(value, below, journey.arrival->getPrefetchBefore(),
                    getEnd(0), uses);
  }
  for (auto [number, move] : llvm::enumerate(moves)) {
    if (isStoreOnly(move)) {
      if (current)
        store(move, number, current, below);
      continue;
    }
    Value none = value;
    leave(move, number, current, move.getRecomputed() ? none : below);
    int64_t until = getEnd(number + 1);
    current = move.getRecomputed()
                  ? useAgain(value, move, until, uses)
                  : fetch(value, below, move.getPrefetchBefore(), until, uses);
  }
  if (journey.departure)
    leave(*journey.departure, moves.size(), current, below);
  for (OpOperand *operand : returned)
    operand->set(below);
  if (PrefetchOp streamed = getStreamedBy(value); streamed && journey.arrival)
    replaced.append({value.getDefiningOp(), streamed});
}

void Inserter::insert() {
  for (auto &[value, journey] : journeys)
    for (MoveAttr move : journey.moves)
      if (move.getRecomputed())
        recompute(value, move);
  for (auto &[value, journey] : journeys)
    insertMoves(value, journey);
  for (auto &[value, journey] : journeys)
    if (auto argument = dyn_cast<BlockArgument>(value);
        argument && journey.arrival)
      placeArgument(argument, journey.arrival->getTier());
  for (Operation *op : replaced)
    op->erase();
  // Views that nobody needs any more would be views of tensors in tiers, and
  // copies that nobody waits for are none.
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator())
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops))
    if (op->getNumOperands() > 0 && isOpTriviallyDead(op))
      op->erase();
}

/// What a person asked for is in the moves, and in the types from here on.
static void forgetRequests(FunctionOpInterface function) {
  MLIRContext *context = function.getContext();
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    for (StringRef name :
         {OffloadDialect::kPlaceAttrName, OffloadDialect::kKeepAttrName})
      function.removeArgAttr(i, StringAttr::get(context, name));
}

namespace {
struct InsertTransfersPass final
    : offload::impl::InsertTransfersPassBase<InsertTransfersPass> {
  void runOnOperation() override {
    CostModel model(getOperation());
    for (auto function : getOperation().getOps<FunctionOpInterface>()) {
      forgetRequests(function);
      auto moves =
          function->getAttrOfType<ArrayAttr>(OffloadDialect::kMovesAttrName);
      if (!moves)
        continue;
      if (function.isExternal() || !function.getFunctionBody().hasOneBlock()) {
        function.emitError(
            "expected a function of one block to move values in");
        return signalPassFailure();
      }
      Inserter inserter(function, model);
      if (failed(inserter.read(moves)))
        return signalPassFailure();
      inserter.insert();
      function->removeAttr(OffloadDialect::kMovesAttrName);
      numPrefetches += inserter.numPrefetches;
      numStores += inserter.numStores;
      numRecomputed += inserter.numRecomputed;
    }
  }
};
} // namespace
