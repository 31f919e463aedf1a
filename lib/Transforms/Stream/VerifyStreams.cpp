//===- VerifyStreams.cpp - no two streams race for a byte -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// In and out: func on buffers with `stream` ops, arenas or not.
//
//   1. Each block is executed in its order. A stream's clock says how many ops
//      of each stream have happened before its next one; a record keeps the
//      clock, a wait takes it over.
//   2. A root is cut into runs of bytes, each with its last write, and the
//      reads since on each stream. An access has to come after the writes of
//      its bytes, and if it writes, after their reads, too: a clock says so or
//      not.
//   3. What is from outside of the block was written by the compute stream
//      before. At the end the compute stream has waited for all others.
//
// Cost: O(accesses log runs), times streams.
// Limits: as for BufferAccess.h; what cannot be told conflicts with everything.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/Stream/Passes.h"

#include "lib/Analysis/BufferAccess.h"

#include <limits>
#include <map>

namespace mlir::hyperparallel::stream {
#define GEN_PASS_DEF_VERIFYSTREAMSPASS
#include "lib/Transforms/Stream/Passes.h.inc"
} // namespace mlir::hyperparallel::stream

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::stream;

namespace {

/// An op as the so-and-so-many-th of its stream; null where nothing happened.
struct Event {
  unsigned stream = 0;
  int64_t number = 0;
  Operation *op = nullptr;
};

/// Bytes that were last touched by the same ops.
struct Run {
  int64_t to;
  Event write;
  /// Since then, the last of each stream.
  SmallVector<Event, 1> reads;
};

using Runs = std::map<int64_t, Run>;

class BlockVerifier {
public:
  BlockVerifier(Block &block, BufferAccesses &accesses)
      : block(block), accesses(accesses) {}
  LogicalResult verify();

private:
  unsigned numberOf(IdAttr id);
  /// Whether the event has happened when the stream's next op begins.
  bool isDone(const Event &event, unsigned stream) const {
    return event.number == 0 || event.stream == stream ||
           clocks[stream].lookup(event.stream) >= event.number;
  }
  LogicalResult visit(Operation *op, unsigned stream,
                      ArrayRef<BufferAccess> touched);
  LogicalResult touch(const BufferAccess &access, const Event &event);
  LogicalResult touchAll(const Event &event);
  Runs &runsOf(Value root);
  LogicalResult refuse(const Event &late, const Event &early, bool writes,
                       bool wrote);

  Block &block;
  BufferAccesses &accesses;
  SmallVector<IdAttr> streams;
  /// By stream: of each stream, how many ops have happened.
  SmallVector<DenseMap<unsigned, int64_t>> clocks;
  SmallVector<Event> last;
  DenseMap<Operation *, DenseMap<unsigned, int64_t>> marks;
  DenseMap<Value, Runs> roots;
  /// The last op of each stream that may have touched any memory.
  SmallVector<Event> opaque;
};

struct VerifyStreamsPass final
    : stream::impl::VerifyStreamsPassBase<VerifyStreamsPass> {
  void runOnOperation() override;
};

} // namespace

unsigned BlockVerifier::numberOf(IdAttr id) {
  auto found = llvm::find(streams, id);
  if (found != streams.end())
    return found - streams.begin();
  streams.push_back(id);
  clocks.emplace_back();
  last.emplace_back();
  opaque.emplace_back();
  return streams.size() - 1;
}

Runs &BlockVerifier::runsOf(Value root) {
  auto [entry, isNew] = roots.try_emplace(root);
  if (isNew) {
    // The block itself is the compute stream's first event.
    bool isOutside =
        isa<BlockArgument>(root) || root.getParentBlock() != &block;
    entry->second[0] = {std::numeric_limits<int64_t>::max(),
                        isOutside ? Event{0, 1, nullptr} : Event(),
                        {}};
  }
  return entry->second;
}

LogicalResult BlockVerifier::refuse(const Event &late, const Event &early,
                                    bool writes, bool wrote) {
  InFlightDiagnostic error = late.op->emitError()
                             << "expected this op, which "
                             << (writes ? "writes" : "reads")
                             << " memory on the stream " << streams[late.stream]
                             << ", to wait for the stream "
                             << streams[early.stream] << ", which "
                             << (wrote ? "writes" : "reads")
                             << " the same bytes before";
  if (early.op)
    error.attachNote(early.op->getLoc()) << "here";
  else
    error.attachNote() << "before this block";
  error.attachNote()
      << "stream-assign-streams writes the waits that are needed";
  return error;
}

/// Cuts a run in two at a byte.
static void cut(Runs &runs, int64_t at) {
  auto after = std::prev(runs.upper_bound(at));
  if (after->first == at || after->second.to <= at)
    return;
  Run rest = after->second;
  after->second.to = at;
  runs.emplace(at, std::move(rest));
}

LogicalResult BlockVerifier::touch(const BufferAccess &access,
                                   const Event &event) {
  Runs &runs = runsOf(access.part.root);
  int64_t from = access.part.from;
  int64_t to = access.part.to == BufferPart::kWhole
                   ? std::numeric_limits<int64_t>::max()
                   : access.part.to;
  if (from >= to)
    return success();
  cut(runs, from);
  if (to != std::numeric_limits<int64_t>::max())
    cut(runs, to);
  auto begin = runs.find(from), end = runs.lower_bound(to);
  for (auto run = begin; run != end; ++run) {
    if (!isDone(run->second.write, event.stream))
      return refuse(event, run->second.write, access.writes, true);
    if (access.writes) {
      for (const Event &read : run->second.reads)
        if (!isDone(read, event.stream))
          return refuse(event, read, true, false);
      continue;
    }
    auto known = llvm::find_if(run->second.reads, [&](const Event &read) {
      return read.stream == event.stream;
    });
    if (known == run->second.reads.end())
      run->second.reads.push_back(event);
    else
      *known = event;
  }
  if (access.writes) {
    runs.erase(begin, end);
    runs[from] = {to, event, {}};
  }
  return success();
}

LogicalResult BlockVerifier::touchAll(const Event &event) {
  for (unsigned other = 0; other < streams.size(); ++other)
    if (!isDone(last[other], event.stream))
      return refuse(event, last[other], true, true);
  opaque[event.stream] = event;
  return success();
}

LogicalResult BlockVerifier::visit(Operation *op, unsigned stream,
                                   ArrayRef<BufferAccess> touched) {
  Event event = {stream, last[stream].number + 1, op};
  last[stream] = event;
  clocks[stream][stream] = event.number;
  for (const Event &other : opaque)
    if (!isDone(other, stream))
      return refuse(event, other, true, true);
  // What an op does to a buffer it does at once: reads before writes.
  for (bool writes : {false, true})
    for (const BufferAccess &access : touched) {
      if (access.writes != writes)
        continue;
      if (failed(access.part.root ? touch(access, event) : touchAll(event)))
        return failure();
    }
  return success();
}

LogicalResult BlockVerifier::verify() {
  MLIRContext *context = block.getParentOp()->getContext();
  numberOf(IdAttr::get(context, Role::Compute, 0));
  last[0] = {0, 1, nullptr};
  clocks[0][0] = 1;
  for (Operation &op : block) {
    if (auto record = dyn_cast<RecordOp>(op)) {
      marks[record] = clocks[numberOf(record.getStream())];
      continue;
    }
    if (auto wait = dyn_cast<WaitOp>(op)) {
      Operation *record = wait.getMark().getDefiningOp();
      if (record->getBlock() != &block)
        return wait.emitError(
            "expected a mark that was recorded in this block");
      auto &clock = clocks[numberOf(wait.getStream())];
      for (auto [stream, number] : marks[record]) {
        int64_t &known = clock[stream];
        known = std::max(known, number);
      }
      continue;
    }
    if (auto on = dyn_cast<OnOp>(op)) {
      unsigned stream = numberOf(on.getStream());
      if (failed(
              visit(&op, stream, accesses.get(&on.getBody().front().front()))))
        return failure();
      continue;
    }
    SmallVector<BufferAccess> touched = accesses.get(&op);
    // An allocation's bytes may have been another's.
    if (auto alloc = dyn_cast<memref::AllocOp>(op))
      touched.push_back({{alloc.getResult()}, /*writes=*/true});
    if (!touched.empty() && failed(visit(&op, 0, touched)))
      return failure();
  }
  for (unsigned other = 1; other < streams.size(); ++other)
    if (!isDone(last[other], 0)) {
      InFlightDiagnostic error = block.getTerminator()->emitError()
                                 << "expected the block to end when the stream "
                                 << streams[other]
                                 << " was waited for, but it is under way";
      error.attachNote(last[other].op->getLoc()) << "this is not done";
      return error;
    }
  return success();
}

void VerifyStreamsPass::runOnOperation() {
  markAllAnalysesPreserved();
  BufferAccesses accesses;
  llvm::SetVector<Block *> blocks;
  getOperation().walk([&](Operation *op) {
    if (isa<StreamDialect>(op->getDialect()))
      blocks.insert(op->getBlock());
  });
  for (Block *block : blocks) {
    if (!block->getParent()->hasOneBlock()) {
      block->getParentOp()->emitError(
          "expected streams in structured control flow alone but got a region "
          "of several blocks");
      return signalPassFailure();
    }
    if (failed(BlockVerifier(*block, accesses).verify()))
      return signalPassFailure();
  }
}
