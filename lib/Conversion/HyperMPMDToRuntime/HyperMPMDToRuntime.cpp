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
//   0. Those of a packet (`hp.packet`) are one call of hp_rt_send_packet or
//      hp_rt_recv_packet.
//   1. A send becomes a call of a private function of the operand's buffer, a
//      receive one of a fresh buffer for the result. The function calls
//      hp_rt_send_blocks or hp_rt_recv_blocks with the route as a constant
//      table, the same for all devices of the group.
//   2. Ranks of the peer become ordinals: the first device of its group, and
//      the place in its mesh.
//
//===----------------------------------------------------------------------===//

#include "dialects/HyperMPMD/HyperMPMD.h"
#include "dialects/Stream/Stream.h"
#include "lib/Analysis/Packets.h"
#include "lib/Conversion/Passes.h"
#include "lib/Conversion/RuntimeCalls.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/MapVector.h"

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

namespace {
/// A send or receive as the runtime's call needs it.
struct Message {
  Operation *op;
  bool isSend;
  Value value;
  MemRefType type;
  int64_t tag;
  SmallVector<int64_t> table;

  int64_t numBlocks() const { return table.size() / (2 + 2 * type.getRank()); }
};
} // namespace

static Message describe(Operation *op) {
  auto send = dyn_cast<SendOp>(op);
  auto recv = dyn_cast<RecvOp>(op);
  Value value = send ? send.getInput() : recv.getResult();
  auto tensor = cast<RankedTensorType>(value.getType());
  return {op,
          bool(send),
          value,
          MemRefType::get(tensor.getShape(), tensor.getElementType()),
          send ? int64_t(send.getTag()) : int64_t(recv.getTag()),
          makeTable(send ? *send.getRoute() : *recv.getRoute(),
                    tensor.getRank(), getTopology(op),
                    send ? send.getPeer() : recv.getPeer())};
}

/// The call for one message.
static void callBlocks(RuntimeCallBuilder &runtime, const Message &message,
                       Value buffer) {
  runtime.call(message.isSend ? "hp_rt_send_blocks" : "hp_rt_recv_blocks",
               {runtime.pointerTo(buffer), runtime.i64(message.type.getRank()),
                runtime.constantWords(message.type.getShape()),
                runtime.i64(getElementBytes(message.type.getElementType())),
                runtime.constantWords(message.table),
                runtime.i64(message.numBlocks()), runtime.i64(message.tag)});
}

/// The call for a packet: pointers on the stack, all else in one table.
static void callPacket(RuntimeCallBuilder &runtime, ArrayRef<Message> messages,
                       ValueRange buffers) {
  SmallVector<int64_t> words = {int64_t(messages.size())};
  Value pointers = runtime.stackWords(messages.size());
  for (auto [number, message] : llvm::enumerate(messages)) {
    runtime.storeWord(runtime.pointerTo(buffers[number]), pointers, number);
    words.append({message.type.getRank(),
                  getElementBytes(message.type.getElementType()),
                  message.numBlocks()});
    llvm::append_range(words, message.type.getShape());
    llvm::append_range(words, message.table);
  }
  const Message &first = messages.front();
  runtime.call(
      first.isSend ? "hp_rt_send_packet" : "hp_rt_recv_packet",
      {pointers, runtime.constantWords(words), runtime.i64(first.tag)});
}

/// A private function of the buffers that makes the call.
static func::FuncOp declare(ModuleOp module, SymbolTable &symbols,
                            ArrayRef<Message> messages) {
  const Message &first = messages.front();
  Location loc = first.op->getLoc();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  SmallVector<Type> types;
  for (const Message &message : messages)
    types.push_back(message.type);
  auto function =
      func::FuncOp::create(builder, loc, first.isSend ? "send" : "recv",
                           builder.getFunctionType(types, {}));
  function.setPrivate();
  auto role = first.isSend ? stream::Role::Send : stream::Role::Recv;
  function->setAttr(stream::StreamDialect::kOfAttrName,
                    stream::IdAttr::get(module.getContext(), role, 0));
  for (unsigned number = 0; number < messages.size(); ++number)
    function.setArgAttr(number, stream::StreamDialect::kAccessAttrName,
                        builder.getStringAttr(first.isSend ? "read" : "write"));
  builder.setInsertionPointToStart(function.addEntryBlock());
  RuntimeCallBuilder runtime(builder, loc);
  if (messages.size() == 1)
    callBlocks(runtime, first, function.getArgument(0));
  else
    callPacket(runtime, messages, function.getArguments());
  func::ReturnOp::create(builder, loc);
  function->remove();
  symbols.insert(function);
  return function;
}

/// A send of a packet is where its last one is, a receive where its first is.
static void convert(ModuleOp module, SymbolTable &symbols,
                    ArrayRef<Message> messages) {
  const Message &first = messages.front();
  OpBuilder builder(first.isSend ? messages.back().op : first.op);
  Location loc = first.op->getLoc();
  SmallVector<Value> buffers;
  for (const Message &message : messages) {
    if (message.isSend)
      buffers.push_back(bufferization::ToBufferOp::create(
          builder, loc, message.type, message.value, /*read_only=*/true));
    else
      buffers.push_back(memref::AllocOp::create(builder, loc, message.type,
                                                builder.getI64IntegerAttr(64)));
  }
  func::CallOp::create(builder, loc, declare(module, symbols, messages),
                       buffers);
  for (auto [message, buffer] : llvm::zip_equal(messages, buffers)) {
    if (!message.isSend) {
      Value value = message.value;
      value.replaceAllUsesWith(bufferization::ToTensorOp::create(
          builder, loc, cast<RankedTensorType>(value.getType()), buffer,
          /*restrict=*/true, /*writable=*/true));
    }
  }
  for (const Message &message : messages)
    message.op->erase();
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
    // In program order; those of a packet together.
    llvm::MapVector<std::pair<unsigned, int64_t>, SmallVector<Message>>
        together;
    int64_t alone = -1;
    for (Operation *op : messages) {
      std::optional<PacketPlace> packet = getPacketPlace(op);
      together[{unsigned(isa<SendOp>(op)), packet ? packet->packet : alone--}]
          .push_back(describe(op));
    }
    for (auto &[key, members] : together) {
      convert(getOperation(), symbols, members);
      numConverted += members.size();
    }
    getOperation()->removeAttr(HyperMPMDDialect::kGroupAttrName);
    getOperation()->removeAttr(HyperMPMDDialect::kTopologyAttrName);
  }
};
} // namespace

} // namespace mlir::hyperparallel
