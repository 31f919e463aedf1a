//===- ResolveTransfers.cpp - routes for sends and receives ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// In: a nested module of each group, its layouts settled (phase 3). Out: every
// send and receive has its route.
//
//   1. find the send and the receive of each (from, to, tag); one of each, of
//      one type, or the program is refused;
//   2. the route by the two layouts (Routes.h), as each side sees it: offsets
//      in its own part of the tensor, its own devices ascending. Blocks of one
//      pair of devices have the same order on both sides.
//
// Cost: linear in the programs and the blocks.
//===----------------------------------------------------------------------===//
#include "lib/Analysis/ProgramLayouts.h"
#include "lib/Transforms/HyperMPMD/Passes.h"
#include "lib/Transforms/HyperMPMD/Routes.h"

#include "llvm/ADT/MapVector.h"
#include <map>

namespace mlir::hyperparallel::hypermpmd {
#define GEN_PASS_DEF_RESOLVETRANSFERSPASS
#include "lib/Transforms/HyperMPMD/Passes.h.inc"
} // namespace mlir::hyperparallel::hypermpmd

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypermpmd;

namespace {
struct Message {
  SendOp send;
  RecvOp recv;
};
/// By sending group, receiving group, and tag.
using Messages =
    std::map<std::tuple<std::string, std::string, int64_t>, Message>;

struct ResolveTransfersPass
    : hypermpmd::impl::ResolveTransfersPassBase<ResolveTransfersPass> {
  using ResolveTransfersPassBase::ResolveTransfersPassBase;

  FailureOr<Messages> match();
  LogicalResult readLayouts(ModuleOp program);
  LogicalResult resolve(Message message);

  void runOnOperation() override;

  DenseMap<Operation *, GroupLayout> layouts;
};
} // namespace

FailureOr<Messages> ResolveTransfersPass::match() {
  Messages messages;
  auto add = [](auto &slot, auto op) -> LogicalResult {
    if (slot) {
      InFlightDiagnostic error =
          op.emitOpError("expected one with this peer and tag");
      error.attachNote(slot.getLoc()) << "another is here";
      return error;
    }
    slot = op;
    return success();
  };
  for (auto program : getOperation().getOps<ModuleOp>()) {
    auto group =
        program->getAttrOfType<StringAttr>(HyperMPMDDialect::kGroupAttrName);
    if (!group)
      continue;
    WalkResult walked = program.walk([&](Operation *op) -> WalkResult {
      if (auto send = dyn_cast<SendOp>(op))
        return add(
            messages[{group.str(), send.getPeer().str(), send.getTag()}].send,
            send);
      if (auto recv = dyn_cast<RecvOp>(op))
        return add(
            messages[{recv.getPeer().str(), group.str(), recv.getTag()}].recv,
            recv);
      return WalkResult::advance();
    });
    if (walked.wasInterrupted() || failed(readLayouts(program)))
      return failure();
  }
  return messages;
}

/// How each sent and received value is split.
LogicalResult ResolveTransfersPass::readLayouts(ModuleOp program) {
  hypershard::MeshAttr mesh = hypershard::MeshAttr::get(&getContext(), {}, {});
  if (!program.getOps<hypershard::MeshOp>().empty()) {
    FailureOr<hypershard::MeshOp> found = getOnlyMesh(program);
    if (failed(found))
      return failure();
    mesh = found->getMesh();
  } else {
    mesh = getTopology(program)
               .getGroup(program
                             ->getAttrOfType<StringAttr>(
                                 HyperMPMDDialect::kGroupAttrName)
                             .getValue())
               .getMesh();
  }
  ProgramLayouts known(program, hypershard::MeshAxes(mesh));
  WalkResult walked = program.walk([&](Operation *op) {
    if (!isa<SendOp, RecvOp>(op))
      return WalkResult::advance();
    Value value = isa<SendOp>(op) ? op->getOperand(0) : op->getResult(0);
    TensorLayout layout = known.layoutOf(value);
    if (!layout.partial.empty()) {
      op->emitOpError("expected a whole value but got a partial one; run "
                      "hypershard-insert-reshards first");
      return WalkResult::interrupt();
    }
    layouts.insert({op, {hypershard::MeshAxes(mesh), layout}});
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

/// A side's view of the route.
static SmallVector<int64_t> seenFrom(ArrayRef<RoutedBlock> route, bool sends,
                                     const GroupLayout &layout,
                                     ArrayRef<int64_t> shape) {
  SmallVector<const RoutedBlock *> order;
  for (const RoutedBlock &block : route)
    order.push_back(&block);
  auto mine = [&](const RoutedBlock *block) {
    return sends ? block->sender : block->receiver;
  };
  llvm::stable_sort(order, [&](const RoutedBlock *a, const RoutedBlock *b) {
    return mine(a) < mine(b);
  });
  SmallVector<int64_t> words;
  for (const RoutedBlock *block : order) {
    words.push_back(mine(block));
    words.push_back(sends ? block->receiver : block->sender);
    auto [begin, sizes] = layout.box(mine(block), shape);
    for (auto [global, own] : llvm::zip_equal(block->begin, begin))
      words.push_back(global - own);
    llvm::append_range(words, block->sizes);
  }
  return words;
}

LogicalResult ResolveTransfersPass::resolve(Message message) {
  auto [send, recv] = message;
  if (!send || !recv) {
    Operation *alone = send ? send.getOperation() : recv.getOperation();
    StringRef peer = send ? send.getPeer() : recv.getPeer();
    int64_t tag = send ? send.getTag() : recv.getTag();
    return alone->emitOpError()
           << "expected a " << (send ? "recv" : "send") << " with tag " << tag
           << " in the program of \"" << peer << "\" to meet it";
  }
  auto type = cast<RankedTensorType>(send.getInput().getType());
  if (type != recv.getResult().getType()) {
    InFlightDiagnostic error = recv.emitOpError("expected to receive ")
                               << type << ", which is sent, but got "
                               << recv.getResult().getType();
    error.attachNote(send.getLoc()) << "it is sent here";
    return error;
  }
  const GroupLayout &from = layouts.find(send)->second;
  const GroupLayout &to = layouts.find(recv)->second;
  SmallVector<RoutedBlock> route = findRoute(from, to, type.getShape());
  OpBuilder builder(send);
  send.setRouteAttr(builder.getDenseI64ArrayAttr(
      seenFrom(route, true, from, type.getShape())));
  recv.setRouteAttr(builder.getDenseI64ArrayAttr(
      seenFrom(route, false, to, type.getShape())));
  numBlocks += route.size();
  int64_t bytes = byteSize(RankedTensorType::get({}, type.getElementType()));
  for (const RoutedBlock &block : route)
    numBytes += ShapedType::getNumElements(block.sizes) * bytes;
  return success();
}

void ResolveTransfersPass::runOnOperation() {
  FailureOr<Messages> messages = match();
  if (failed(messages))
    return signalPassFailure();
  bool isValid = true;
  for (auto &[key, message] : *messages)
    isValid &= succeeded(resolve(message));
  if (!isValid)
    signalPassFailure();
}
