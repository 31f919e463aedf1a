//===- HyperMPMDToRuntime.cpp - Messages to calls of the runtime ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contract in:  the program of one group and device, its sends and receives
//   with routes.
// Contract out: no op of the dialect.
//
//   1. A send becomes a call of a private function of the operand's buffer, a
//      receive one of a fresh buffer for the result. The function calls
//      hp_rt_send_blocks or hp_rt_recv_blocks with the route as a constant
//      table, the same for all devices of the group.
//   2. Ranks of the peer become ordinals: the first device of its group, and
//   the
//      place in its mesh.
//
//===----------------------------------------------------------------------===//

#include "dialects/HyperMPMD/HyperMPMD.h"
#include "lib/Conversion/Passes.h"
#include "lib/Conversion/RuntimeCalls.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_CONVERTHYPERMPMDTORUNTIME
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;

namespace mlir::hyperparallel {

using namespace hypermpmd;

/// The route with the peer's devices as ordinals.
static SmallVector<int64_t> makeTable(ArrayRef<int64_t> route, int64_t rank,
                                      TopologyAttr topology, StringRef peer) {
  SmallVector<int64_t> table(route);
  ArrayRef<int64_t> ids = topology.getGroup(peer).getMesh().getDeviceIds();
  int64_t first = topology.getFirstDevice(peer);
  for (size_t at = 1; at < table.size(); at += 2 + 2 * rank)
    table[at] = first + (ids.empty() ? table[at] : ids[table[at]]);
  return table;
}

/// A private function of a buffer that makes the call.
static func::FuncOp declare(ModuleOp module, SymbolTable &symbols, Location loc,
                            StringRef name, MemRefType type,
                            ArrayRef<int64_t> table, int64_t tag) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto function = func::FuncOp::create(builder, loc, name,
                                       builder.getFunctionType({type}, {}));
  function.setPrivate();
  builder.setInsertionPointToStart(function.addEntryBlock());
  RuntimeCallBuilder runtime(builder, loc);
  int64_t rank = type.getRank();
  runtime.call(("hp_rt_" + name + "_blocks").str(),
               {runtime.pointerTo(function.getArgument(0)), runtime.i64(rank),
                runtime.constantWords(type.getShape()),
                runtime.i64(getElementBytes(type.getElementType())),
                runtime.constantWords(table),
                runtime.i64(table.size() / (2 + 2 * rank)), runtime.i64(tag)});
  func::ReturnOp::create(builder, loc);
  function->remove();
  symbols.insert(function);
  return function;
}

template <typename OpTy>
static LogicalResult check(OpTy op, RankedTensorType type) {
  if (!op.getRouteAttr())
    return op.emitOpError("expected a route; run hypermpmd-resolve-transfers "
                          "first");
  if (!type.hasStaticShape() || !getRuntimeDtype(type.getElementType()))
    return op.emitOpError("expected a tensor of static shape, of elements that "
                          "the runtime has, but got ")
           << type;
  return success();
}

namespace {
struct ConvertHyperMPMDToRuntimePass
    : impl::ConvertHyperMPMDToRuntimeBase<ConvertHyperMPMDToRuntimePass> {
  using ConvertHyperMPMDToRuntimeBase::ConvertHyperMPMDToRuntimeBase;

  void runOnOperation() override {
    SmallVector<Operation *> messages;
    WalkResult walked = getOperation().walk([&](Operation *op) -> WalkResult {
      if (!isa<HyperMPMDDialect>(op->getDialect()))
        return WalkResult::advance();
      messages.push_back(op);
      if (auto send = dyn_cast<SendOp>(op))
        return check(send, cast<RankedTensorType>(send.getInput().getType()));
      if (auto recv = dyn_cast<RecvOp>(op))
        return check(recv, cast<RankedTensorType>(recv.getResult().getType()));
      op->emitError("expected the program of one device group but got ")
          << op->getName() << "; run hypermpmd-split-programs first";
      return WalkResult::interrupt();
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    for (Operation *op : messages) {
      auto send = dyn_cast<SendOp>(op);
      auto recv = dyn_cast<RecvOp>(op);
      Value value = send ? send.getInput() : recv.getResult();
      auto tensor = cast<RankedTensorType>(value.getType());
      auto type = MemRefType::get(tensor.getShape(), tensor.getElementType());
      StringRef peer = send ? send.getPeer() : recv.getPeer();
      SmallVector<int64_t> table =
          makeTable(send ? *send.getRoute() : *recv.getRoute(),
                    tensor.getRank(), getTopology(op), peer);
      func::FuncOp function =
          declare(getOperation(), symbols, op->getLoc(), send ? "send" : "recv",
                  type, table, send ? send.getTag() : recv.getTag());
      OpBuilder builder(op);
      Location loc = op->getLoc();
      Value buffer;
      if (send)
        buffer = bufferization::ToBufferOp::create(builder, loc, type, value,
                                                   /*read_only=*/true);
      else
        buffer = memref::AllocOp::create(builder, loc, type,
                                         builder.getI64IntegerAttr(64));
      func::CallOp::create(builder, loc, function, ValueRange(buffer));
      if (recv)
        value.replaceAllUsesWith(bufferization::ToTensorOp::create(
            builder, loc, tensor, buffer, /*restrict=*/true,
            /*writable=*/true));
      op->erase();
      ++numConverted;
    }
    getOperation()->removeAttr(HyperMPMDDialect::kGroupAttrName);
    getOperation()->removeAttr(HyperMPMDDialect::kTopologyAttrName);
  }
};
} // namespace

} // namespace mlir::hyperparallel
