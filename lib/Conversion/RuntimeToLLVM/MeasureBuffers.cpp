//===- MeasureBuffers.cpp - how much memory a program takes ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contract in:  func on buffers with every allocation and deallocation written,
//   structured control flow.
// Contract out: the same; `hp.peak_bytes` on functions.
//
//   A block is walked in order, adding what is allocated (rounded as the
//   runtime does) and taking off what is freed, by tier. A call adds the peak
//   of its callee, which is found once; a branch the larger of its regions; a
//   loop one iteration, if that frees what it allocates. What a function is
//   given and gives back is its caller's; but an arena (`hp.arena`), which its
//   caller has for it, is said to be the function's.
//
// The runtime allocates in the same order, so that it measures the same number.
//
// Cost: linear in ops.
// Limits: what is freed on a condition counts as kept, so that loops which
//   carry buffers have an upper bound. Allocations of dynamic shape, and loops
//   of that kind without a constant number of iterations, have no static peak:
//   their functions get no attribute.
//===----------------------------------------------------------------------===//

#include "lib/Conversion/Passes.h"
#include "lib/Conversion/RuntimeCalls.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

#include <array>

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_MEASUREBUFFERS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;

namespace mlir::hyperparallel {

static constexpr int64_t kBlockBytes = 64;
/// HP_TIER_COUNT.
static constexpr size_t kNumTiers = 4;

using Bytes = std::array<int64_t, kNumTiers>;

namespace {
/// What is there at the end of some ops more than before them, and the most in
/// between.
struct Extent {
  Bytes net = {};
  Bytes peak = {};

  void add(size_t tier, int64_t bytes) {
    net[tier] += bytes;
    peak[tier] = std::max(peak[tier], net[tier]);
  }
  void append(const Extent &next) {
    for (size_t tier = 0; tier < kNumTiers; ++tier) {
      peak[tier] = std::max(peak[tier], net[tier] + next.peak[tier]);
      net[tier] += next.net[tier];
    }
  }
  void repeat(int64_t times) {
    for (size_t tier = 0; tier < kNumTiers; ++tier) {
      peak[tier] += std::max<int64_t>(times - 1, 0) * net[tier];
      net[tier] *= times;
    }
  }
  void unite(const Extent &other) {
    for (size_t tier = 0; tier < kNumTiers; ++tier) {
      peak[tier] = std::max(peak[tier], other.peak[tier]);
      net[tier] = std::max(net[tier], other.net[tier]);
    }
  }
};

class BufferMeasure {
public:
  /// Nothing if there is no static peak.
  std::optional<Extent> measure(func::FuncOp function);

private:
  std::optional<Extent> measure(Block &block);
  std::optional<Extent> measure(Operation *op);

  SymbolTableCollection symbols;
  DenseMap<Operation *, std::optional<Extent>> functions;
};
} // namespace

static std::optional<Extent> change(MemRefType type, int sign) {
  int64_t tier = getRuntimeTier(type);
  if (!type.hasStaticShape() || tier < 0 || tier >= int64_t(kNumTiers))
    return std::nullopt;
  int64_t bytes =
      type.getNumElements() * getElementBytes(type.getElementType());
  Extent result;
  result.add(tier, sign * std::max(int64_t(llvm::alignTo(bytes, kBlockBytes)),
                                   kBlockBytes));
  return result;
}

std::optional<Extent> BufferMeasure::measure(Operation *op) {
  if (auto alloc = dyn_cast<memref::AllocOp>(op))
    return change(alloc.getType(), 1);
  if (auto dealloc = dyn_cast<memref::DeallocOp>(op))
    return change(cast<MemRefType>(dealloc.getMemref().getType()), -1);
  if (auto call = dyn_cast<func::CallOp>(op)) {
    auto callee =
        symbols.lookupNearestSymbolFrom<func::FuncOp>(op, call.getCalleeAttr());
    return callee ? measure(callee) : Extent();
  }
  Extent result;
  for (Region &region : op->getRegions())
    for (Block &block : region) {
      std::optional<Extent> inner = measure(block);
      if (!inner)
        return std::nullopt;
      if (auto loop = dyn_cast<LoopLikeOpInterface>(op);
          loop && llvm::any_of(inner->net, [](int64_t n) { return n > 0; })) {
        // Freed on a condition, or after the loop: as if in no iteration.
        std::optional<llvm::APInt> trips = loop.getStaticTripCount();
        if (!trips)
          return std::nullopt;
        inner->repeat(trips->getSExtValue());
      }
      result.unite(*inner);
    }
  return result;
}

std::optional<Extent> BufferMeasure::measure(Block &block) {
  Extent result;
  for (Operation &op : block) {
    std::optional<Extent> next = measure(&op);
    if (!next)
      return std::nullopt;
    result.append(*next);
  }
  return result;
}

std::optional<Extent> BufferMeasure::measure(func::FuncOp function) {
  if (function.isExternal())
    return Extent();
  auto [known, isNew] = functions.try_emplace(function, Extent());
  if (!isNew)
    return known->second;
  std::optional<Extent> result = Extent();
  for (Block &block : function.getBody()) {
    std::optional<Extent> inner = measure(block);
    if (!inner) {
      result = std::nullopt;
      break;
    }
    result->unite(*inner);
  }
  return functions[function] = result;
}

namespace {
struct MeasureBuffersPass : impl::MeasureBuffersBase<MeasureBuffersPass> {
  using MeasureBuffersBase::MeasureBuffersBase;

  void runOnOperation() override {
    BufferMeasure measure;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      std::optional<Extent> extent = measure.measure(function);
      if (!extent) {
        ++numUnknown;
        continue;
      }
      for (BlockArgument argument : function.getArguments())
        if (function.getArgAttr(argument.getArgNumber(), "hp.arena"))
          if (std::optional<Extent> arena =
                  change(cast<MemRefType>(argument.getType()), 1))
            for (size_t tier = 0; tier < kNumTiers; ++tier)
              extent->peak[tier] += arena->peak[tier];
      function->setAttr("hp.peak_bytes",
                        DenseI64ArrayAttr::get(&getContext(), extent->peak));
      ++numMeasured;
    }
  }
};
} // namespace

} // namespace mlir::hyperparallel
