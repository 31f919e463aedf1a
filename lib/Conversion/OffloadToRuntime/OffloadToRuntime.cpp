//===- OffloadToRuntime.cpp - Copies between tiers to runtime calls -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contract in:  offload ops on tensors of static shape; tiers as encodings.
// Contract out: no op of the dialect. Tensors keep their encodings, which
//   bufferization turns into memory spaces.
//
//   1. A copy becomes a call of a private function of two buffers: the
//      source's, and a fresh one in the tier of the target. The function takes
//      the pointers and starts the copy; equal types share it. The source of a
//      prefetch may be a contiguous slice: the function is given the whole
//      buffer and the place in it.
//   2. `wait` hands both buffers to another function, so that neither is
//      written or freed before the copy has ended.
//   3. What is stored to be an argument's next value (`hp.updates`) goes where
//      the argument is, if nothing fetches the old one afterwards. What makes
//      it from what was fetched of the argument may write over that: it is
//      marked (`hp.written_over`), for the init of a structured op would not
//      outlive fusion.
//   4. `detach` was for planners and verifiers: deallocation frees a buffer
//      after its last use, which is where it stood.
//
// Every tier but the device is the runtime's HP_TIER_HOST: this process has no
// other memory.
//===----------------------------------------------------------------------===//

#include "dialects/Offload/Offload.h"
#include "lib/Analysis/StateUpdates.h"
#include "lib/Conversion/Passes.h"
#include "lib/Conversion/RuntimeCalls.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_CONVERTOFFLOADTORUNTIME
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;

namespace mlir::hyperparallel {

using namespace offload;

static MemRefType getBufferType(RankedTensorType type) {
  return MemRefType::get(type.getShape(), type.getElementType(),
                         MemRefLayoutAttrInterface(), type.getEncoding());
}

static Value toBuffer(OpBuilder &builder, Location loc, Value tensor) {
  return bufferization::ToBufferOp::create(
      builder, loc, getBufferType(cast<RankedTensorType>(tensor.getType())),
      tensor, /*read_only=*/true);
}

/// A tensor that is part of another, from an element on.
struct Part {
  Value whole;
  int64_t offset = 0;
};

/// The tensor of which `value` is a contiguous slice (itself, if it is none);
/// nothing if it is a slice that is not contiguous.
static std::optional<Part> resolvePart(Value value) {
  Part part = {value};
  while (auto slice = part.whole.getDefiningOp<tensor::ExtractSliceOp>()) {
    RankedTensorType whole = slice.getSourceType();
    if (!whole.hasStaticShape() ||
        slice.getType().getRank() != whole.getRank() ||
        llvm::is_contained(slice.getStaticOffsets(), ShapedType::kDynamic) ||
        !llvm::all_of(slice.getStaticStrides(),
                      [](int64_t s) { return s == 1; }))
      return std::nullopt;
    int64_t row = 1;
    for (int64_t dim = 1; dim < whole.getRank(); ++dim) {
      if (slice.getStaticOffsets()[dim] != 0 ||
          slice.getType().getDimSize(dim) != whole.getDimSize(dim))
        return std::nullopt;
      row *= whole.getDimSize(dim);
    }
    if (whole.getRank() > 0)
      part.offset += slice.getStaticOffsets()[0] * row;
    part.whole = slice.getSource();
  }
  return part;
}

namespace {
class CopyRewriter {
public:
  explicit CopyRewriter(ModuleOp module) : module(module), symbols(module) {}

  /// Into the buffer of `target`, or a fresh one if that is null.
  void rewriteCopy(Operation *copy, Value source, FutureType future,
                   Value target);
  void rewriteRows(PrefetchRowsOp copy);

private:
  func::FuncOp getStart(Location loc, MemRefType source, MemRefType target);
  func::FuncOp getRowsStart(Location loc, MemRefType table, MemRefType rows,
                            MemRefType target);
  func::FuncOp getWait(Location loc, MemRefType source, MemRefType target);
  func::FuncOp declare(Location loc, StringRef name, ArrayRef<Type> arguments,
                       ArrayRef<Type> results,
                       function_ref<Value(RuntimeCallBuilder &, ValueRange)>);
  void replaceWaits(Operation *copy, Value started, Value source, Value target,
                    Value place);

  ModuleOp module;
  SymbolTable symbols;
  llvm::DenseMap<std::tuple<Type, Type, Type>, func::FuncOp> functions;
};
} // namespace

func::FuncOp CopyRewriter::declare(
    Location loc, StringRef name, ArrayRef<Type> arguments,
    ArrayRef<Type> results,
    function_ref<Value(RuntimeCallBuilder &, ValueRange)> writeBody) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto function = func::FuncOp::create(
      builder, loc, name, builder.getFunctionType(arguments, results));
  function.setPrivate();
  builder.setInsertionPointToStart(function.addEntryBlock());
  RuntimeCallBuilder runtime(builder, loc);
  Value result = writeBody(runtime, function.getArguments());
  func::ReturnOp::create(builder, loc,
                         result ? ValueRange(result) : ValueRange());
  function->remove();
  symbols.insert(function);
  return function;
}

func::FuncOp CopyRewriter::getStart(Location loc, MemRefType source,
                                    MemRefType target) {
  func::FuncOp &known = functions[{source, target, Type()}];
  if (known)
    return known;
  Type pointer = LLVM::LLVMPointerType::get(module.getContext());
  Type i64 = IntegerType::get(module.getContext(), 64);
  bool isPrefetch = isa_and_nonnull<TierAttr>(source.getMemorySpace());
  int64_t size = getElementBytes(target.getElementType());
  return known = declare(
             loc, isPrefetch ? "prefetch" : "store", {source, target, i64},
             pointer, [&](RuntimeCallBuilder &runtime, ValueRange values) {
               Value arguments[] = {
                   runtime.pointerTo(values[1]),
                   runtime.i32(getRuntimeTier(target)),
                   runtime.advance(runtime.pointerTo(values[0]), values[2]),
                   runtime.i32(getRuntimeTier(source)),
                   runtime.i64(target.getNumElements() * size)};
               return runtime.call("hp_rt_copy_start", arguments, pointer);
             });
}

func::FuncOp CopyRewriter::getRowsStart(Location loc, MemRefType table,
                                        MemRefType rows, MemRefType target) {
  func::FuncOp &known = functions[{table, target, rows}];
  if (known)
    return known;
  Type pointer = LLVM::LLVMPointerType::get(module.getContext());
  int64_t row = getElementBytes(table.getElementType());
  for (int64_t size : table.getShape().drop_front())
    row *= size;
  return known = declare(
             loc, "prefetch_rows", {table, rows, target}, pointer,
             [&](RuntimeCallBuilder &runtime, ValueRange buffers) {
               Value arguments[] = {runtime.pointerTo(buffers[2]),
                                    runtime.pointerTo(buffers[0]),
                                    runtime.i32(getRuntimeTier(table)),
                                    runtime.i64(row),
                                    runtime.i64(table.getDimSize(0)),
                                    runtime.pointerTo(buffers[1]),
                                    runtime.i64(rows.getNumElements())};
               return runtime.call("hp_rt_copy_rows_start", arguments, pointer);
             });
}

func::FuncOp CopyRewriter::getWait(Location loc, MemRefType source,
                                   MemRefType target) {
  Type pointer = LLVM::LLVMPointerType::get(module.getContext());
  func::FuncOp &known = functions[{source, target, pointer}];
  if (known)
    return known;
  return known = declare(loc, "wait_for_copy", {pointer, source, target}, {},
                         [](RuntimeCallBuilder &runtime, ValueRange values) {
                           return runtime.call("hp_rt_copy_wait", values[0]);
                         });
}

/// The value of a copy into `target` is there after its wait; until then the
/// source is used. If it is where a tensor was, it is that tensor.
void CopyRewriter::replaceWaits(Operation *copy, Value started, Value source,
                                Value target, Value place) {
  auto type = cast<FutureType>(copy->getResult(0).getType()).getValueType();
  for (Operation *user : llvm::make_early_inc_range(copy->getUsers())) {
    auto wait = cast<WaitOp>(user);
    Location loc = wait.getLoc();
    OpBuilder builder(wait);
    Value again = toBuffer(builder, loc, source);
    func::FuncOp function = getWait(loc, cast<MemRefType>(again.getType()),
                                    cast<MemRefType>(target.getType()));
    func::CallOp::create(builder, loc, function,
                         ValueRange{started, again, target});
    wait.getResult().replaceAllUsesWith(
        place ? place
              : bufferization::ToTensorOp::create(builder, loc, type, target,
                                                  /*restrict=*/true,
                                                  /*writable=*/true));
    wait->erase();
  }
  copy->erase();
}

void CopyRewriter::rewriteCopy(Operation *copy, Value source, FutureType future,
                               Value target) {
  OpBuilder builder(copy);
  Location loc = copy->getLoc();
  Part part = *resolvePart(source);
  Value from = toBuffer(builder, loc, part.whole);
  Value to = target ? toBuffer(builder, loc, target)
                    : Value(memref::AllocOp::create(
                          builder, loc, getBufferType(future.getValueType()),
                          builder.getI64IntegerAttr(64)));
  int64_t size = getElementBytes(future.getValueType().getElementType());
  Value offset = arith::ConstantIntOp::create(
      builder, loc, builder.getI64Type(), part.offset * size);
  func::FuncOp function = getStart(loc, cast<MemRefType>(from.getType()),
                                   cast<MemRefType>(to.getType()));
  auto start = func::CallOp::create(builder, loc, function,
                                    ValueRange{from, to, offset});
  replaceWaits(copy, start.getResult(0), part.whole, to, target);
}

void CopyRewriter::rewriteRows(PrefetchRowsOp copy) {
  OpBuilder builder(copy);
  Location loc = copy->getLoc();
  Value table = toBuffer(builder, loc, copy.getTable());
  Value rows = toBuffer(builder, loc, copy.getRows());
  Value to = memref::AllocOp::create(
      builder, loc, getBufferType(copy.getFuture().getType().getValueType()),
      builder.getI64IntegerAttr(64));
  func::FuncOp function = getRowsStart(loc, cast<MemRefType>(table.getType()),
                                       cast<MemRefType>(rows.getType()),
                                       cast<MemRefType>(to.getType()));
  auto start =
      func::CallOp::create(builder, loc, function, ValueRange{table, rows, to});
  replaceWaits(copy, start.getResult(0), copy.getTable(), to, Value());
}

//===----------------------------------------------------------------------===//
// State that a step updates
//===----------------------------------------------------------------------===//

/// Whether everything that is fetched from the tensor has arrived before
/// `store` starts.
static bool isReadBefore(Value tensor, StoreOp store) {
  return llvm::all_of(tensor.getUsers(), [&](Operation *user) {
    if (user->getBlock() != store->getBlock() || !user->isBeforeInBlock(store))
      return false;
    if (isa<tensor::ExtractSliceOp>(user))
      return isReadBefore(user->getResult(0), store);
    return isa<PrefetchOp, PrefetchRowsOp>(user) &&
           llvm::all_of(user->getUsers(), [&](Operation *wait) {
             return wait->getBlock() == store->getBlock() &&
                    wait->isBeforeInBlock(store);
           });
  });
}

/// The copy of the argument that the op may write its result over: it takes no
/// other operand for it.
static OpOperand *findFetched(Operation *op, Value argument, Type type) {
  for (OpOperand &operand : op->getOpOperands()) {
    auto wait = operand.get().getDefiningOp<WaitOp>();
    auto prefetch =
        wait ? wait.getFuture().getDefiningOp<PrefetchOp>() : PrefetchOp();
    if (prefetch && prefetch.getSource() == argument &&
        operand.get().getType() == type)
      return &operand;
  }
  return nullptr;
}

/// Lets the op write result `value` over what was fetched of the argument;
/// where that is still needed, bufferization makes a copy.
static void writeOver(OpResult value, Value argument) {
  Operation *op = value.getOwner();
  OpOperand *fetched = findFetched(op, argument, value.getType());
  if (!fetched)
    return;
  if (!isa<func::CallOp, linalg::LinalgOp>(op))
    return;
  SmallVector<int64_t> pairs;
  if (auto known = op->getAttrOfType<DenseI64ArrayAttr>(kWrittenOverAttrName))
    llvm::append_range(pairs, known.asArrayRef());
  pairs.append(
      {int64_t(value.getResultNumber()), int64_t(fetched->getOperandNumber())});
  op->setAttr(kWrittenOverAttrName,
              DenseI64ArrayAttr::get(op->getContext(), pairs));
}

/// Finds the stores that go where an argument is, and marks what may be written
/// over.
static void findNextValues(func::FuncOp function,
                           llvm::DenseMap<Operation *, Value> &places) {
  if (function.isExternal() || !function.getBody().hasOneBlock())
    return;
  Operation *end = function.getBody().front().getTerminator();
  for (auto [result, number] : llvm::enumerate(getUpdatedArguments(function))) {
    if (!number)
      continue;
    BlockArgument argument = function.getArgument(*number);
    auto wait = end->getOperand(result).getDefiningOp<WaitOp>();
    auto store = wait ? wait.getFuture().getDefiningOp<StoreOp>() : StoreOp();
    if (!store || !store->hasOneUse() || wait.getType() != argument.getType() ||
        !isReadBefore(argument, store))
      continue;
    places[store] = argument;
    if (auto value = dyn_cast<OpResult>(store.getSource()))
      writeOver(value, argument);
  }
}

/// A copy that the runtime can do, waited for where it can be seen.
static LogicalResult checkCopy(Operation *copy, RankedTensorType type) {
  if (!type.hasStaticShape())
    return copy->emitError("expected a tensor of static shape but got ")
           << type;
  if (!getRuntimeDtype(type.getElementType()))
    return copy->emitError("expected elements that the runtime has (i1, i8, "
                           "i16, i32, i64, f16, bf16, f32, f64) but got ")
           << type.getElementType();
  if (!isa<PrefetchRowsOp>(copy) && !resolvePart(copy->getOperand(0)))
    return copy->emitError("expected a contiguous part of a tensor to copy but "
                           "got a slice that is not");
  for (Operation *user : copy->getUsers())
    if (!isa<WaitOp>(user) || user->getBlock() != copy->getBlock()) {
      InFlightDiagnostic diagnostic = copy->emitError(
          "expected the copy to be waited for in the block where it starts");
      diagnostic.attachNote(user->getLoc()) << "its future is used here";
      return diagnostic;
    }
  return success();
}

namespace {
struct ConvertOffloadToRuntimePass
    : impl::ConvertOffloadToRuntimeBase<ConvertOffloadToRuntimePass> {
  using ConvertOffloadToRuntimeBase::ConvertOffloadToRuntimeBase;

  void runOnOperation() override {
    SmallVector<Operation *> copies, detaches;
    WalkResult walked = getOperation().walk([&](Operation *op) {
      if (isa<DetachOp>(op))
        detaches.push_back(op);
      if (!isa<PrefetchOp, PrefetchRowsOp, StoreOp>(op))
        return WalkResult::advance();
      copies.push_back(op);
      auto future = cast<FutureType>(op->getResult(0).getType());
      return WalkResult(checkCopy(op, future.getValueType()));
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
    llvm::DenseMap<Operation *, Value> places;
    for (auto function : getOperation().getOps<func::FuncOp>())
      findNextValues(function, places);
    CopyRewriter rewriter(getOperation());
    for (Operation *detach : detaches)
      detach->erase();
    for (Operation *op : copies) {
      if (op->use_empty()) { // nobody waits for it
        op->erase();
        continue;
      }
      auto future = cast<FutureType>(op->getResult(0).getType());
      bool isStore = isa<StoreOp>(op);
      if (auto rows = dyn_cast<PrefetchRowsOp>(op))
        rewriter.rewriteRows(rows);
      else
        rewriter.rewriteCopy(op, op->getOperand(0), future, places.lookup(op));
      (isStore ? numStores : numPrefetches) += 1;
    }
  }
};
} // namespace

} // namespace mlir::hyperparallel
