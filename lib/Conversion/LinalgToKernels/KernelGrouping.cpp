//===- KernelGrouping.cpp - Which linalg ops share one loop ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One walk over the block keeps a list of open groups.
//
//   1. An op that is not a structured linalg op closes every open group whose
//      buffers it may touch: members move down to the last member of their
//      group, and may not move past such an op. A call of a function that has
//      structured ops (a block of a model) closes all: what was put off beyond
//      it would keep its operands meanwhile.
//   2. A linalg op that conflicts with no open group opens a new one. Its outer
//      loops are its parallel loops, but for the one along which memory is
//      contiguous where the op also reduces (that loop must stay innermost).
//   3. A linalg op that conflicts with open groups joins them to one if, for
//      every shared buffer of which one side writes, both index the same view
//      with aligned outer loops in the same positions: then a dependence never
//      leaves an outer iteration. Outer loops that are not aligned are dropped
//      from the group; at least one must stay, and enough parallel iterations.
//   4. Otherwise the groups in conflict are closed and the op opens a new one.
//
// Cost: O(ops x open groups x operands). Limits: views of one buffer that are
// not the same SSA value count as conflicting.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToKernels/KernelGrouping.h"
#include "lib/Conversion/LinalgToRuntime/ContractionLayout.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

/// Below this many outer iterations a kernel cannot feed the cores evenly.
static constexpr int64_t kEnoughIterations = 16;
/// Work (loop iterations) below which parallelism does not matter.
static constexpr int64_t kSmallWork = 32 * 1024;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value getBufferRoot(Value view) {
  while (Operation *def = view.getDefiningOp()) {
    if (auto viewLike = dyn_cast<ViewLikeOpInterface>(def))
      view = viewLike.getViewSource();
    else if (auto cast = dyn_cast<memref::CastOp>(def))
      view = cast.getSource();
    else
      break;
  }
  return view;
}

namespace {
enum class RootKind { Allocation, Argument, Global, Unknown };
} // namespace

static RootKind getRootKind(Value root) {
  if (auto argument = dyn_cast<BlockArgument>(root))
    return isa<func::FuncOp>(argument.getOwner()->getParentOp()) &&
                   argument.getOwner()->isEntryBlock()
               ? RootKind::Argument
               : RootKind::Unknown;
  Operation *def = root.getDefiningOp();
  if (isa<memref::AllocOp, memref::AllocaOp>(def))
    return RootKind::Allocation;
  if (isa<memref::GetGlobalOp>(def))
    return RootKind::Global;
  return RootKind::Unknown;
}

bool mayAlias(Value rootA, Value rootB) {
  if (rootA == rootB)
    return true;
  RootKind kindA = getRootKind(rootA), kindB = getRootKind(rootB);
  if (kindA == RootKind::Unknown || kindB == RootKind::Unknown) {
    // A fresh allocation can only be reached through values derived from it;
    // an unknown root (a loop-carried buffer, say) may be one of those.
    return true;
  }
  return kindA == RootKind::Global && kindB == RootKind::Global &&
         rootA.getDefiningOp<memref::GetGlobalOp>().getNameAttr() ==
             rootB.getDefiningOp<memref::GetGlobalOp>().getNameAttr();
}

namespace {
/// One use of a buffer by a linalg op. `map` is null for loads in the body.
struct Access {
  Value view;
  Value root;
  AffineMap map;
  bool writes;
};
} // namespace

static SmallVector<Access> getAccesses(LinalgOp op) {
  SmallVector<Access> accesses;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    accesses.push_back({operand.get(), getBufferRoot(operand.get()),
                        op.getMatchingIndexingMap(&operand),
                        op.isDpsInit(&operand)});
  }
  op.getBlock()->walk([&](memref::LoadOp load) {
    if (load.getMemRef().getParentRegion()->isAncestor(op->getParentRegion()))
      accesses.push_back({load.getMemRef(), getBufferRoot(load.getMemRef()),
                          AffineMap(), false});
  });
  return accesses;
}

/// True if the body touches memory in ways `getAccesses` does not describe.
static bool hasOpaqueBody(LinalgOp op) {
  return op.getBlock()
      ->walk([](Operation *nested) {
        if (isa<memref::LoadOp>(nested) || isMemoryEffectFree(nested) ||
            nested->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
            nested->getName().getStringRef() == "cf.assert")
          return WalkResult::advance();
        return WalkResult::interrupt();
      })
      .wasInterrupted();
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

static bool isParallel(LinalgOp op, unsigned loop) {
  return linalg::isParallelIterator(op.getIteratorTypesArray()[loop]);
}

unsigned getInnermostLoop(LinalgOp op) {
  unsigned numLoops = op.getNumLoops();
  SmallVector<double> score(numLoops, 0);
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  auto extentOf = [&](unsigned loop) -> double {
    return ShapedType::isDynamic(extents[loop]) ? 1024 : extents[loop];
  };
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (map.getNumResults() == 0)
      continue;
    // An operand counts by the elements it moves; loops it does not depend on
    // keep it in a register.
    double volume = op.isDpsInit(&operand) ? 2 : 1;
    for (unsigned loop = 0; loop < numLoops; ++loop)
      if (map.isFunctionOfDim(loop))
        volume *= extentOf(loop);
    // The fastest index that moves at all decides.
    for (AffineExpr expr : llvm::reverse(map.getResults())) {
      if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
        if (extentOf(dim.getPosition()) == 1)
          continue;
        score[dim.getPosition()] += volume;
      }
      break;
    }
  }
  unsigned best = numLoops - 1;
  for (unsigned loop = 0; loop < numLoops; ++loop)
    if (score[loop] > score[best])
      best = loop;
  return best;
}

SmallVector<unsigned> getInitialOuterLoops(LinalgOp op) {
  SmallVector<unsigned> outer;
  bool reduces = op.getNumReductionLoops() != 0;
  unsigned innermost = op.getNumLoops() ? getInnermostLoop(op) : 0;
  for (unsigned loop = 0, e = op.getNumLoops(); loop < e; ++loop)
    if (isParallel(op, loop) && !(reduces && loop == innermost))
      outer.push_back(loop);
  // Every iteration of an outer loop must write its own part of each result.
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    llvm::erase_if(outer, [&](unsigned loop) {
      return !llvm::is_contained(map.getResults(),
                                 getAffineDimExpr(loop, map.getContext()));
    });
  }
  return outer;
}

static int64_t countIterations(LinalgOp op, ArrayRef<unsigned> loops) {
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  int64_t count = 1;
  for (unsigned loop : loops)
    count *= ShapedType::isDynamic(extents[loop]) ? 1024 : extents[loop];
  return count;
}

static int64_t countWork(LinalgOp op) {
  return countIterations(
      op, llvm::to_vector(llvm::seq<unsigned>(0, op.getNumLoops())));
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

namespace {
struct OpenGroup {
  KernelGroup group;
  SmallVector<SmallVector<Access>> accesses; // of each member
};
} // namespace

static bool conflicts(ArrayRef<Access> left, ArrayRef<Access> right) {
  for (const Access &a : left)
    for (const Access &b : right)
      if ((a.writes || b.writes) && mayAlias(a.root, b.root))
        return true;
  return false;
}

static bool conflicts(const OpenGroup &open, ArrayRef<Access> accesses) {
  return llvm::any_of(open.accesses, [&](const SmallVector<Access> &member) {
    return conflicts(member, accesses);
  });
}

/// For each outer loop of `member` the loop of `op` that `access` aligns with
/// it, or nothing.
static std::optional<unsigned>
alignedLoop(const Access &ofMember, unsigned memberLoop, const Access &ofOp) {
  for (auto [left, right] :
       llvm::zip_equal(ofMember.map.getResults(), ofOp.map.getResults())) {
    auto leftDim = dyn_cast<AffineDimExpr>(left);
    auto rightDim = dyn_cast<AffineDimExpr>(right);
    if (leftDim && rightDim && leftDim.getPosition() == memberLoop)
      return rightDim.getPosition();
  }
  return std::nullopt;
}

/// For each outer loop of `open` the loop of `op` it runs with; null where they
/// cannot run together. Fails if a dependence has no alignment at all.
static FailureOr<SmallVector<std::optional<unsigned>>>
alignOuterLoops(OpenGroup &open, LinalgOp op, ArrayRef<Access> accesses) {
  size_t numOuter = open.group.getNumOuterLoops();
  SmallVector<std::optional<unsigned>> aligned(numOuter);
  SmallVector<bool> dropped(numOuter, false);
  for (auto [member, memberAccesses] :
       llvm::zip_equal(open.group.members, open.accesses)) {
    for (const Access &ofMember : memberAccesses) {
      for (const Access &ofOp : accesses) {
        if (!(ofMember.writes || ofOp.writes) ||
            !mayAlias(ofMember.root, ofOp.root))
          continue;
        if (ofMember.view != ofOp.view || !ofMember.map || !ofOp.map)
          return failure();
        for (size_t t = 0; t < numOuter; ++t) {
          std::optional<unsigned> loop =
              alignedLoop(ofMember, member.outer[t], ofOp);
          if (!loop || (aligned[t] && *aligned[t] != *loop))
            dropped[t] = true;
          else
            aligned[t] = loop;
        }
      }
    }
  }
  for (size_t t = 0; t < numOuter; ++t)
    if (dropped[t])
      aligned[t] = std::nullopt;
  return aligned;
}

/// Tries to make one group of `groups` and `op`, which conflicts with each of
/// them while they do not conflict among each other. On success the first one
/// holds all members and the others are empty.
static bool tryJoin(ArrayRef<OpenGroup *> groups, LinalgOp op,
                    ArrayRef<Access> accesses) {
  // Loops of `op` that every group has an outer loop for.
  SmallVector<unsigned> outer = getInitialOuterLoops(op);
  SmallVector<SmallVector<std::optional<unsigned>>> alignments;
  for (OpenGroup *open : groups) {
    auto aligned = alignOuterLoops(*open, op, accesses);
    if (failed(aligned))
      return false;
    llvm::erase_if(outer, [&](unsigned loop) {
      return llvm::count(*aligned, std::optional<unsigned>(loop)) != 1;
    });
    alignments.push_back(std::move(*aligned));
  }
  if (outer.empty())
    return false;

  int64_t after = countIterations(op, outer);
  for (OpenGroup *open : groups) {
    const KernelMember &first = open->group.members.front();
    int64_t before = countIterations(first.op, first.outer);
    int64_t work = countWork(op);
    for (const KernelMember &member : open->group.members)
      work = std::max(work, countWork(member.op));
    if (after < kEnoughIterations && after < before && work > kSmallWork)
      return false;
  }

  OpenGroup merged;
  for (auto [open, aligned] : llvm::zip_equal(groups, alignments)) {
    for (KernelMember &member : open->group.members) {
      SmallVector<unsigned> kept;
      for (unsigned loop : outer)
        kept.push_back(
            member.outer[llvm::find(aligned, loop) - aligned.begin()]);
      merged.group.members.push_back({member.op, std::move(kept)});
    }
    llvm::append_range(merged.accesses, open->accesses);
    *open = OpenGroup();
  }
  merged.group.members.push_back({op, std::move(outer)});
  merged.accesses.emplace_back(accesses.begin(), accesses.end());
  *groups.front() = std::move(merged);
  return true;
}

/// Buffers that an op which is not grouped may touch; nothing if it may touch
/// any.
static std::optional<SmallVector<Access>> getForeignAccesses(Operation *op) {
  SmallVector<Access> accesses;
  if (isMemoryEffectFree(op) || isa<memref::AllocOp, memref::AllocaOp>(op))
    return accesses;
  WalkResult result = op->walk([&](Operation *nested) {
    if (isa<LLVM::LLVMDialect>(nested->getDialect()))
      return WalkResult::interrupt();
    for (Value operand : nested->getOperands()) {
      if (isa<UnrankedMemRefType>(operand.getType()))
        return WalkResult::interrupt();
      if (!isa<MemRefType>(operand.getType()))
        continue;
      bool writes = true;
      if (auto linalgOp = dyn_cast<LinalgOp>(nested))
        writes = llvm::is_contained(linalgOp.getDpsInits(), operand);
      else if (isa<memref::LoadOp>(nested))
        writes = false;
      else if (auto copy = dyn_cast<memref::CopyOp>(nested))
        writes = operand == copy.getTarget();
      else if (isMemoryEffectFree(nested))
        writes = false;
      accesses.push_back(
          {operand, getBufferRoot(operand), AffineMap(), writes});
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return std::nullopt;
  return accesses;
}

/// Whether the op is a call of a function with structured ops, or what became
/// of them.
static bool callsWork(Operation *op, llvm::DenseMap<StringAttr, bool> &known) {
  auto call = dyn_cast<func::CallOp>(op);
  if (!call)
    return false;
  StringAttr name = call.getCalleeAttr().getAttr();
  auto [answer, isNew] = known.try_emplace(name, false);
  if (isNew) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, name);
    // A call into the runtime has neither loops nor further calls.
    answer->second = callee && callee.getBody()
                                   .walk([](Operation *inner) {
                                     return inner->getNumRegions() > 0 ||
                                                    isa<func::CallOp>(inner)
                                                ? WalkResult::interrupt()
                                                : WalkResult::advance();
                                   })
                                   .wasInterrupted();
  }
  return answer->second;
}

LogicalResult verifyOnBuffers(Operation *root) {
  WalkResult result = root->walk([](Operation *op) {
    if (!isa<LinalgOp>(op) && op->getName().getDialectNamespace() != "fused")
      return WalkResult::advance();
    for (Type type : op->getOperandTypes())
      if (isa<TensorType>(type)) {
        InFlightDiagnostic error =
            op->emitError("expected an op on buffers but got ") << type;
        error.attachNote() << "bufferize the program first";
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

SmallVector<KernelGroup> formKernelGroups(Block &block) {
  llvm::DenseMap<StringAttr, bool> known;
  SmallVector<OpenGroup> open;
  SmallVector<KernelGroup> closed;
  auto closeIf = [&](llvm::function_ref<bool(const OpenGroup &)> predicate) {
    for (OpenGroup &candidate : open)
      if (predicate(candidate))
        closed.push_back(candidate.group);
    llvm::erase_if(open, predicate);
  };
  for (Operation &op : block) {
    auto linalgOp = dyn_cast<LinalgOp>(&op);
    if (!linalgOp || isRuntimeContraction(&op) || hasOpaqueBody(linalgOp)) {
      std::optional<SmallVector<Access>> accesses = getForeignAccesses(&op);
      bool isWork = callsWork(&op, known);
      closeIf([&](const OpenGroup &candidate) {
        return !accesses || isWork || conflicts(candidate, *accesses);
      });
      continue;
    }
    SmallVector<Access> accesses = getAccesses(linalgOp);
    SmallVector<OpenGroup *> inConflict;
    for (OpenGroup &candidate : open)
      if (conflicts(candidate, accesses))
        inConflict.push_back(&candidate);
    if (!inConflict.empty() && tryJoin(inConflict, linalgOp, accesses)) {
      llvm::erase_if(open, [](const OpenGroup &candidate) {
        return candidate.group.members.empty();
      });
      continue;
    }
    closeIf([&](const OpenGroup &candidate) {
      return conflicts(candidate, accesses);
    });
    OpenGroup fresh;
    fresh.group.members.push_back({linalgOp, getInitialOuterLoops(linalgOp)});
    fresh.accesses.push_back(std::move(accesses));
    open.push_back(std::move(fresh));
  }
  closeIf([](const OpenGroup &) { return true; });
  return closed;
}

} // namespace mlir::hyperparallel
