//===- MergeTransfers.cpp - small messages of one moment are one ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// In: a nested module of each group, every send and receive in its place and
// with its route. Out: those that go together carry `hp.packet = [number,
// place]`: one message for each pair of devices.
//
//   1. Sends of one group that follow each other, with nothing between them
//      that takes time, are a run if they go to the same group and their
//      receives do so there, too, in the same order.
//   2. A message takes a latency, and its bytes over the link. What is packed
//      is copied once more on each side, but has its latency with the others:
//      that pays if the copies take less than the latency.
//   3. Large ones are left out of a run, and do not end it.
//
// Cost: linear in the programs.
//===----------------------------------------------------------------------===//
#include "lib/Analysis/CostModel.h"
#include "lib/Analysis/Packets.h"
#include "lib/Transforms/HyperMPMD/EntryProgram.h"
#include "lib/Transforms/HyperMPMD/Passes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <map>

namespace mlir::hyperparallel::hypermpmd {
#define GEN_PASS_DEF_MERGETRANSFERSPASS
#include "lib/Transforms/HyperMPMD/Passes.h.inc"
} // namespace mlir::hyperparallel::hypermpmd

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypermpmd;

namespace {
/// A receive, and how many of what takes time come before it in its program.
struct Arrival {
  RecvOp recv;
  Block *block = nullptr;
  int64_t moment = 0;
  int64_t place = 0;
};

struct MergeTransfersPass
    : hypermpmd::impl::MergeTransfersPassBase<MergeTransfersPass> {
  using MergeTransfersPassBase::MergeTransfersPassBase;
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<supernode::SupernodeDialect>(); // the cost model's
  }

  void readArrivals(ModuleOp program, StringRef group, CostModel &model);
  void mergeSends(Block &block, StringRef group, CostModel &model);
  void close(SmallVectorImpl<SendOp> &run, StringRef group);

  void runOnOperation() override;

  /// By sending group, receiving group, and tag.
  std::map<std::tuple<std::string, std::string, int64_t>, Arrival> arrivals;
  int64_t packets = 0;
};
} // namespace

/// Whether anything of an op takes time, so that messages before and behind it
/// are of different moments.
static bool takesTime(Operation *op, CostModel &model) {
  if (isa<SendOp, RecvOp>(op) || op->hasTrait<OpTrait::IsTerminator>())
    return false;
  return !isMemoryEffectFree(op) || model.getCost(op).launches > 0;
}

void MergeTransfersPass::readArrivals(ModuleOp program, StringRef group,
                                      CostModel &model) {
  program.walk([&](Block *block) {
    int64_t moment = 0, place = 0;
    for (Operation &op : *block) {
      moment += takesTime(&op, model);
      if (auto recv = dyn_cast<RecvOp>(op))
        arrivals[{recv.getPeer().str(), group.str(), recv.getTag()}] = {
            recv, block, moment, place++};
    }
  });
}

void MergeTransfersPass::close(SmallVectorImpl<SendOp> &run, StringRef group) {
  if (run.size() > 1) {
    Builder builder(&getContext());
    for (auto [place, send] : llvm::enumerate(run)) {
      Attribute packet =
          builder.getDenseI64ArrayAttr({packets, int64_t(place)});
      send->setAttr(kPacketAttrName, packet);
      arrivals[{group.str(), send.getPeer().str(), send.getTag()}]
          .recv->setAttr(kPacketAttrName, packet);
    }
    ++packets;
    ++numPackets;
    numMerged += run.size();
  }
  run.clear();
}

void MergeTransfersPass::mergeSends(Block &block, StringRef group,
                                    CostModel &model) {
  CommunicationCost cost(model.getCommunicationParameters());
  double latency = model.getCommunicationParameters().levels.back().latency;
  // By peer: runs to several groups may lie in each other.
  std::map<std::string, SmallVector<SendOp>> runs;
  auto closeAll = [&] {
    for (auto &[peer, run] : runs)
      close(run, group);
  };
  for (Operation &op : block) {
    if (takesTime(&op, model))
      closeAll();
    auto send = dyn_cast<SendOp>(op);
    if (!send)
      continue;
    // Read and written once more, on both sides.
    if (cost.copySeconds(4 * int64_t(send.getMovement().bytes)) >= latency) {
      ++numDeclinedLarge;
      continue;
    }
    auto arrivalOf = [&](SendOp one) -> const Arrival & {
      return arrivals[{group.str(), one.getPeer().str(), one.getTag()}];
    };
    SmallVector<SendOp> &run = runs[send.getPeer().str()];
    if (!run.empty()) {
      const Arrival &before = arrivalOf(run.back()), &own = arrivalOf(send);
      if (before.block != own.block || before.moment != own.moment ||
          before.place > own.place) {
        ++numDeclinedApart;
        close(run, group);
      }
    }
    if (arrivalOf(send).recv)
      run.push_back(send);
  }
  closeAll();
}

void MergeTransfersPass::runOnOperation() {
  arrivals.clear();
  packets = 0;
  CostModel model(getOperation());
  auto groupOf = [](ModuleOp program) {
    return program->getAttrOfType<StringAttr>(HyperMPMDDialect::kGroupAttrName);
  };
  for (auto program : getOperation().getOps<ModuleOp>())
    if (StringAttr group = groupOf(program))
      readArrivals(program, group, model);
  for (auto program : getOperation().getOps<ModuleOp>())
    if (StringAttr group = groupOf(program))
      program.walk([&](Block *block) { mergeSends(*block, group, model); });
}
