//===- KernelFusion.cpp - which ops become one kernel ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// One walk over the block keeps the kernels that may still grow.
//
//   1. A fill that only initialises structured ops is absorbed by them; so is a
//      transpose or broadcast that only contractions read (they take strides).
//   2. A contraction, a convolution, and an op on tensors that is no structured
//      op, run by themselves, and no kernel grows across them.
//   3. Any other structured op joins the kernels that make its operands, where
//      both sides walk the tensor along its outermost dimension in their
//      outermost loop: then what the one makes, the other takes while it is in
//      the cache. That holds for elementwise chains, for reductions of rows and
//      for what follows them. Otherwise the op begins a kernel, and the one
//      that makes its operand grows no more.
//   4. A kernel reads each tensor from outside once, and writes the results
//      that are used outside of it.
//
// Cost: linear in ops and operands. Limits: a code generator may do better (it
// may also fuse into contractions) or worse (it runs out of registers).
//===----------------------------------------------------------------------===//
#include "lib/Analysis/KernelFusion.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using linalg::LinalgOp;

static OpCost costOf(Operation *op) {
  auto costed = dyn_cast<CostOpInterface>(op);
  return costed ? costed.getCost() : OpCost();
}

static bool isContraction(Operation *op) {
  return isa<LinalgOp>(op) && costOf(op).contractionFlops > 0;
}

/// What the body hands on without touching it, or null.
static Value valueHandedOn(LinalgOp op) {
  Operation *yield = op.getBlock()->getTerminator();
  if (op->getNumResults() != 1 || yield->getNumOperands() != 1)
    return {};
  Value value = yield->getOperand(0);
  auto argument = dyn_cast<BlockArgument>(value);
  if (argument && argument.getOwner() == op.getBlock())
    return op->getOperand(argument.getArgNumber());
  return value.getParentRegion()->isProperAncestor(op->getParentRegion()) ||
                 value.getParentRegion() == op->getParentRegion()
             ? value
             : Value();
}

/// Rule 1.
static bool isAbsorbed(LinalgOp op) {
  Value value = valueHandedOn(op);
  if (!value || op->use_empty())
    return false;
  bool isFill = !isa<ShapedType>(value.getType());
  return llvm::all_of(op->getUses(), [&](OpOperand &use) {
    auto user = dyn_cast<LinalgOp>(use.getOwner());
    if (!user)
      return false;
    return isFill ? user.isDpsInit(&use) : isContraction(user);
  });
}

/// The op that makes the elements of the value, whatever their shape.
static Operation *makerOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<LinalgOp>(op) || op->getNumOperands() == 0)
      return op;
    // A view of all elements.
    auto from = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
    auto to = dyn_cast<RankedTensorType>(value.getType());
    if (!from || !to || !from.hasStaticShape() || !to.hasStaticShape() ||
        from.getNumElements() != to.getNumElements() ||
        !isa<CostOpInterface>(op) || !costOf(op).isFree())
      return op;
    value = op->getOperand(0);
  }
  return nullptr;
}

/// True if the outermost loop that does anything runs along the outermost
/// dimension of the tensor that has any length.
static bool walksOutermostFirst(LinalgOp op, OpOperand &operand) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  auto type = dyn_cast<RankedTensorType>(operand.get().getType());
  if (!type || !type.hasStaticShape())
    return false;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  const auto *loop = llvm::find_if(extents, [](int64_t e) { return e != 1; });
  for (auto [extent, expr] :
       llvm::zip_equal(type.getShape(), map.getResults())) {
    if (extent == 1)
      continue;
    auto dim = dyn_cast<AffineDimExpr>(expr);
    return dim && dim.getPosition() == loop - extents.begin() &&
           op.getIteratorTypesArray()[dim.getPosition()] ==
               utils::IteratorType::parallel;
  }
  return false;
}

namespace {
class Planner {
public:
  explicit Planner(KernelPlan &plan) : plan(plan) {}

  void visit(Operation *op);
  void finish();

private:
  struct Kernel {
    SmallVector<Operation *, 4> ops;
    bool isOpen = true;
    /// Where the ops went when kernels were merged.
    int mergedInto = -1;
  };

  int find(Operation *op) {
    auto entry = plan.kernelOf.find(op);
    if (entry == plan.kernelOf.end() || entry->second < 0)
      return -1;
    int index = entry->second;
    while (kernels[index].mergedInto >= 0)
      index = kernels[index].mergedInto;
    return entry->second = index;
  }
  void closeAll() {
    for (int index : open)
      kernels[index].isOpen = false;
    open.clear();
  }
  void join(LinalgOp op);

  KernelPlan &plan;
  std::vector<Kernel> kernels;
  SmallVector<int> open;
};
} // namespace

/// Rule 3.
void Planner::join(LinalgOp op) {
  int target = -1;
  for (OpOperand &operand : op->getOpOperands()) {
    Operation *maker = makerOf(operand.get());
    int index = maker ? find(maker) : -1;
    if (index < 0 || !kernels[index].isOpen)
      continue;
    auto producer = cast<LinalgOp>(maker);
    bool isAligned =
        walksOutermostFirst(op, operand) &&
        walksOutermostFirst(producer, *producer.getDpsInitOperand(0));
    if (!isAligned) {
      kernels[index].isOpen = false;
      continue;
    }
    if (target < 0 || target == index) {
      target = index;
      continue;
    }
    // The larger takes the ops of the smaller, so that none moves often.
    if (kernels[target].ops.size() < kernels[index].ops.size())
      std::swap(target, index);
    llvm::append_range(kernels[target].ops, kernels[index].ops);
    kernels[index].ops.clear();
    kernels[index].mergedInto = target;
    kernels[index].isOpen = false;
  }
  // An operand further on may have closed it.
  if (target < 0 || !kernels[target].isOpen) {
    target = kernels.size();
    kernels.emplace_back();
    open.push_back(target);
  }
  kernels[target].ops.push_back(op);
  plan.kernelOf[op] = target;
}

void Planner::visit(Operation *op) {
  if (auto structured = dyn_cast<LinalgOp>(op)) {
    if (isAbsorbed(structured)) {
      plan.kernelOf[op] = -1;
      return;
    }
    if (isContraction(op)) {
      closeAll();
      plan.kernelOf[op] = kernels.size();
      kernels.emplace_back().ops.push_back(op);
      kernels.back().isOpen = false;
      return;
    }
    join(structured);
    return;
  }
  bool isFree = op->getNumRegions() == 0 && isa<CostOpInterface>(op) &&
                costOf(op).isFree();
  if (!isFree && !op->hasTrait<OpTrait::ConstantLike>())
    closeAll();
}

/// Rule 4.
void Planner::finish() {
  for (auto [index, kernel] : llvm::enumerate(kernels)) {
    if (kernel.ops.empty())
      continue;
    FusedKernel &fused = plan.kernels.emplace_back();
    DenseSet<Value> seen;
    llvm::sort(kernel.ops, [](Operation *a, Operation *b) {
      return a->isBeforeInBlock(b);
    });
    auto isInside = [&, index = index](Operation *op) {
      return op && find(op) == static_cast<int>(index);
    };
    for (Operation *op : kernel.ops) {
      auto structured = cast<LinalgOp>(op);
      OpCost work = costOf(op);
      for (OpOperand &operand : op->getOpOperands()) {
        Value value = operand.get();
        if (!isa<RankedTensorType>(value.getType()) ||
            structured.getMatchingBlockArgument(&operand).use_empty())
          continue;
        Operation *maker = makerOf(value);
        auto filled = maker ? plan.kernelOf.find(maker) : plan.kernelOf.end();
        bool isFilled = filled != plan.kernelOf.end() && filled->second < 0 &&
                        structured.isDpsInit(&operand);
        if (isFilled || isInside(maker) || !seen.insert(value).second)
          work.bytesRead -= byteSize(value.getType());
      }
      for (OpResult result : op->getResults()) {
        bool isSeen = llvm::any_of(result.getUsers(), [&](Operation *user) {
          // Whoever reads a view of it, reads it.
          while (user->getNumResults() == 1 && user->hasOneUse() &&
                 !isa<LinalgOp>(user) && isa<CostOpInterface>(user) &&
                 costOf(user).isFree())
            user = *user->getUsers().begin();
          return !isInside(user);
        });
        if (!isSeen && !result.use_empty())
          work.bytesWritten -= byteSize(result.getType());
      }
      work.bytesRead = std::max(work.bytesRead, 0.0);
      fused.work += work;
      fused.members.push_back({op, work});
    }
  }
  for (auto [number, kernel] : llvm::enumerate(plan.kernels))
    for (const KernelMember &member : kernel.members)
      plan.kernelOf[member.op] = number;
}

KernelPlan hyperparallel::planKernels(Block &block) {
  KernelPlan plan;
  Planner planner(plan);
  for (Operation &op : block)
    planner.visit(&op);
  planner.finish();
  return plan;
}
