//===- AssignStreams.cpp - who runs beside whom, and waits for whom -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// In:  func on buffers, structured control flow, allocations and deallocations
//   written, no arena. Out: `stream.on`, `record` and `wait`.
//
//   1. A call that may leave the compute stream does so if there is work
//      between it and the first op that conflicts with it.
//   2. A block is walked in its order. Each stream has a clock: how many ops of
//      each stream are known to be done when its next op begins. Each root has
//      the last reader and writer on each stream. An op has to come after those
//      it conflicts with; what its clock does not say yet needs a wait, unless
//      one of the other waits brings it along.
//   3. An allocation is an access of the compute stream: until then, its bytes
//      may have been another buffer's. So is the beginning of the block, for
//      what is from outside.
//   4. A deallocation that would have to wait is put off until the compute
//      stream has waited for something that covers it, at the latest at the end
//      of the block, where it waits for all that is under way.
//
//      compute  ──a──●────────b────────────◆─c──   ● record  ◆ wait
//      comm          └▶◆──all_reduce──●────┘
//
// Cost: ops times the square of streams, of which there are a handful.
// Limits: loops hand nothing that is under way to their next iteration.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/Stream/Passes.h"

#include "lib/Analysis/BufferAccess.h"

#include "mlir/Interfaces/ControlFlowInterfaces.h"

#include <queue>

namespace mlir::hyperparallel::stream {
#define GEN_PASS_DEF_ASSIGNSTREAMSPASS
#include "lib/Transforms/Stream/Passes.h.inc"
} // namespace mlir::hyperparallel::stream

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::stream;

namespace {

using StreamNumber = unsigned;
constexpr StreamNumber kCompute = 0;
/// How many ops of each stream; one that is not there is 0.
using Clock = SmallVector<int64_t, 4>;

int64_t at(const Clock &clock, StreamNumber stream) {
  return stream < clock.size() ? clock[stream] : 0;
}
void raise(Clock &clock, StreamNumber stream, int64_t to) {
  if (clock.size() <= stream)
    clock.resize(stream + 1, 0);
  clock[stream] = std::max(clock[stream], to);
}
void merge(Clock &clock, const Clock &other) {
  for (auto [stream, value] : llvm::enumerate(other))
    raise(clock, stream, value);
}

/// An op of a stream.
struct Step {
  /// Null for the beginning of the block.
  Operation *op;
  /// What has happened when it is done, itself included.
  Clock clock;
  RecordOp record;
};

/// The last accesses of a root, by stream.
struct LastAccesses {
  Clock reads, writes;
};

/// A deallocation that waits for some streams.
struct PutOff {
  Operation *dealloc;
  unsigned missing;
};

struct AssignStreamsPass final
    : stream::impl::AssignStreamsPassBase<AssignStreamsPass> {
  void runOnOperation() override;
};

/// What is known of the module, and which calls leave the compute stream.
class StreamChoice {
public:
  /// The stream that the op may be on, null for `compute`.
  IdAttr streamOf(Operation *op);
  void decide(Block &block);
  IdAttr chosen(Operation *op) const { return queued.lookup(op); }
  ArrayRef<BufferAccess> accessesOf(Operation *op);

  /// The pass's statistics.
  int64_t queuedCalls = 0, inPlace = 0, waits = 0, implied = 0, moved = 0;

private:
  BufferAccesses accesses;
  SymbolTableCollection symbols;
  DenseMap<Operation *, SmallVector<BufferAccess>> known;
  DenseMap<Operation *, IdAttr> queued;
};

/// One block on its way.
class BlockWalk {
public:
  BlockWalk(StreamChoice &choice, Block &block)
      : choice(choice), block(block) {}
  void run();

private:
  StreamNumber numberOf(IdAttr id);
  /// What an op on `stream` has to come after.
  Clock conflicts(StreamNumber stream, ArrayRef<BufferAccess> accesses);
  void waitFor(Operation *op, StreamNumber stream, const Clock &needed);
  void addStep(Operation *op, StreamNumber stream,
               ArrayRef<BufferAccess> accesses);
  void visitDealloc(memref::DeallocOp op);
  void release(Operation *before);
  LastAccesses &lastAccesses(Value root);
  RecordOp recordOf(StreamNumber stream, int64_t step);

  StreamChoice &choice;
  Block &block;
  SmallVector<IdAttr> streams;
  /// By stream, its steps from 1 on.
  SmallVector<SmallVector<Step>> steps;
  SmallVector<Clock> clocks;
  DenseMap<Value, LastAccesses> roots;
  /// Of memory that cannot be told, by the compute stream.
  int64_t lastOpaque = 0;
  SmallVector<PutOff> putOff;
  /// By stream: the step that is missing, and to whom.
  using Missing = std::pair<int64_t, unsigned>;
  SmallVector<
      std::priority_queue<Missing, std::vector<Missing>, std::greater<Missing>>>
      missing;
};

} // namespace

//===----------------------------------------------------------------------===//
// What leaves the compute stream
//===----------------------------------------------------------------------===//

IdAttr StreamChoice::streamOf(Operation *op) {
  auto call = dyn_cast<func::CallOp>(op);
  if (!call || call.getNumResults())
    return {};
  auto callee =
      symbols.lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
  return callee ? callee->getAttrOfType<IdAttr>(StreamDialect::kOfAttrName)
                : IdAttr();
}

ArrayRef<BufferAccess> StreamChoice::accessesOf(Operation *op) {
  auto [entry, isNew] = known.try_emplace(op);
  if (isNew)
    entry->second = accesses.get(op);
  return entry->second;
}

static bool isWork(Operation *op) {
  return !isa<memref::AllocOp, memref::DeallocOp, memref::LoadOp,
              memref::StoreOp>(op);
}

static bool isOpaque(const BufferAccess &access) { return !access.part.root; }

/// From the end: an op that is waited for by the op after it may as well happen
/// where it stands.
void StreamChoice::decide(Block &block) {
  // Work from there to the end of the block, and the next access of each root.
  int64_t work = 0;
  struct Next {
    int64_t work;
    bool isQueued;
  };
  struct NextAccesses {
    std::optional<Next> read, write;
  };
  DenseMap<Value, NextAccesses> next;
  std::optional<Next> opaque;
  SmallVector<Operation *> ops;
  for (Operation &op : block)
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops)) {
    SmallVector<BufferAccess> own(accessesOf(op));
    if (own.empty() || isa<memref::DeallocOp>(op))
      continue;
    bool isQueued = false;
    if (IdAttr stream = streamOf(op); stream && llvm::none_of(own, isOpaque)) {
      // The end of the block waits for everything.
      Next first = {0, false};
      auto consider = [&](const std::optional<Next> &one) {
        if (one && one->work > first.work)
          first = *one;
        else if (one && one->work == first.work)
          first.isQueued |= one->isQueued;
      };
      consider(opaque);
      for (const BufferAccess &access : own) {
        const NextAccesses &later = next[access.part.root];
        consider(later.write);
        if (access.writes)
          consider(later.read);
      }
      isQueued = first.isQueued || first.work < work;
      ++(isQueued ? queuedCalls : inPlace);
      if (isQueued)
        queued[op] = stream;
    }
    if (!isQueued && isWork(op))
      ++work;
    for (const BufferAccess &access : own) {
      if (isOpaque(access)) {
        opaque = Next{work, isQueued};
        continue;
      }
      NextAccesses &later = next[access.part.root];
      (access.writes ? later.write : later.read) = Next{work, isQueued};
    }
  }
}

//===----------------------------------------------------------------------===//
// Who waits for whom
//===----------------------------------------------------------------------===//

StreamNumber BlockWalk::numberOf(IdAttr id) {
  for (auto [number, known] : llvm::enumerate(streams))
    if (known == id)
      return number;
  streams.push_back(id);
  steps.emplace_back();
  clocks.emplace_back();
  missing.emplace_back();
  return streams.size() - 1;
}

LastAccesses &BlockWalk::lastAccesses(Value root) {
  auto [entry, isNew] = roots.try_emplace(root);
  // From outside: whatever happened before the block.
  if (isNew && (isa<BlockArgument>(root) || root.getParentBlock() != &block))
    raise(entry->second.writes, kCompute, 1);
  return entry->second;
}

Clock BlockWalk::conflicts(StreamNumber stream,
                           ArrayRef<BufferAccess> accesses) {
  Clock needed;
  for (const BufferAccess &access : accesses) {
    if (isOpaque(access)) {
      for (StreamNumber other = 0; other < streams.size(); ++other)
        raise(needed, other, steps[other].size());
      continue;
    }
    const LastAccesses &last = lastAccesses(access.part.root);
    merge(needed, last.writes);
    if (access.writes)
      merge(needed, last.reads);
  }
  if (stream != kCompute)
    raise(needed, kCompute, lastOpaque);
  return needed;
}

RecordOp BlockWalk::recordOf(StreamNumber stream, int64_t step) {
  Step &one = steps[stream][step - 1];
  if (!one.record) {
    OpBuilder builder(block.getParentOp()->getContext());
    Location loc = block.getParentOp()->getLoc();
    if (one.op) {
      builder.setInsertionPointAfter(one.op);
      loc = one.op->getLoc();
    } else {
      builder.setInsertionPointToStart(&block);
    }
    one.record = RecordOp::create(
        builder, loc, MarkType::get(builder.getContext()), streams[stream]);
  }
  return one.record;
}

/// Writes the waits that bring the stream's clock to `needed`.
void BlockWalk::waitFor(Operation *op, StreamNumber stream,
                        const Clock &needed) {
  SmallVector<StreamNumber> others;
  for (StreamNumber other = 0; other < streams.size(); ++other)
    if (other != stream && at(needed, other) > at(clocks[stream], other))
      others.push_back(other);
  auto clockOf = [&](StreamNumber other) -> const Clock & {
    return steps[other][at(needed, other) - 1].clock;
  };
  // What another one brings along needs no wait. Two ops never bring each other
  // along: one of them is the earlier.
  SmallVector<StreamNumber> kept;
  for (StreamNumber one : others) {
    bool isImplied = llvm::any_of(others, [&](StreamNumber other) {
      return other != one && at(clockOf(other), one) >= at(needed, one);
    });
    if (isImplied)
      ++choice.implied;
    else
      kept.push_back(one);
  }
  for (StreamNumber other : kept) {
    RecordOp record = recordOf(other, at(needed, other));
    OpBuilder builder(op);
    WaitOp::create(builder, op->getLoc(), streams[stream], record.getMark());
    merge(clocks[stream], clockOf(other));
    ++choice.waits;
  }
}

void BlockWalk::addStep(Operation *op, StreamNumber stream,
                        ArrayRef<BufferAccess> accesses) {
  int64_t number = steps[stream].size() + 1;
  raise(clocks[stream], stream, number);
  steps[stream].push_back({op, clocks[stream], {}});
  for (const BufferAccess &access : accesses) {
    if (isOpaque(access)) {
      lastOpaque = number;
      continue;
    }
    LastAccesses &last = lastAccesses(access.part.root);
    raise(access.writes ? last.writes : last.reads, stream, number);
  }
}

/// Puts a deallocation off until the compute stream has waited for its users.
void BlockWalk::visitDealloc(memref::DeallocOp op) {
  SmallVector<BufferAccess> accesses(choice.accessesOf(op));
  Clock needed = conflicts(kCompute, accesses);
  unsigned count = 0;
  for (StreamNumber other = 1; other < streams.size(); ++other)
    if (at(needed, other) > at(clocks[kCompute], other)) {
      missing[other].push({at(needed, other), unsigned(putOff.size())});
      ++count;
    }
  if (count == 0)
    return addStep(op, kCompute, accesses);
  putOff.push_back({op, count});
  ++choice.moved;
}

/// Deallocations whose users the compute stream has waited for by now.
void BlockWalk::release(Operation *before) {
  for (StreamNumber other = 1; other < streams.size(); ++other)
    while (!missing[other].empty() &&
           missing[other].top().first <= at(clocks[kCompute], other)) {
      PutOff &one = putOff[missing[other].top().second];
      missing[other].pop();
      if (--one.missing)
        continue;
      one.dealloc->moveBefore(before);
      addStep(one.dealloc, kCompute,
              SmallVector<BufferAccess>(choice.accessesOf(one.dealloc)));
    }
}

void BlockWalk::run() {
  MLIRContext *context = block.getParentOp()->getContext();
  numberOf(IdAttr::get(context, Role::Compute, 0));
  addStep(nullptr, kCompute, {});
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator())
    ops.push_back(&op);
  for (Operation *op : ops) {
    if (auto dealloc = dyn_cast<memref::DeallocOp>(op)) {
      visitDealloc(dealloc);
      continue;
    }
    if (auto alloc = dyn_cast<memref::AllocOp>(op)) {
      addStep(op, kCompute, BufferAccess{{alloc.getResult()}, /*writes=*/true});
      continue;
    }
    SmallVector<BufferAccess> accesses(choice.accessesOf(op));
    if (accesses.empty())
      continue;
    IdAttr id = choice.chosen(op);
    StreamNumber stream = id ? numberOf(id) : kCompute;
    waitFor(op, stream, conflicts(stream, accesses));
    if (stream == kCompute) {
      release(op);
      addStep(op, kCompute, accesses);
      continue;
    }
    OpBuilder builder(op);
    auto on = OnOp::create(builder, op->getLoc(), id);
    Block &inner = on.getBody().emplaceBlock();
    op->moveBefore(&inner, inner.end());
    addStep(on, stream, accesses);
  }
  Operation *end = block.getTerminator();
  Clock all;
  for (StreamNumber other = 1; other < streams.size(); ++other)
    raise(all, other, steps[other].size());
  waitFor(end, kCompute, all);
  release(end);
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

/// Iterations and branches run one after the other, up to the function.
static bool runsInOrder(Block *block) {
  for (Operation *parent = block->getParentOp(); parent;
       parent = parent->getParentOp()) {
    if (!block->getParent()->hasOneBlock())
      return false;
    if (isa<func::FuncOp>(parent))
      return true;
    if (!isa<RegionBranchOpInterface>(parent) ||
        parent->hasTrait<OpTrait::HasParallelRegion>())
      return false;
    block = parent->getBlock();
  }
  return false;
}

void AssignStreamsPass::runOnOperation() {
  if (getOperation()->hasAttr(StreamDialect::kSynchronousAttrName))
    return markAllAnalysesPreserved();
  StreamChoice choice;
  SmallVector<Block *> blocks;
  getOperation().walk([&](func::CallOp call) {
    if (choice.streamOf(call) && runsInOrder(call->getBlock()) &&
        (blocks.empty() || blocks.back() != call->getBlock()))
      blocks.push_back(call->getBlock());
  });
  llvm::DenseSet<Block *> seen;
  for (Block *block : blocks)
    if (seen.insert(block).second) {
      choice.decide(*block);
      BlockWalk(choice, *block).run();
    }
  numQueued += choice.queuedCalls;
  numInPlace += choice.inPlace;
  numWaits += choice.waits;
  numImplied += choice.implied;
  numMovedDeallocs += choice.moved;
}
