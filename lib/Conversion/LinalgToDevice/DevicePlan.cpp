//===- DevicePlan.cpp - How a group of ops runs on a device ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToDevice/DevicePlan.h"
#include "lib/Conversion/LinalgToDevice/DeviceThreads.h"
#include "lib/Conversion/LinalgToKernels/LoopNest.h"
#include "lib/Conversion/RuntimeCalls.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

static constexpr int64_t kThreadsOfElements = 256;
static constexpr int64_t kMostThreads = 1024;
/// Elements of a row that a thread should have, before a block has more
/// threads.
static constexpr int64_t kElementsOfRow = 4;
static constexpr int64_t kVectorBytes = 16;
/// Of the loops of a square, which is done by way of shared memory.
static constexpr int64_t kShortestEdge = 8;

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

static bool isElementwise(const KernelMember &member) {
  LinalgOp op = member.op;
  return op.getNumLoops() == member.outer.size();
}

/// The loop that a row's threads share, if it is not among the outer ones.
static std::optional<unsigned> getSharedLoop(const KernelMember &member) {
  LinalgOp op = member.op;
  if (op.getNumLoops() == member.outer.size())
    return std::nullopt;
  unsigned innermost = getInnermostLoop(op);
  if (llvm::is_contained(member.outer, innermost))
    return std::nullopt;
  return innermost;
}

static bool canShareRow(const KernelMember &member) {
  std::optional<unsigned> loop = getSharedLoop(member);
  LinalgOp op = member.op;
  if (!loop || linalg::isParallelIterator(op.getIteratorTypesArray()[*loop]))
    return true;
  for (unsigned result = 0; result < op.getNumDpsInits(); ++result)
    if (!getCombiner(op, result))
      return false;
  return true;
}

/// Elements of the largest type in a vector, of what lies along a loop of each
/// member: smaller ones are accessed in parts of one, still side by side, where
/// more elements of the largest would leave gaps between threads.
static int64_t getVectorOfLargest(
    const KernelGroup &group,
    llvm::function_ref<std::optional<unsigned>(const KernelMember &)> getLoop) {
  int64_t bytes = 1;
  for (const KernelMember &member : group.members) {
    LinalgOp op = member.op;
    std::optional<unsigned> loop = getLoop(member);
    for (OpOperand &operand : op->getOpOperands()) {
      auto type = dyn_cast<MemRefType>(operand.get().getType());
      AffineMap map = op.getMatchingIndexingMap(&operand);
      if (loop && type && map.getNumResults() > 0 &&
          map.getResults().back().isFunctionOfDim(*loop))
        bytes = std::max(bytes, getElementBytes(type.getElementType()));
    }
  }
  return std::clamp<int64_t>(kVectorBytes / bytes, 1, 8);
}

/// Whether what lies along a loop can be accessed in vectors. Where one operand
/// cannot, threads do better to take neighbouring elements.
static bool isAligned(const KernelMember &member, unsigned loop,
                      int64_t length) {
  LinalgOp op = member.op;
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (!type || map.getNumResults() == 0 ||
        !map.getResults().back().isFunctionOfDim(loop))
      return true;
    return isAlignedVector(type, map.getResults(), loop, length);
  });
}

/// Whether the op asserts something of each element along a loop: branches
/// between neighbours' loads would keep them from being one.
static bool assertsAlong(LinalgOp op, unsigned loop) {
  SmallVector<Value> open;
  for (auto assertion : op.getBlock()->getOps<cf::AssertOp>())
    open.push_back(assertion.getArg());
  llvm::SmallPtrSet<Value, 8> seen;
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    auto argument = dyn_cast<BlockArgument>(value);
    if (argument && argument.getOwner() == op.getBlock() &&
        op.getMatchingIndexingMap(op.getMatchingOpOperand(argument))
            .isFunctionOfDim(loop))
      return true;
    Operation *maker = value.getDefiningOp();
    if (maker && maker->getBlock() == op.getBlock())
      llvm::append_range(open, maker->getOperands());
  }
  return false;
}

/// The elements a thread takes at once: as many as make a vector of the
/// largest type, if the last outer loop is the contiguous one and divides.
static int64_t getVectorLength(const KernelGroup &group) {
  int64_t extent = 0;
  for (const KernelMember &member : group.members) {
    LinalgOp op = member.op;
    if (member.outer.empty() || getInnermostLoop(op) != member.outer.back())
      return 1;
    extent = op.getStaticLoopRanges()[member.outer.back()];
  }
  int64_t length = getVectorOfLargest(
      group, [](const KernelMember &member) { return member.outer.back(); });
  while (length > 1 && extent % length != 0)
    length /= 2;
  for (const KernelMember &member : group.members)
    if (!isAligned(member, member.outer.back(), length) ||
        assertsAlong(member.op, member.outer.back()))
      return 1;
  return length;
}

/// The elements of a row that a thread takes at once: as many as make a vector
/// of the largest type, if all members' shared loops can be divided so.
static int64_t getNeighbours(const KernelGroup &group) {
  int64_t length = getVectorOfLargest(group, getSharedLoop);
  for (const KernelMember &member : group.members)
    if (std::optional<unsigned> loop = getSharedLoop(member)) {
      LinalgOp op = member.op;
      int64_t extent = op.getStaticLoopRanges()[*loop];
      if (ShapedType::isDynamic(extent))
        return 1;
      while (extent % length != 0)
        length /= 2;
    }
  for (const KernelMember &member : group.members)
    if (std::optional<unsigned> loop = getSharedLoop(member);
        loop && !isAligned(member, *loop, length))
      return 1;
  return length;
}

/// Gives a lone op that reduces along other than the contiguous loop all its
/// parallel loops as outer ones.
static bool spreadColumns(KernelGroup &group) {
  if (group.members.size() != 1)
    return false;
  KernelMember &member = group.members.front();
  LinalgOp op = member.op;
  auto iterators = op.getIteratorTypesArray();
  if (op.getNumReductionLoops() == 0 ||
      !linalg::isParallelIterator(iterators[getInnermostLoop(op)]))
    return false;
  SmallVector<unsigned> outer;
  for (unsigned loop = 0; loop < iterators.size(); ++loop)
    if (linalg::isParallelIterator(iterators[loop]))
      outer.push_back(loop);
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    for (unsigned loop : outer)
      if (!llvm::is_contained(map.getResults(),
                              getAffineDimExpr(loop, map.getContext())))
        return false;
  }
  member.outer = std::move(outer);
  return true;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// The outer loop along which an operand is contiguous: that of its last
/// dimension that moves at all.
static std::optional<size_t> getContiguousLoop(const KernelMember &member,
                                               OpOperand &operand) {
  LinalgOp op = member.op;
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  SmallVector<int64_t> strides, extents = op.getStaticLoopRanges();
  int64_t offset = 0;
  if (!type || failed(type.getStridesAndOffset(strides, offset)))
    return std::nullopt;
  AffineMap map = op.getMatchingIndexingMap(&operand);
  for (auto [expr, stride] :
       llvm::reverse(llvm::zip_equal(map.getResults(), strides))) {
    if (isa<AffineConstantExpr>(expr))
      continue;
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (dim && extents[dim.getPosition()] == 1)
      continue;
    const unsigned *outer = dim && stride == 1
                                ? llvm::find(member.outer, dim.getPosition())
                                : member.outer.end();
    if (outer == member.outer.end())
      return std::nullopt;
    return outer - member.outer.begin();
  }
  return std::nullopt;
}

/// The outer loop along which all results are contiguous.
static std::optional<size_t> getResultsLoop(const KernelGroup &group) {
  std::optional<size_t> found;
  for (const KernelMember &member : group.members) {
    LinalgOp op = member.op;
    for (OpOperand &init : op.getDpsInitsMutable()) {
      std::optional<size_t> loop = getContiguousLoop(member, init);
      if (!loop || (found && *found != *loop))
        return std::nullopt;
      found = loop;
    }
  }
  return found;
}

static int64_t getOuterExtent(const KernelGroup &group, size_t outer) {
  const KernelMember &first = group.members.front();
  LinalgOp op = first.op;
  return op.getStaticLoopRanges()[first.outer[outer]];
}

int64_t getTilePitch(int64_t edge, Type element) {
  return edge + std::max<int64_t>(4 / getElementBytes(element), 1);
}

/// Finds what is read along another loop than the results are written, and
/// counts its bytes by that loop.
static llvm::MapVector<size_t, int64_t> findTransposed(const KernelGroup &group,
                                                       size_t column) {
  llvm::MapVector<size_t, int64_t> bytes;
  for (const KernelMember &member : group.members) {
    LinalgOp op = member.op;
    for (OpOperand *input : op.getDpsInputOperands()) {
      std::optional<size_t> loop = getContiguousLoop(member, *input);
      AffineMap map = op.getMatchingIndexingMap(input);
      if (!loop || *loop == column ||
          !map.isFunctionOfDim(member.outer[column]))
        continue;
      auto type = cast<MemRefType>(input->get().getType());
      bytes[*loop] +=
          type.getNumElements() * getElementBytes(type.getElementType());
    }
  }
  return bytes;
}

/// Whether the last member's results are contiguous along another loop than
/// those of the others.
static bool writesAcross(const KernelGroup &group) {
  if (!llvm::all_of(group.members, isElementwise))
    return false;
  KernelGroup last, others;
  last.members.push_back(group.members.back());
  others.members = llvm::to_vector(ArrayRef(group.members).drop_back());
  std::optional<size_t> ofLast = getResultsLoop(last);
  std::optional<size_t> ofOthers = getResultsLoop(others);
  return ofLast && ofOthers && *ofLast != *ofOthers;
}

std::optional<KernelGroup> takeMisfit(KernelGroup &group) {
  if (group.members.size() < 2)
    return std::nullopt;
  const KernelMember &last = group.members.back();
  LinalgOp op = last.op;
  std::optional<unsigned> shared = getSharedLoop(last);
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  auto iterators = op.getIteratorTypesArray();
  bool loops = false;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    loops |= linalg::isParallelIterator(iterators[loop]) && loop != shared &&
             extents[loop] != 1 && !llvm::is_contained(last.outer, loop);
  if (op.getNumReductionLoops() != 0 || !(loops || writesAcross(group)))
    return std::nullopt;
  KernelGroup taken;
  taken.members.push_back({op, getInitialOuterLoops(op)});
  group.members.pop_back();
  if (group.members.size() == 1) {
    KernelMember &only = group.members.front();
    only.outer = getInitialOuterLoops(only.op);
  }
  return taken;
}

/// Whether the group reads what lies across its results, and can do so in
/// squares. Squares must have something to hold: short edges gain nothing.
static bool chooseTile(const KernelGroup &group, DevicePlan &plan) {
  std::optional<size_t> column = getResultsLoop(group);
  if (!column)
    return false;
  auto transposed = findTransposed(group, *column);
  if (transposed.empty())
    return false;
  DeviceTile tile;
  tile.column = *column;
  tile.row = llvm::max_element(transposed, llvm::less_second())->first;
  tile.rows = getOuterExtent(group, tile.row);
  tile.columns = getOuterExtent(group, tile.column);
  if (std::min(tile.rows, tile.columns) < kShortestEdge)
    return false;
  llvm::SetVector<Value> inputs;
  for (const KernelMember &member : group.members) {
    LinalgOp op = member.op;
    for (OpOperand *input : op.getDpsInputOperands())
      if (getContiguousLoop(member, *input) == tile.row)
        inputs.insert(input->get());
  }
  int64_t bytes = kVectorBytes, used = 0;
  for (Value input : inputs) {
    auto places = getRowPlaces(input, group, /*leastReads=*/1);
    if (!places || llvm::is_contained(*places, std::nullopt) ||
        llvm::count(*places, tile.row) != 1 ||
        llvm::count(*places, tile.column) != 1)
      continue;
    Type element = cast<MemRefType>(input.getType()).getElementType();
    int64_t size = 2 * tile.edge * getTilePitch(2 * tile.edge, element) *
                   getElementBytes(element);
    if (used + size > kSharedBytes)
      continue;
    used += size;
    bytes = std::min(bytes, getElementBytes(element));
    tile.inputs.emplace_back(input, std::move(*places));
  }
  if (tile.inputs.empty())
    return false;
  auto divide = [](int64_t length, int64_t extent) {
    while (length > 1 && extent % length != 0)
      length /= 2;
    return length;
  };
  tile.neighbours =
      divide(std::min<int64_t>(kVectorBytes / bytes, 8), tile.rows);
  plan.vector = divide(getVectorOfLargest(group,
                                          [&](const KernelMember &member) {
                                            return member.outer[*column];
                                          }),
                       tile.columns);
  if (std::max(tile.neighbours, plan.vector) > 4)
    tile.edge *= 2;
  plan.tile = std::move(tile);
  return true;
}

/// Runs the loop along which results are contiguous last, so that neighbouring
/// threads write neighbours.
static void putContiguousLast(KernelGroup &group) {
  std::optional<size_t> loop = getResultsLoop(group);
  if (!loop)
    return;
  for (KernelMember &member : group.members)
    std::rotate(member.outer.begin() + *loop, member.outer.begin() + *loop + 1,
                member.outer.end());
}

DevicePlan decideDevicePlan(KernelGroup &group) {
  DevicePlan plan;
  if (llvm::all_of(group.members, isElementwise)) {
    putContiguousLast(group);
    plan.manner = Manner::Elements;
    plan.vector = getVectorLength(group);
    if (chooseTile(group, plan))
      plan.manner = Manner::Tiles;
  } else if (spreadColumns(group)) {
    plan.manner = Manner::Columns;
  } else if (llvm::all_of(group.members, canShareRow) &&
             llvm::any_of(group.members, getSharedLoop)) {
    plan.manner = Manner::Rows;
  }
  const KernelMember &first = group.members.front();
  LinalgOp firstOp = first.op;
  SmallVector<int64_t> extents = firstOp.getStaticLoopRanges();
  for (unsigned loop : first.outer)
    plan.iterations *= extents[loop];
  if (plan.manner == Manner::Rows) {
    int64_t widest = 1;
    for (const KernelMember &member : group.members)
      if (std::optional<unsigned> loop = getSharedLoop(member)) {
        LinalgOp op = member.op;
        widest = std::max(widest, op.getStaticLoopRanges()[*loop]);
      }
    plan.neighbours = getNeighbours(group);
    plan.threads = kWarp;
    while (plan.threads < kMostThreads &&
           plan.threads * kElementsOfRow < widest)
      plan.threads *= 2;
    plan.blocks = plan.iterations;
    return plan;
  }
  if (plan.manner == Manner::Tiles) {
    const DeviceTile &tile = plan.tile;
    plan.threads = kThreadsOfElements;
    plan.blocks = plan.iterations == 0
                      ? 0
                      : plan.iterations / (tile.rows * tile.columns) *
                            llvm::divideCeil(tile.rows, tile.edge) *
                            llvm::divideCeil(tile.columns, tile.edge);
    return plan;
  }
  int64_t needed = plan.iterations / plan.vector;
  plan.threads =
      plan.manner == Manner::Elements ? kThreadsOfElements : 4 * kWarp;
  while (plan.threads > kWarp && plan.threads / 2 >= needed)
    plan.threads /= 2;
  plan.blocks = (needed + plan.threads - 1) / plan.threads;
  return plan;
}

LogicalResult checkDeviceLoops(const KernelGroup &group) {
  for (const KernelMember &member : group.members) {
    LinalgOp op = member.op;
    int64_t outer = 1;
    for (auto [loop, extent] : llvm::enumerate(op.getStaticLoopRanges())) {
      if (ShapedType::isDynamic(extent))
        return op.emitError("expected loops of static extent for a kernel of "
                            "the device but got one of unknown extent");
      if (llvm::is_contained(member.outer, loop))
        outer *= extent;
      if (outer > std::numeric_limits<int32_t>::max())
        return op.emitError("expected at most 2147483647 iterations for a "
                            "kernel of the device but got more");
    }
  }
  return success();
}

std::optional<SmallVector<std::optional<size_t>>>
getRowPlaces(Value input, const KernelGroup &group, int64_t leastReads) {
  auto type = cast<MemRefType>(input.getType());
  std::optional<SmallVector<std::optional<size_t>>> places;
  Value root = getBufferRoot(input);
  int64_t reads = 0;
  for (const KernelMember &member : group.members) {
    LinalgOp op = member.op;
    for (Value init : op.getDpsInits())
      if (mayAlias(getBufferRoot(init), root))
        return std::nullopt;
    WalkResult computed = op.getBlock()->walk([&](memref::LoadOp load) {
      return load.getMemRef() == input ? WalkResult::interrupt()
                                       : WalkResult::advance();
    });
    if (computed.wasInterrupted())
      return std::nullopt;
    for (OpOperand &operand : op->getOpOperands()) {
      if (operand.get() != input)
        continue;
      ++reads;
      SmallVector<std::optional<size_t>> found(type.getRank());
      AffineMap map = op.getMatchingIndexingMap(&operand);
      for (auto [position, expr] : llvm::enumerate(map.getResults()))
        if (auto dim = dyn_cast<AffineDimExpr>(expr))
          if (const unsigned *outer =
                  llvm::find(member.outer, dim.getPosition());
              outer != member.outer.end())
            found[position] = outer - member.outer.begin();
      if (places && *places != found)
        return std::nullopt;
      places = found;
    }
  }
  return reads >= leastReads ? places : std::nullopt;
}

/// The outer loop at each position of an operand; nothing for another loop.
/// Fails where an index is no loop.
static std::optional<SmallVector<std::optional<size_t>>>
getPlaces(const KernelMember &member, OpOperand &operand) {
  LinalgOp op = member.op;
  SmallVector<std::optional<size_t>> places;
  for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim)
      return std::nullopt;
    const unsigned *outer = llvm::find(member.outer, dim.getPosition());
    std::optional<size_t> &place = places.emplace_back();
    if (outer != member.outer.end())
      place = outer - member.outer.begin();
  }
  return places;
}

std::optional<SmallVector<std::optional<size_t>>>
getKeptPlaces(Value result, const KernelGroup &group) {
  std::optional<SmallVector<std::optional<size_t>>> places;
  Value root = getBufferRoot(result);
  bool isWritten = false, isRead = false;
  for (const KernelMember &member : group.members) {
    LinalgOp op = member.op;
    WalkResult computed = op.getBlock()->walk([&](memref::LoadOp load) {
      return mayAlias(getBufferRoot(load.getMemRef()), root)
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    if (computed.wasInterrupted())
      return std::nullopt;
    bool writes = false;
    for (OpOperand &operand : op->getOpOperands()) {
      if (!isa<MemRefType>(operand.get().getType()) ||
          !mayAlias(getBufferRoot(operand.get()), root))
        continue;
      auto found = getPlaces(member, operand);
      if (operand.get() != result || !found || (places && *places != *found))
        return std::nullopt;
      places = found;
      writes |= op.isDpsInit(&operand);
      if (!op.payloadUsesValueFromOperand(&operand))
        continue;
      if (!isWritten) // what was there before
        return std::nullopt;
      isRead = true;
    }
    isWritten |= writes;
  }
  return isRead ? places : std::nullopt;
}

} // namespace mlir::hyperparallel
