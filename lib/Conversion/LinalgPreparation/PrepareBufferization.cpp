//===- PrepareBufferization.cpp - Last words on tensors -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs right before one-shot bufferization; no clean-up may come between.
//
//   1. Arguments are read-only: weights and activations belong to the caller.
//      Those that the program updates (`hp.updates` on a result) are written in
//      place: what makes the next value takes the argument for its init, also
//      in the functions that are called for it, and the result goes. What a
//      loop carries from step to step begins as a copy of the argument: the
//      analysis refuses a buffer that the loop and the end of it write to.
//   2. Every use of a fill or an uninitialised tensor gets its own, right
//      before it, so that bufferization neither copies filled buffers nor keeps
//      them alive, nor takes them before they are needed. (A part of it that is
//      written to be put into it is of the same one.)
//   3. A contraction that adds to a fill with zero is marked `hp.overwrite` and
//      takes an uninitialised init, or the part of a tensor that was filled:
//      the result is written, not added to.
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/StateUpdates.h"
#include "lib/Conversion/LinalgToRuntime/ContractionLayout.h"
#include "lib/Conversion/Passes.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_PREPAREBUFFERIZATION
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;
using linalg::GenericOp;

namespace mlir::hyperparallel {

static void setWritable(func::FuncOp function, unsigned number, bool value) {
  function.setArgAttr(number,
                      bufferization::BufferizationDialect::kWritableAttrName,
                      BoolAttr::get(function.getContext(), value));
}

static void markArgumentsReadOnly(func::FuncOp function) {
  for (unsigned number = 0; number < function.getNumArguments(); ++number)
    if (isa<TensorType>(function.getArgumentTypes()[number]))
      setWritable(function, number, false);
}

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

namespace {
/// Result `result` of a function is to be written where argument `argument` is.
struct Update {
  unsigned result, argument;
  bool operator==(const Update &other) const {
    return result == other.result && argument == other.argument;
  }
};
} // namespace

/// Lets what makes `value` write into `argument`, if it has a choice; `found`
/// gets the function that is called for it, and what is to be done there.
static void writeInto(Value value, BlockArgument argument,
                      SmallVectorImpl<std::pair<func::FuncOp, Update>> &found) {
  auto result = dyn_cast<OpResult>(value);
  if (!result || value.getType() != argument.getType())
    return;
  if (auto op = dyn_cast<linalg::LinalgOp>(result.getOwner())) {
    OpOperand *init = op.getDpsInitOperand(result.getResultNumber());
    if (init->get().getDefiningOp<tensor::EmptyOp>() &&
        !op.payloadUsesValueFromOperand(init))
      init->set(argument);
    return;
  }
  auto call = dyn_cast<func::CallOp>(result.getOwner());
  if (!call)
    return;
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
  if (!callee || callee.isExternal() || !callee.isPrivate())
    return;
  for (auto [index, operand] : llvm::enumerate(call.getOperands()))
    if (operand == argument)
      found.push_back(
          {callee, {result.getResultNumber(), static_cast<unsigned>(index)}});
}

namespace {
/// The next value of an argument of the entry.
struct NextValue {
  BlockArgument argument;
  Value value;
};
} // namespace

/// The argument that a value is, or is a view of.
static BlockArgument getArgumentBehind(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tensor::CastOp, tensor::ExtractSliceOp, tensor::ExpandShapeOp,
             tensor::CollapseShapeOp>(op))
      return {};
    value = op->getOperand(0);
  }
  return cast<BlockArgument>(value);
}

static Value makeCopy(Value value, OpBuilder &builder) {
  return bufferization::AllocTensorOp::create(
      builder, value.getLoc(), cast<RankedTensorType>(value.getType()),
      ValueRange(), /*copy=*/value);
}

/// A loop that carries the argument to its next value gets a copy of it.
static void copyWhatIsCarried(Value next, BlockArgument argument,
                              OpBuilder &builder) {
  auto loop = next.getDefiningOp<scf::ForOp>();
  if (!loop)
    return;
  OpOperand &init =
      loop.getInitArgsMutable()[cast<OpResult>(next).getResultNumber()];
  if (init.get() != argument)
    return;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(loop);
  init.set(makeCopy(argument, builder));
}

/// Puts the next values in an order in which none is written over what another
/// one still reads: channels that hand values on from step to step are updated
/// from their end. What goes around in a circle is copied first.
static void orderUpdates(SmallVectorImpl<NextValue> &next, OpBuilder &builder) {
  // By the argument that is read: who has to be written before it.
  llvm::DenseMap<Value, SmallVector<unsigned>> readers;
  llvm::DenseMap<Value, unsigned> number;
  for (auto [index, update] : llvm::enumerate(next))
    number[update.argument] = index;
  for (auto [index, update] : llvm::enumerate(next)) {
    BlockArgument read = getArgumentBehind(update.value);
    if (read && read != update.argument && number.contains(read))
      readers[read].push_back(index);
  }
  SmallVector<NextValue> ordered;
  SmallVector<char> state(next.size(), 0); // 1: on the way to it, 2: done
  for (unsigned first = 0; first < next.size(); ++first) {
    SmallVector<std::pair<unsigned, unsigned>> path = {{first, 0}};
    while (!path.empty()) {
      auto &[index, child] = path.back();
      NextValue &update = next[index];
      ArrayRef<unsigned> before = readers[update.argument];
      if (state[index] == 2 || child == before.size()) {
        if (state[index] != 2)
          ordered.push_back(update);
        state[index] = 2;
        path.pop_back();
        continue;
      }
      state[index] = 1;
      unsigned reader = before[child++];
      if (state[reader] == 1)
        next[reader].value = makeCopy(next[reader].value, builder);
      else if (state[reader] == 0)
        path.push_back({reader, 0});
    }
  }
  next = std::move(ordered);
}

/// Structured ops and calls that say which operand a result may be written over
/// (`hp.written_over`): the operand becomes the op's init; what is to be done
/// in the functions that are called goes to `found`.
static void
collectWrittenOver(func::FuncOp function,
                   SmallVectorImpl<std::pair<func::FuncOp, Update>> &found) {
  function.walk([&](linalg::LinalgOp op) {
    auto pairs = op->getAttrOfType<DenseI64ArrayAttr>(kWrittenOverAttrName);
    if (!pairs)
      return;
    op->removeAttr(kWrittenOverAttrName);
    for (int i = 0; i + 1 < pairs.size(); i += 2) {
      if (pairs[i] >= op.getNumDpsInits() ||
          pairs[i + 1] >= op.getNumDpsInputs())
        continue;
      OpOperand *init = op.getDpsInitOperand(pairs[i]);
      Value over = op->getOperand(pairs[i + 1]);
      if (over.getType() == init->get().getType() &&
          init->get().getDefiningOp<tensor::EmptyOp>() &&
          !op.payloadUsesValueFromOperand(init))
        init->set(over);
    }
  });
  function.walk([&](func::CallOp call) {
    auto pairs = call->getAttrOfType<DenseI64ArrayAttr>(kWrittenOverAttrName);
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
        call, call.getCalleeAttr());
    if (!pairs || !callee || callee.isExternal() || !callee.isPrivate() ||
        !callee.getBody().hasOneBlock())
      return;
    for (int i = 0; i + 1 < pairs.size(); i += 2)
      found.push_back({callee, {unsigned(pairs[i]), unsigned(pairs[i + 1])}});
    call->removeAttr(kWrittenOverAttrName);
  });
}

/// Whether an argument is written in place is up to the analysis that follows;
/// it copies where a later read would see the new value.
static void updateInPlace(func::FuncOp entry) {
  llvm::BitVector updated(entry.getNumResults());
  SmallVector<NextValue> next;
  SmallVector<std::pair<func::FuncOp, Update>> waiting;
  auto returned = cast<func::ReturnOp>(entry.getBody().front().getTerminator());
  OpBuilder builder(returned);
  for (auto [i, number] : llvm::enumerate(getUpdatedArguments(entry))) {
    if (!number)
      continue;
    BlockArgument argument = entry.getArgument(*number);
    updated.set(i);
    setWritable(entry, *number, true);
    Value value = returned.getOperand(i);
    writeInto(value, argument, waiting);
    copyWhatIsCarried(value, argument, builder);
    if (value != argument)
      next.push_back({argument, value});
  }
  llvm::DenseSet<Value> overwritten;
  for (NextValue update : next)
    overwritten.insert(update.argument);
  for (OpOperand &result : returned->getOpOperands())
    if (!updated.test(result.getOperandNumber()))
      if (BlockArgument read = getArgumentBehind(result.get());
          read && overwritten.contains(read))
        result.set(makeCopy(result.get(), builder));
  orderUpdates(next, builder);
  for (NextValue update : next)
    bufferization::MaterializeInDestinationOp::create(
        builder, entry.getLoc(), update.argument.getType(), update.value,
        update.argument);
  collectWrittenOver(entry, waiting);
  llvm::DenseMap<Operation *, SmallVector<Update>> known;
  while (!waiting.empty()) {
    auto [function, update] = waiting.pop_back_val();
    SmallVector<Update> &updates = known[function];
    if (llvm::is_contained(updates, update))
      continue;
    updates.push_back(update);
    setWritable(function, update.argument, true);
    Operation *end = function.getBody().front().getTerminator();
    writeInto(end->getOperand(update.result),
              function.getArgument(update.argument), waiting);
  }
  returned->eraseOperands(updated);
  (void)entry.eraseResults(updated);
}

/// Results become arguments, behind the others; how many is kept.
static void recordResultCount(func::FuncOp function) {
  Builder builder(function.getContext());
  function->setAttr("hp.num_results",
                    builder.getI64IntegerAttr(function.getNumResults()));
}

/// Gives every use of some ops its own, right before it: nothing is in memory
/// earlier than it is needed. Uses are taken in the order of the program, never
/// in that of their list, which depends on how the program was read.
static void copyForEachUse(Operation *root, ArrayRef<Operation *> ops) {
  llvm::MapVector<Operation *, SmallVector<OpOperand *>> uses;
  for (Operation *op : ops)
    uses.insert({op, {}});
  root->walk<WalkOrder::PreOrder>([&](Operation *user) {
    for (OpOperand &operand : user->getOpOperands())
      if (auto found = uses.find(operand.get().getDefiningOp());
          found != uses.end())
        found->second.push_back(&operand);
  });
  for (auto &[op, all] : uses) {
    SmallVector<OpOperand *> own, parts;
    unsigned numPutInto = 0;
    for (OpOperand *use : all) {
      bool isPart = isa<tensor::ExtractSliceOp>(use->getOwner());
      numPutInto += isa<tensor::InsertSliceOp>(use->getOwner()) &&
                    use->getOperandNumber() == 1;
      (isPart ? parts : own).push_back(use);
    }
    // Where parts are put into the same tensor, they stay with it.
    bool staysWhole = numPutInto == 1 && own.size() == 1 && !parts.empty();
    if (staysWhole)
      continue;
    OpBuilder builder(op);
    for (OpOperand *use : all) {
      builder.setInsertionPoint(use->getOwner());
      use->set(builder.clone(*op)->getResult(0));
    }
    op->erase();
  }
}

static bool isZero(Value value) {
  return matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero());
}

/// Step 5.
static void markOverwriting(Operation *root) {
  root->walk([](GenericOp op) {
    if (!isRuntimeContraction(op) || !op.hasPureTensorSemantics())
      return;
    OpOperand *init = op.getDpsInitOperand(0);
    auto fill = init->get().getDefiningOp<linalg::FillOp>();
    if (!fill || !isZero(fill.getInputs()[0]))
      return;
    OpBuilder builder(op);
    auto type = cast<RankedTensorType>(init->get().getType());
    if (!type.hasStaticShape())
      return;
    // A part of a larger tensor is written in its place.
    Value place = fill.getOutputs()[0];
    if (place.getDefiningOp<tensor::ExtractSliceOp>() && fill->hasOneUse())
      init->set(place);
    else
      init->set(tensor::EmptyOp::create(builder, op.getLoc(), type.getShape(),
                                        type.getElementType()));
    op->setAttr("hp.overwrite", builder.getUnitAttr());
  });
}

namespace {
struct PrepareBufferizationPass
    : impl::PrepareBufferizationBase<PrepareBufferizationPass> {
  void runOnOperation() override {
    getOperation().walk(markArgumentsReadOnly);
    markOverwriting(getOperation());
    // Fills first: each brings the tensor that it fills.
    SmallVector<Operation *> fills, empties;
    getOperation().walk([&](linalg::FillOp op) {
      if (op.hasPureTensorSemantics())
        fills.push_back(op);
    });
    copyForEachUse(getOperation(), fills);
    getOperation().walk([&](tensor::EmptyOp op) { empties.push_back(op); });
    copyForEachUse(getOperation(), empties);
    // Last, when every result has an init of its own.
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && function.getBody().hasOneBlock())
        updateInPlace(function);
    getOperation().walk(recordResultCount);
  }
};
} // namespace

} // namespace mlir::hyperparallel
