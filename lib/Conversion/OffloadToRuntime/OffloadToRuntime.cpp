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
//   source's,
//      and a fresh one in the tier of the target. The function takes the
//      pointers and starts the copy; equal types share it.
//   2. `wait` hands both buffers to another function, so that neither is
//   written
//      or freed before the copy has ended.
//   3. `detach` was for planners and verifiers: deallocation frees a buffer
//      after its last use, which is where it stood.
//
// Every tier but the device is the runtime's HP_TIER_HOST: this process has no
// other memory.
//===----------------------------------------------------------------------===//

#include "dialects/Offload/Offload.h"
#include "lib/Conversion/Passes.h"
#include "lib/Conversion/RuntimeCalls.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

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

namespace {
class CopyRewriter {
public:
  explicit CopyRewriter(ModuleOp module) : module(module), symbols(module) {}

  void rewrite(Operation *copy, Value source, FutureType future);

private:
  func::FuncOp getStart(Location loc, MemRefType source, MemRefType target);
  func::FuncOp getWait(Location loc, MemRefType source, MemRefType target);
  func::FuncOp declare(Location loc, StringRef name, ArrayRef<Type> arguments,
                       ArrayRef<Type> results,
                       function_ref<Value(RuntimeCallBuilder &, ValueRange)>);

  ModuleOp module;
  SymbolTable symbols;
  llvm::DenseMap<std::pair<Type, Type>, func::FuncOp> starts, waits;
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
  func::FuncOp &known = starts[{source, target}];
  if (known)
    return known;
  auto pointer = LLVM::LLVMPointerType::get(module.getContext());
  bool isPrefetch = isa_and_nonnull<TierAttr>(source.getMemorySpace());
  return known = declare(
             loc, isPrefetch ? "prefetch" : "store", {source, target}, pointer,
             [&](RuntimeCallBuilder &runtime, ValueRange buffers) {
               int64_t bytes = source.getNumElements() *
                               getElementBytes(source.getElementType());
               Value arguments[] = {runtime.pointerTo(buffers[1]),
                                    runtime.i32(getRuntimeTier(target)),
                                    runtime.pointerTo(buffers[0]),
                                    runtime.i32(getRuntimeTier(source)),
                                    runtime.i64(bytes)};
               return runtime.call("hp_rt_copy_start", arguments, pointer);
             });
}

func::FuncOp CopyRewriter::getWait(Location loc, MemRefType source,
                                   MemRefType target) {
  func::FuncOp &known = waits[{source, target}];
  if (known)
    return known;
  Type pointer = LLVM::LLVMPointerType::get(module.getContext());
  return known = declare(loc, "wait_for_copy", {pointer, source, target}, {},
                         [](RuntimeCallBuilder &runtime, ValueRange values) {
                           return runtime.call("hp_rt_copy_wait", values[0]);
                         });
}

void CopyRewriter::rewrite(Operation *copy, Value source, FutureType future) {
  OpBuilder builder(copy);
  Location loc = copy->getLoc();
  RankedTensorType type = future.getValueType();
  Value from = toBuffer(builder, loc, source);
  Value to = memref::AllocOp::create(builder, loc, getBufferType(type),
                                     builder.getI64IntegerAttr(64));
  auto sourceType = cast<MemRefType>(from.getType());
  auto targetType = cast<MemRefType>(to.getType());
  auto start =
      func::CallOp::create(builder, loc, getStart(loc, sourceType, targetType),
                           ValueRange{from, to});
  for (Operation *user : llvm::make_early_inc_range(copy->getUsers())) {
    auto wait = cast<WaitOp>(user);
    builder.setInsertionPoint(wait);
    Value again = toBuffer(builder, wait.getLoc(), source);
    func::CallOp::create(builder, wait.getLoc(),
                         getWait(wait.getLoc(), sourceType, targetType),
                         ValueRange{start.getResult(0), again, to});
    wait.getResult().replaceAllUsesWith(bufferization::ToTensorOp::create(
        builder, wait.getLoc(), type, to, /*restrict=*/true,
        /*writable=*/true));
    wait->erase();
  }
  copy->erase();
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
  if (copy->use_empty())
    return copy->emitError(
        "expected an offload.wait for the copy but got none; "
        "its target would be freed while it runs");
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
    SmallVector<PrefetchOp> prefetches;
    SmallVector<StoreOp> stores;
    SmallVector<DetachOp> detaches;
    WalkResult walked = getOperation().walk([&](Operation *op) {
      if (auto detach = dyn_cast<DetachOp>(op))
        detaches.push_back(detach);
      auto prefetch = dyn_cast<PrefetchOp>(op);
      auto store = dyn_cast<StoreOp>(op);
      if (!prefetch && !store)
        return WalkResult::advance();
      if (prefetch)
        prefetches.push_back(prefetch);
      else
        stores.push_back(store);
      auto future = cast<FutureType>(op->getResult(0).getType());
      return WalkResult(checkCopy(op, future.getValueType()));
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
    CopyRewriter rewriter(getOperation());
    for (DetachOp detach : detaches)
      detach->erase();
    for (StoreOp store : stores) {
      rewriter.rewrite(store, store.getSource(), store.getFuture().getType());
      ++numStores;
    }
    for (PrefetchOp prefetch : prefetches) {
      rewriter.rewrite(prefetch, prefetch.getSource(),
                       prefetch.getFuture().getType());
      ++numPrefetches;
    }
  }
};
} // namespace

} // namespace mlir::hyperparallel
