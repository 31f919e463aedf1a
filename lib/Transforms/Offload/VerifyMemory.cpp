//===- VerifyMemory.cpp - buffers that live together share no byte --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// In and out: functions with arenas (`hp.arena`), before equal views are
// merged.
//
//   1. An arena is used by views at constant offsets, and freed, alone; views
//      lie in it, at multiples of 64 bytes.
//   2. A view lives from where it is made to the last op of its block that uses
//      it or contains a use. What is computed from it without touching memory
//      is a use of it, too, and so is what a branch or loop hands on. A copy
//      under way is waited for with both of its buffers, so that they live
//      until then.
//   3. Ops are visited in order, with the views that live at the moment by
//      offset: a new one may meet neither neighbour.
//
// Cost: O(views log views), and linear in uses.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/Offload/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

#include <map>

namespace mlir::hyperparallel::offload {
#define GEN_PASS_DEF_VERIFYMEMORYPASS
#include "lib/Transforms/Offload/Passes.h.inc"
} // namespace mlir::hyperparallel::offload

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::offload;

namespace {

struct Lifetime {
  memref::ViewOp view;
  int64_t begin, end;
  int64_t from, to;
};

class ArenaVerifier {
public:
  explicit ArenaVerifier(func::FuncOp function) { number(function); }

  LogicalResult verify(Value arena);

private:
  void number(Operation *op);
  FailureOr<Lifetime> measure(memref::ViewOp view, int64_t bytes);
  int64_t lastUse(memref::ViewOp view);
  LogicalResult sweep(ArrayRef<Lifetime> lifetimes);

  int64_t next = 0;
  /// When an op begins, and when all that is in it has ended.
  DenseMap<Operation *, std::pair<int64_t, int64_t>> places;
};

struct VerifyMemoryPass final
    : offload::impl::VerifyMemoryPassBase<VerifyMemoryPass> {
  void runOnOperation() override;
};

} // namespace

void ArenaVerifier::number(Operation *op) {
  int64_t begin = next++;
  for (Region &region : op->getRegions())
    for (Operation &inner : region.getOps())
      number(&inner);
  places[op] = {begin, next++};
}

/// The values that stand for what `user` is given in one of its operands.
static void follow(Operation *user, SmallVectorImpl<Value> &values) {
  auto isHandle = [](Value value) {
    return isa<BaseMemRefType, LLVM::LLVMPointerType, IndexType>(
               value.getType()) ||
           value.getType().isInteger(64);
  };
  auto add = [&](ValueRange more) {
    llvm::copy_if(more, std::back_inserter(values), isHandle);
  };
  // What a region is entered with, or hands on.
  Operation *owner =
      user->hasTrait<OpTrait::IsTerminator>() ? user->getParentOp() : user;
  if (isa<RegionBranchOpInterface>(owner)) {
    add(owner->getResults());
    for (Region &region : owner->getRegions())
      add(region.getArguments());
    return;
  }
  if (isa<memref::DimOp>(user))
    return;
  if (isa<ViewLikeOpInterface>(user) || isMemoryEffectFree(user))
    add(user->getResults());
}

int64_t ArenaVerifier::lastUse(memref::ViewOp view) {
  Block *block = view->getBlock();
  int64_t last = places.lookup(view).second;
  SmallVector<Value> worklist = {view.getResult()};
  llvm::DenseSet<Value> seen(worklist.begin(), worklist.end());
  while (!worklist.empty()) {
    for (Operation *user : worklist.pop_back_val().getUsers()) {
      // A use in another region of the program than the view's is of a value
      // that left its block: its life has no end there.
      Operation *here = block->findAncestorOpInBlock(*user);
      last = std::max(last, here ? places.lookup(here).second : next);
      SmallVector<Value> more;
      follow(user, more);
      for (Value value : more)
        if (seen.insert(value).second)
          worklist.push_back(value);
    }
  }
  return last;
}

FailureOr<Lifetime> ArenaVerifier::measure(memref::ViewOp view, int64_t bytes) {
  APInt shift;
  if (!matchPattern(view.getByteShift(), m_ConstantInt(&shift)) ||
      !view.getType().hasStaticShape())
    return view.emitError(
        "expected a buffer of static shape at a constant offset of its arena");
  Lifetime result;
  result.view = view;
  result.from = shift.getSExtValue();
  Type element = view.getType().getElementType();
  int64_t width =
      element.isIndex() ? 8 : (element.getIntOrFloatBitWidth() + 7) / 8;
  result.to = result.from + view.getType().getNumElements() * width;
  if (result.from % kArenaAlignment != 0)
    return view.emitError("expected an offset that is a multiple of ")
           << kArenaAlignment << " but got " << result.from;
  if (result.from < 0 || result.to > bytes)
    return view.emitError("expected a buffer to lie in its arena of ")
           << bytes << " bytes but got bytes " << result.from << " to "
           << result.to;
  result.begin = places.lookup(view).first;
  result.end = lastUse(view);
  return result;
}

LogicalResult ArenaVerifier::sweep(ArrayRef<Lifetime> lifetimes) {
  SmallVector<std::tuple<int64_t, bool, const Lifetime *>> events;
  for (const Lifetime &lifetime : lifetimes) {
    events.push_back({lifetime.begin, true, &lifetime});
    events.push_back({lifetime.end, false, &lifetime});
  }
  // No two ops begin or end at the same moment; equal ends are of one op.
  llvm::sort(events, [](const auto &a, const auto &b) {
    return std::make_tuple(std::get<0>(a), std::get<1>(a),
                           std::get<2>(a)->from) <
           std::make_tuple(std::get<0>(b), std::get<1>(b),
                           std::get<2>(b)->from);
  });
  std::map<int64_t, const Lifetime *> live;
  auto refuse = [](const Lifetime &one, const Lifetime &other) {
    memref::ViewOp view = one.view;
    InFlightDiagnostic error =
        view.emitError("expected buffers that live at the same time to share "
                       "no byte but this one has bytes ")
        << one.from << " to " << one.to << " of the arena";
    error.attachNote(memref::ViewOp(other.view).getLoc())
        << "and this one, which is still used, has bytes " << other.from
        << " to " << other.to;
    return error;
  };
  for (auto [time, begins, one] : events) {
    if (!begins) {
      live.erase(one->from);
      continue;
    }
    auto after = live.lower_bound(one->from);
    if (after != live.end() && after->first < one->to)
      return refuse(*one, *after->second);
    if (after != live.begin() && std::prev(after)->second->to > one->from)
      return refuse(*one, *std::prev(after)->second);
    live.emplace(one->from, one);
  }
  return success();
}

LogicalResult ArenaVerifier::verify(Value arena) {
  auto type = dyn_cast<MemRefType>(arena.getType());
  if (!type || !type.hasStaticShape())
    return emitError(arena.getLoc(),
                     "expected an arena of static size but got ")
           << arena.getType();
  SmallVector<Lifetime> lifetimes;
  for (Operation *user : arena.getUsers()) {
    if (isa<memref::DeallocOp>(user))
      continue;
    auto view = dyn_cast<memref::ViewOp>(user);
    if (!view)
      return user->emitError("expected an arena to be used by views alone");
    FailureOr<Lifetime> lifetime = measure(view, type.getNumElements());
    if (failed(lifetime))
      return failure();
    lifetimes.push_back(*lifetime);
  }
  return sweep(lifetimes);
}

void VerifyMemoryPass::runOnOperation() {
  markAllAnalysesPreserved();
  for (auto function : getOperation().getOps<func::FuncOp>()) {
    if (function.isExternal() || !function.getBody().hasOneBlock())
      continue;
    SmallVector<Value> arenas;
    for (BlockArgument argument : function.getArguments())
      if (function.getArgAttr(argument.getArgNumber(), kArenaAttrName))
        arenas.push_back(argument);
    for (auto alloc : function.getOps<memref::AllocOp>())
      if (alloc->hasAttr(kArenaAttrName))
        arenas.push_back(alloc.getResult());
    if (arenas.empty())
      continue;
    ArenaVerifier verifier(function);
    for (Value arena : arenas)
      if (failed(verifier.verify(arena)))
        return signalPassFailure();
  }
}
