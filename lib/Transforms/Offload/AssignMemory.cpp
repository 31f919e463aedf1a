//===- AssignMemory.cpp - one piece of memory for all buffers -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// In:  func on buffers, structured control flow, every allocation and
//   deallocation written.
// Out: views of arenas (`hp.arena`) instead of those that have a known life.
//
//   1. Functions are done callees first: a call needs its callee's arenas,
//      which live while the call does.
//   2. Ops are numbered in order, regions inside their ops. A buffer lives from
//      its allocation to its deallocation; both are in one block, so that in a
//      loop they are of one iteration, and what lives around the loop lives for
//      all of its numbers.
//   3. Each memory space is an instance of static allocation (lib/Planner).
//   4. The arenas become arguments of private functions, and one allocation
//      each in public ones.
//
//      @main  ├─ a ─┤├──── b ────┤          arena of @main, offsets upwards
//             ├────── call @block ───────┤  holds the arena of @block
//
// Cost: that of the search for offsets, which is bounded.
// Limits: what is freed on a condition or in another block, what has a dynamic
//   shape or no elements, and what is made where iterations run in parallel
//   stays an allocation.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/Offload/Passes.h"

#include "lib/Planner/Arena.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::hyperparallel::offload {
#define GEN_PASS_DEF_ASSIGNMEMORYPASS
#include "lib/Transforms/Offload/Passes.h.inc"
} // namespace mlir::hyperparallel::offload

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::offload;

/// Instances of at most so many buffers are searched exactly, if simple orders
/// do not reach the least height. A node of the search costs as much as there
/// are buffers: that many buffers are looked at, about half a second.
static constexpr size_t kMostExact = 400;
static constexpr int64_t kImprovementWork = 20'000'000, kSearchNodes = 300'000,
                         kSearchWork = 6'000'000;

namespace {

/// An allocation, or a call that needs an arena of this memory space.
struct Item {
  Operation *op;
  planner::Buffer buffer;
};

/// The memory spaces of a function's arenas, with their bytes.
using Arenas = SmallVector<std::pair<Attribute, int64_t>>;

struct AssignMemoryPass final
    : offload::impl::AssignMemoryPassBase<AssignMemoryPass> {
  void runOnOperation() override;

private:
  FailureOr<Arenas> assign(func::FuncOp function);
  FailureOr<llvm::MapVector<Attribute, SmallVector<Item>>>
  collect(func::FuncOp function);
  Value makeArena(func::FuncOp function, Attribute space, int64_t bytes);
  void findCalls();

  /// Functions that are done, and (empty) those that are being done.
  DenseMap<Operation *, std::optional<Arenas>> done;
  /// Functions that something other than a plain call refers to.
  llvm::DenseSet<Operation *> referenced;
  SymbolTable *symbols = nullptr;
};

/// The place of ops in a function: when they begin and end.
class Numbering {
public:
  explicit Numbering(func::FuncOp function) { number(function); }
  int64_t begin(Operation *op) const { return places.lookup(op).first; }
  int64_t end(Operation *op) const { return places.lookup(op).second; }

private:
  void number(Operation *op) {
    int64_t begin = next++;
    for (Region &region : op->getRegions())
      for (Operation &inner : region.getOps())
        number(&inner);
    places[op] = {begin, next++};
  }

  int64_t next = 0;
  DenseMap<Operation *, std::pair<int64_t, int64_t>> places;
};

} // namespace

/// Where its buffer is freed, if that is the only place and in its block.
static memref::DeallocOp getDealloc(memref::AllocOp alloc) {
  memref::DeallocOp found;
  for (Operation *user : alloc->getUsers())
    if (auto dealloc = dyn_cast<memref::DeallocOp>(user)) {
      if (found)
        return {};
      found = dealloc;
    }
  return found && found->getBlock() == alloc->getBlock() ? found
                                                         : memref::DeallocOp();
}

/// Iterations and branches run one after the other, up to the function.
static bool runsInOrder(Operation *op) {
  for (Operation *parent = op->getParentOp(); !isa<func::FuncOp>(parent);
       parent = parent->getParentOp())
    if (!isa<RegionBranchOpInterface>(parent) ||
        parent->hasTrait<OpTrait::HasParallelRegion>())
      return false;
  return true;
}

static std::optional<int64_t> getBytes(memref::AllocOp alloc) {
  MemRefType type = alloc.getType();
  if (!type.hasStaticShape() || !type.getLayout().isIdentity() ||
      type.getNumElements() == 0)
    return std::nullopt;
  Type element = type.getElementType();
  if (!element.isIntOrIndexOrFloat())
    return std::nullopt;
  int64_t width =
      element.isIndex() ? 8 : (element.getIntOrFloatBitWidth() + 7) / 8;
  return llvm::alignTo(type.getNumElements() * width, kArenaAlignment);
}

/// What has to have a place, by memory space.
FailureOr<llvm::MapVector<Attribute, SmallVector<Item>>>
AssignMemoryPass::collect(func::FuncOp function) {
  llvm::MapVector<Attribute, SmallVector<Item>> items;
  SmallVector<func::CallOp> calls;
  SmallVector<memref::AllocOp> allocs;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto call = dyn_cast<func::CallOp>(op))
      calls.push_back(call);
    if (auto alloc = dyn_cast<memref::AllocOp>(op))
      allocs.push_back(alloc);
  });
  // Callees may change their calls, but not how many there are.
  SmallVector<Arenas> needed;
  for (func::CallOp call : calls) {
    auto callee = symbols->lookup<func::FuncOp>(call.getCallee());
    FailureOr<Arenas> arenas =
        callee && !callee.isExternal() ? assign(callee) : Arenas();
    if (failed(arenas))
      return failure();
    bool isGiven = callee && callee.isPrivate() && !referenced.contains(callee);
    needed.push_back(isGiven ? *arenas : Arenas());
  }
  Numbering numbering(function);
  for (memref::AllocOp alloc : allocs) {
    memref::DeallocOp dealloc = getDealloc(alloc);
    std::optional<int64_t> bytes = getBytes(alloc);
    if (!dealloc || !bytes || !runsInOrder(alloc)) {
      ++numLeft;
      continue;
    }
    items[alloc.getType().getMemorySpace()].push_back(
        {alloc, {numbering.begin(alloc), numbering.begin(dealloc), *bytes}});
  }
  for (auto [call, arenas] : llvm::zip_equal(calls, needed))
    for (auto [space, bytes] : arenas)
      items[space].push_back(
          {call, {numbering.begin(call), numbering.end(call), bytes}});
  return items;
}

Value AssignMemoryPass::makeArena(func::FuncOp function, Attribute space,
                                  int64_t bytes) {
  MLIRContext *context = &getContext();
  Location loc = function.getLoc();
  auto type = MemRefType::get({bytes}, IntegerType::get(context, 8),
                              MemRefLayoutAttrInterface(), space);
  if (function.isPrivate() && !referenced.contains(function)) {
    unsigned number = function.getNumArguments();
    NamedAttribute mark(StringAttr::get(context, kArenaAttrName),
                        UnitAttr::get(context));
    (void)function.insertArgument(number, type,
                                  DictionaryAttr::get(context, mark), loc);
    return function.getArgument(number);
  }
  arenaBytes += bytes;
  OpBuilder builder = OpBuilder::atBlockBegin(&function.front());
  auto arena = memref::AllocOp::create(builder, loc, type);
  arena->setAttr(kArenaAttrName, builder.getUnitAttr());
  builder.setInsertionPoint(function.front().getTerminator());
  memref::DeallocOp::create(builder, loc, arena);
  return arena;
}

FailureOr<Arenas> AssignMemoryPass::assign(func::FuncOp function) {
  auto [known, isNew] = done.try_emplace(function, std::nullopt);
  if (!isNew && known->second)
    return *known->second;
  if (!isNew)
    return function.emitError("expected a function that does not call itself, "
                              "whose memory is known");
  Arenas arenas;
  // What jumps has no order that numbers could tell.
  if (!function.getBody().hasOneBlock())
    return *(done[function] = arenas);
  auto items = collect(function);
  if (failed(items))
    return failure();
  for (auto &[space, list] : *items) {
    std::vector<planner::Buffer> buffers;
    for (const Item &item : list)
      buffers.push_back(item.buffer);
    planner::ArenaOptions options;
    options.alignment = kArenaAlignment;
    options.exact = buffers.size() <= kMostExact;
    options.improvementWork = kImprovementWork;
    options.searchNodes =
        std::min(kSearchNodes,
                 kSearchWork / std::max<int64_t>(int64_t(buffers.size()), 1));
    planner::Arena placed = planner::assignOffsets(buffers, options);
    lostBytes += placed.height - placed.maxLive;
    arenas.push_back({space, placed.height});
    Value arena = makeArena(function, space, placed.height);
    for (auto [item, offset] : llvm::zip_equal(list, placed.offsets)) {
      OpBuilder builder(item.op);
      Location loc = item.op->getLoc();
      auto view = [&](MemRefType type) {
        Value shift =
            arith::ConstantIndexOp::create(builder, loc, offset).getResult();
        return memref::ViewOp::create(builder, loc, type, arena, shift,
                                      ValueRange());
      };
      if (auto call = dyn_cast<func::CallOp>(item.op)) {
        auto type = MemRefType::get({item.buffer.size}, builder.getI8Type(),
                                    MemRefLayoutAttrInterface(), space);
        call->insertOperands(call->getNumOperands(), ValueRange(view(type)));
        continue;
      }
      auto alloc = cast<memref::AllocOp>(item.op);
      getDealloc(alloc).erase();
      alloc.replaceAllUsesWith(view(alloc.getType()).getResult());
      alloc.erase();
      ++numPlaced;
    }
  }
  return *(done[function] = arenas);
}

/// A call that runs a function several times at once is not a plain one.
void AssignMemoryPass::findCalls() {
  auto uses = SymbolTable::getSymbolUses(&getOperation().getBodyRegion());
  if (!uses)
    return;
  for (const SymbolTable::SymbolUse &use : *uses) {
    Operation *user = use.getUser();
    if (isa<func::CallOp>(user) && !user->hasAttr("hp.parallel_grain"))
      continue;
    if (Operation *symbol =
            symbols->lookup(use.getSymbolRef().getRootReference()))
      referenced.insert(symbol);
  }
}

void AssignMemoryPass::runOnOperation() {
  SymbolTable table(getOperation());
  symbols = &table;
  done.clear();
  referenced.clear();
  findCalls();
  for (auto function : getOperation().getOps<func::FuncOp>())
    if (!function.isExternal() && failed(assign(function)))
      return signalPassFailure();
}
