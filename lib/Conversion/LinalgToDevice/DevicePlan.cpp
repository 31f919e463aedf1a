//===- DevicePlan.cpp - How a group of ops runs on a device ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToDevice/DevicePlan.h"
#include "lib/Conversion/LinalgToDevice/DeviceThreads.h"
#include "lib/Conversion/LinalgToKernels/LoopNest.h"
#include "lib/Conversion/RuntimeCalls.h"

#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

static constexpr int64_t kThreadsOfElements = 256;
static constexpr int64_t kMostThreads = 1024;
/// Elements of a row that a thread should have, before a block has more
/// threads.
static constexpr int64_t kElementsOfRow = 4;
static constexpr int64_t kVectorBytes = 16;

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

/// The elements a thread takes at once: as many as make a vector of the
/// smallest type, if the last outer loop is the contiguous one and divides.
static int64_t getVectorLength(const KernelGroup &group) {
  int64_t bytes = kVectorBytes, extent = 0;
  for (const KernelMember &member : group.members) {
    LinalgOp op = member.op;
    if (member.outer.empty() || getInnermostLoop(op) != member.outer.back())
      return 1;
    extent = op.getStaticLoopRanges()[member.outer.back()];
    for (Value operand : op->getOperands())
      if (auto type = dyn_cast<MemRefType>(operand.getType()))
        bytes = std::min(bytes, getElementBytes(type.getElementType()));
  }
  int64_t length = std::min<int64_t>(kVectorBytes / bytes, 8);
  while (length > 1 && extent % length != 0)
    length /= 2;
  return length;
}

/// The elements of a row that a thread takes at once: as many as make a vector
/// of the smallest type, if all members' shared loops can be divided so.
static int64_t getNeighbours(const KernelGroup &group) {
  int64_t bytes = kVectorBytes;
  for (const KernelMember &member : group.members) {
    LinalgOp op = member.op;
    for (Value operand : op->getOperands())
      if (auto type = dyn_cast<MemRefType>(operand.getType()))
        bytes = std::min(bytes, getElementBytes(type.getElementType()));
  }
  int64_t length = std::min<int64_t>(kVectorBytes / bytes, 8);
  for (const KernelMember &member : group.members)
    if (std::optional<unsigned> loop = getSharedLoop(member)) {
      LinalgOp op = member.op;
      int64_t extent = op.getStaticLoopRanges()[*loop];
      if (ShapedType::isDynamic(extent))
        return 1;
      while (extent % length != 0)
        length /= 2;
    }
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

DevicePlan decideDevicePlan(KernelGroup &group) {
  DevicePlan plan;
  if (llvm::all_of(group.members, isElementwise)) {
    plan.manner = Manner::Elements;
    plan.vector = getVectorLength(group);
  } else if (spreadColumns(group)) {
    plan.manner = Manner::Columns;
  } else if (llvm::all_of(group.members, canShareRow)) {
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
getRowPlaces(Value input, const KernelGroup &group) {
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
  return reads > 1 ? places : std::nullopt;
}

} // namespace mlir::hyperparallel
